from dataclasses import dataclass
from typing import List, Sequence

import numpy as np

from fiesta_allennlp.beliefs.base import Belief, least_to_win
from fiesta_allennlp.beliefs.student_t import ScoreBelief, StudentTPosterior
from fiesta_allennlp.probability.noise import ODD_SHARE
from fiesta_allennlp.probability.second_look import lacking, runs_to_win
from fiesta_allennlp.probability.split_effects import MeanScores, Scores, mean_scores_of_all
from fiesta_allennlp.records import History

LEAST_TO_WIN = 3
"""Two runs of a winner show too little of its noise."""

EARLIER_ODD_SHARE = 0.1
"""The prior share of odd noise before there was a second look, when it alone guarded against it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SplitPairedPosterior(StudentTPosterior):
    """Posterior that also names the candidates that must run again before a winner is named.

    The rule is in `fiesta_allennlp.probability.second_look`.
    """

    num_runs: np.ndarray
    noise_sd: float
    own_noise_sd: np.ndarray

    def lacking(self, best: int, *, confidence: float, margin: float = 0.0) -> List[int]:
        return lacking(
            self.location,
            self.num_runs,
            self.noise_sd,
            self.own_noise_sd,
            best=best,
            confidence=confidence,
            margin=margin,
        )

    def runs_to_win(self, lead: np.ndarray, *, confidence: float) -> np.ndarray:
        return runs_to_win(lead, self.noise_sd, confidence=confidence)


@dataclass(frozen=True, eq=False)
class Standardised:
    """Scores minus `centre`, divided by `unit`, by candidate and split. Their size is then about 1."""

    centre: float
    unit: float
    table: Scores

    @classmethod
    def of(cls, scores: List[np.ndarray], splits: List[np.ndarray]) -> "Standardised":
        """Standardise the scores of every candidate, which must not all be equal.

        Shapes of each array in `scores` and in `splits`, the labels of the splits: `(num_scores,)`.
        """
        flat = np.concatenate(scores)
        centre = float(flat.mean())
        unit = float(np.abs(flat - centre).max())
        return cls(centre, unit, _table(splits, [(values - centre) / unit for values in scores]))


@Belief.register("split_paired")
class SplitPaired(ScoreBelief):
    """Models scores on one split as rising and falling together. It is the default, made for shared splits.

    A score is the candidate's mean, plus an effect of the split that all candidates share, plus noise. The noise is
    about as large for all candidates, but may differ for any of them; see `fiesta_allennlp.probability.split_effects`
    and docs/method.md. The split's effect cancels in differences, and the model learns the noise from all candidates
    together. Therefore two runs of each candidate are enough to begin with, and far fewer are needed than with
    `student_t`.

    Candidates may have different replicates. If splits have no effect, or if no two candidates share one, the
    comparison is unpaired. The posterior is that of the mean scores minus a shift that all candidates have in common.

    A winner is named only if it and a rival have three runs each, if one failed run of the winner would not overturn
    the result, and if no candidate was hardly tried or is noisy and near; see
    `fiesta_allennlp.probability.second_look`.

    Args:
        second_look: False selects the rule of earlier versions, with which selections that they began continue. A
            winner and a rival then need log2(1 / (1 - confidence)) runs, rounded up, and the model assumes that one
            candidate in ten is odd.
    """

    min_evaluations = 2
    pairs_splits = True

    def __init__(self, *, second_look: bool = True) -> None:
        self.second_look = second_look

    def min_to_win(self, confidence: float) -> int:
        return LEAST_TO_WIN if self.second_look else max(self.min_evaluations, least_to_win(confidence))

    def posterior(self, history: History) -> StudentTPosterior:
        return self.posteriors([history])[0]

    def posteriors(self, histories: Sequence[History]) -> List[StudentTPosterior]:
        every = [self.scores(history) for history in histories]
        varying = {
            place: Standardised.of(scores, self._splits(histories[place]))
            for place, scores in enumerate(every)
            if np.ptp(np.concatenate(scores)) > 0
        }
        tables = [standardised.table for standardised in varying.values()]
        means = mean_scores_of_all(tables, odd_share=ODD_SHARE if self.second_look else EARLIER_ODD_SHARE)
        found = dict(zip(varying, means, strict=True))
        return [
            self._in_units(varying[place], found[place], scores) if place in varying else self._known(scores)
            for place, scores in enumerate(every)
        ]

    def _known(self, scores: List[np.ndarray]) -> StudentTPosterior:
        """Where all scores are equal."""
        known = np.zeros(len(scores))
        return StudentTPosterior(known + scores[0][0], known, known + 1, self.has_margin)

    def _in_units(self, standardised: Standardised, means: MeanScores, scores: List[np.ndarray]) -> StudentTPosterior:
        """The posterior in units of the scores."""
        unit = standardised.unit
        location, scale = standardised.centre + unit * means.location, unit * means.scale
        if not self.second_look:
            return StudentTPosterior(location, scale, means.df, self.has_margin)
        return SplitPairedPosterior(
            location=location,
            scale=scale,
            df=means.df,
            has_margin=self.has_margin,
            num_runs=np.array([len(values) for values in scores]),
            noise_sd=unit * means.noise_sd,
            own_noise_sd=unit * means.own_noise_sd,
        )

    def _splits(self, history: History) -> List[np.ndarray]:
        """What the splits of every active candidate's scores are called. Shapes: `(num_scores,)`."""
        return [history.split_seeds(name) for name in history.active]


@Belief.register("logit_split_paired")
class LogitSplitPaired(SplitPaired):
    """Applies the model of `split_paired` to log(score / (1 - score)). It has no margin.

    The probabilities are about mean logit scores, as with `logit_student_t`.
    """

    has_margin = False
    takes_logits = True


@Belief.register("unpaired")
class Unpaired(SplitPaired):
    """The model of `split_paired` without effects of splits: the default on official splits, where only seeds vary.

    A score is the candidate's mean plus noise. The noise is about as large for all candidates, but may differ for any
    of them, so two runs of each are enough to begin with. The model does not compare scores on a shared split as pairs.
    It gives the same numbers as `split_paired` if no two scores are on one split.
    """

    pairs_splits = False

    def _splits(self, history: History) -> List[np.ndarray]:
        ends = np.cumsum([history.num_finished(name) for name in history.active])
        return np.split(np.arange(ends[-1]), ends[:-1])


@Belief.register("logit_unpaired")
class LogitUnpaired(Unpaired):
    """Applies the model of `unpaired` to log(score / (1 - score)). It has no margin.

    The probabilities are about mean logit scores, as with `logit_student_t`.
    """

    has_margin = False
    takes_logits = True


def _table(split_seeds: List[np.ndarray], scores: List[np.ndarray]) -> Scores:
    """Counts and sums by candidate and split."""
    seeds, columns = np.unique(np.concatenate(split_seeds), return_inverse=True)
    rows = np.repeat(np.arange(len(scores)), [len(values) for values in scores])
    cells = rows * len(seeds) + columns.ravel()
    flat, shape = np.concatenate(scores), (len(scores), len(seeds))
    counts = np.bincount(cells, minlength=shape[0] * shape[1])
    sums = np.bincount(cells, flat, minlength=shape[0] * shape[1])
    within = np.bincount(rows, (flat - (sums / np.maximum(counts, 1))[cells]) ** 2, minlength=shape[0])
    return Scores(counts.reshape(shape).astype(float), sums.reshape(shape), within)
