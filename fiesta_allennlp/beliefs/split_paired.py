from dataclasses import dataclass
from typing import List, Optional

import numpy as np

from fiesta_allennlp.beliefs.base import Belief, least_to_win
from fiesta_allennlp.beliefs.student_t import ScoreBelief, StudentTPosterior
from fiesta_allennlp.probability.noise import ODD_SHARE
from fiesta_allennlp.probability.second_look import doubted
from fiesta_allennlp.probability.split_effects import Scores, mean_scores
from fiesta_allennlp.records import History

LEAST_TO_WIN = 3
"""Two runs of a winner show too little of its noise."""

EARLIER_ODD_SHARE = 0.1
"""The prior share of odd noise before there was a second look, when it alone guarded against it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SplitPairedPosterior(StudentTPosterior):
    """Also says who must run again before a winner is named: see `fiesta_allennlp.probability.second_look`."""

    num_runs: np.ndarray
    noise_sd: float

    def doubted(self, best: int, *, confidence: float, margin: float = 0.0) -> Optional[int]:
        return doubted(self.location, self.num_runs, self.noise_sd, best=best, confidence=confidence, margin=margin)


@dataclass(frozen=True, eq=False)
class Standardised:
    """Scores less `centre` and divided by `unit`, so that they are of a size about 1, by candidate and split."""

    centre: float
    unit: float
    table: Scores

    @classmethod
    def of(cls, scores: List[np.ndarray], splits: List[np.ndarray]) -> "Standardised":
        """`scores` of every candidate, which are not all equal, and what their splits are called. Shapes:
        `(num_scores,)`."""
        flat = np.concatenate(scores)
        centre = float(flat.mean())
        unit = float(np.abs(flat - centre).max())
        return cls(centre, unit, _table(splits, [(values - centre) / unit for values in scores]))


@Belief.register("split_paired")
class SplitPaired(ScoreBelief):
    """Scores on one split rise and fall together: the default, made for shared splits.

    A score is the candidate's mean, plus an effect of the split that all candidates share, plus noise that is about
    as large for all candidates but may be another for any of them; see `fiesta_allennlp.probability.split_effects` and
    docs/method.md. Because the split's effect falls out of differences, and because the noise is learned from all
    candidates together, two evaluations of each are enough to begin with, and far fewer are needed than with
    `student_t`.

    Candidates may stand at different replicates. Where splits carry nothing, or no two candidates share one, it is
    an unpaired comparison. The posterior is of mean scores less a shift that all candidates have in common.

    A winner is named only when it and a rival have three evaluations, and when one failed run of the winner would not
    overturn it: see `fiesta_allennlp.probability.second_look`.

    Args:
        second_look: False is the rule of earlier versions, by which selections that they began go on: a winner and a
            rival need log2(1 / (1 - confidence)) evaluations, rounded up, and one candidate in ten is taken for odd.
    """

    min_evaluations = 2
    pairs_splits = True

    def __init__(self, *, second_look: bool = True) -> None:
        self.second_look = second_look

    def min_to_win(self, confidence: float) -> int:
        return LEAST_TO_WIN if self.second_look else max(self.min_evaluations, least_to_win(confidence))

    def posterior(self, history: History) -> StudentTPosterior:
        scores = self.scores(history)
        flat = np.concatenate(scores)
        if np.ptp(flat) == 0:
            known = np.zeros(len(scores))
            return StudentTPosterior(known + flat[0], known, known + 1, self.has_margin)
        standardised = Standardised.of(scores, self._splits(history))
        means = mean_scores(standardised.table, odd_share=ODD_SHARE if self.second_look else EARLIER_ODD_SHARE)
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
        )

    def _splits(self, history: History) -> List[np.ndarray]:
        """What the splits of every active candidate's scores are called. Shapes: `(num_scores,)`."""
        return [history.split_seeds(name) for name in history.active]


@Belief.register("logit_split_paired")
class LogitSplitPaired(SplitPaired):
    """The model of `split_paired`, of log(score / (1 - score)). What that means is told of `logit_student_t`. It has no
    margin."""

    has_margin = False
    takes_logits = True


@Belief.register("unpaired")
class Unpaired(SplitPaired):
    """The model of `split_paired` without effects of splits: the default on official splits, where only seeds vary.

    A score is the candidate's mean plus noise that is about as large for all candidates but may be another for any of
    them, so that two evaluations of each are enough to begin with. Scores that do share a split are not compared as
    pairs. It gives the numbers that `split_paired` gives where no two scores are on one split.
    """

    pairs_splits = False

    def _splits(self, history: History) -> List[np.ndarray]:
        ends = np.cumsum([history.num_finished(name) for name in history.active])
        return np.split(np.arange(ends[-1]), ends[:-1])


@Belief.register("logit_unpaired")
class LogitUnpaired(Unpaired):
    """The model of `unpaired`, of log(score / (1 - score)). What that means is told of `logit_student_t`. It has no
    margin."""

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
