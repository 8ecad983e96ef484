from dataclasses import dataclass
from typing import List, Sequence

import numpy as np

from fiesta_allennlp.beliefs.base import Belief
from fiesta_allennlp.beliefs.student_t import ScoreBelief, StudentTPosterior, cache_prob_best
from fiesta_allennlp.core.errors import ScoreError
from fiesta_allennlp.core.records import History
from fiesta_allennlp.probability.split_draws import effects_posterior
from fiesta_allennlp.probability.split_effects import (
    MeanScorePosterior,
    SplitScores,
    mean_score_posteriors,
    refit_correlated,
)

MAX_CELLS = 10**7
"""The most cells of a table of candidates and splits, which takes about a GB. Splits that no two candidates share are
left out of a larger table."""


@dataclass(frozen=True, eq=False)
class StandardisedScores:
    """Scores minus `centre`, divided by `unit`, by candidate and split. Their size is then about 1."""

    centre: float
    unit: float
    table: SplitScores

    @classmethod
    def from_scores(cls, scores: List[np.ndarray], splits: List[np.ndarray]) -> "StandardisedScores":
        """Standardise the scores of every candidate, which must not all be equal.

        Shapes of each array in `scores` and in `splits`, the labels of the splits: `(num_scores,)`.
        """
        all_scores = np.concatenate(scores)
        centre = float(all_scores.mean())
        unit = float(np.abs(all_scores - centre).max())
        return cls(centre, unit, scores_by_split(splits, [(values - centre) / unit for values in scores]))


@Belief.register("split_paired")
class SplitPaired(ScoreBelief):
    """Models scores on one split as rising and falling together. It is the default, made for shared splits.

    A score is the candidate's mean, plus an effect of the split that all candidates share, plus noise. The noise is
    about as large for all candidates, but may differ for any of them; see `fiesta_allennlp.probability.split_effects`
    and docs/method.md. The split's effect cancels in differences, and the model learns the noise from all candidates
    together. Therefore two runs of each candidate are enough for a posterior, and far fewer are needed than with
    `student_t`.

    Candidates may have different replicates. If splits have no effect, or if no two candidates share one, the
    comparison is unpaired. The posterior is that of the mean scores minus a shift that all candidates have in common.

    """

    min_evaluations = 2
    pairs_splits = True

    def posterior(self, history: History) -> StudentTPosterior:
        return self.posteriors([history])[0]

    def posteriors(self, histories: Sequence[History], margins: Sequence[float] = ()) -> List[StudentTPosterior]:
        all_scores = [self.scores(history) for history in histories]
        standardised_scores = {
            index: StandardisedScores.from_scores(scores, _merge_unpaired_splits(self._split_labels(histories[index])))
            for index, scores in enumerate(all_scores)
            if np.ptp(np.concatenate(scores)) > 0
        }
        mean_posteriors = mean_score_posteriors([standardised.table for standardised in standardised_scores.values()])
        fits = {
            index: self._unstandardise(standardised, refit_correlated(mean_posterior, standardised.table))
            for (index, standardised), mean_posterior in zip(standardised_scores.items(), mean_posteriors, strict=True)
        }
        for margin in margins:
            cache_prob_best(list(fits.values()), margin)
        return [fits.get(index) or self._point_posterior(scores) for index, scores in enumerate(all_scores)]

    def noise_sd(self, history: History) -> float:
        scores = self.scores(history)
        if np.ptp(np.concatenate(scores)) == 0:
            return 0.0
        standardised = StandardisedScores.from_scores(scores, _merge_unpaired_splits(self._split_labels(history)))
        return standardised.unit * effects_posterior(standardised.table).noise_sd

    def _point_posterior(self, scores: List[np.ndarray]) -> StudentTPosterior:
        zeros = np.zeros(len(scores))
        return StudentTPosterior.simple(zeros + scores[0][0], zeros, zeros + 1, has_margin=self.has_margin)

    def _unstandardise(self, standardised: StandardisedScores, mean_posterior: MeanScorePosterior) -> StudentTPosterior:
        unit = standardised.unit
        return StudentTPosterior(
            location=standardised.centre + unit * mean_posterior.location,
            scales=unit * mean_posterior.scale,
            df=mean_posterior.df,
            weight=mean_posterior.weight,
            has_margin=self.has_margin,
        )

    def _split_labels(self, history: History) -> List[np.ndarray]:
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
    of them, so two runs of each are enough for a posterior. The model does not compare scores on a shared split as
    pairs. It gives the same numbers as `split_paired` if no two scores are on one split.
    """

    pairs_splits = False

    def _split_labels(self, history: History) -> List[np.ndarray]:
        ends = np.cumsum([history.num_finished(name) for name in history.active])
        return np.split(np.arange(ends[-1]), ends[:-1])


@Belief.register("logit_unpaired")
class LogitUnpaired(Unpaired):
    """Applies the model of `unpaired` to log(score / (1 - score)). It has no margin.

    The probabilities are about mean logit scores, as with `logit_student_t`.
    """

    has_margin = False
    takes_logits = True


def _merge_unpaired_splits(splits: List[np.ndarray]) -> List[np.ndarray]:
    """The splits or, where the table would be too large although no two candidates share two, one split for all: their
    effects are left out anyway."""
    distinct, num_candidates = np.unique(np.concatenate([np.unique(labels) for labels in splits]), return_counts=True)
    if len(splits) * len(distinct) <= MAX_CELLS or (num_candidates > 1).sum() > 1:
        return splits
    return [np.zeros_like(labels) for labels in splits]


def scores_by_split(split_seeds: List[np.ndarray], scores: List[np.ndarray]) -> SplitScores:
    """Gather the scores of each candidate by split. Shapes: `(num_scores,)` for each candidate, both."""
    distinct_seeds, columns = np.unique(np.concatenate(split_seeds), return_inverse=True)
    if len(scores) * len(distinct_seeds) > MAX_CELLS:
        raise ScoreError(
            f"{len(scores)} candidates on {len(distinct_seeds)} splits are too many to pair: their product must not "
            f"exceed {MAX_CELLS}. Leave out candidates, or use a belief that pairs no splits, such as student_t."
        )
    rows = np.repeat(np.arange(len(scores)), [len(values) for values in scores])
    cells = rows * len(distinct_seeds) + columns.ravel()
    all_scores, shape = np.concatenate(scores), (len(scores), len(distinct_seeds))
    counts = np.bincount(cells, minlength=shape[0] * shape[1])
    sums = np.bincount(cells, all_scores, minlength=shape[0] * shape[1])
    within_squares = np.bincount(rows, (all_scores - (sums / np.maximum(counts, 1))[cells]) ** 2, minlength=shape[0])
    return SplitScores(counts.reshape(shape).astype(float), sums.reshape(shape), within_squares)
