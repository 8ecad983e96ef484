from typing import List, Tuple

import numpy as np

from fiesta_allennlp.beliefs.base import Belief, least_to_win
from fiesta_allennlp.beliefs.student_t import LogitStudentTPosterior, StudentTPosterior, checked_scores
from fiesta_allennlp.probability import logit
from fiesta_allennlp.probability.split_effects import Scores, mean_scores
from fiesta_allennlp.records import History


@Belief.register("split_paired")
class SplitPaired(Belief):
    """Scores on one split rise and fall together: the default, made for shared splits.

    A score is the candidate's mean, plus an effect of the split that all candidates share, plus noise that is about
    as large for all candidates but may be another for any of them; see `fiesta_allennlp.probability.split_effects` and
    docs/beliefs.md. Because the split's effect falls out of differences, and because the noise is learned from all
    candidates together, two evaluations of each are enough to begin with, and far fewer are needed than with
    `student_t`.

    Candidates may stand at different replicates. Where splits carry nothing, or no two candidates share one, it is
    an unpaired comparison. The posterior is of mean scores less a shift that all candidates have in common.

    A winner is named only when it and a rival have log2(1 / (1 - confidence)) evaluations, rounded up: 3 for
    .8, 4 for .9, 5 for .95, 7 for .99. With fewer, the noise of an odd candidate is hardly known, and the first look
    at two scores of each would be the one that errs most.
    """

    min_evaluations = 2

    def min_to_win(self, confidence: float) -> int:
        return max(self.min_evaluations, least_to_win(confidence))

    def posterior(self, history: History) -> StudentTPosterior:
        return StudentTPosterior(*self._moments(history))

    def _moments(self, history: History) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Location, scale and degrees of freedom, each of shape `(num_candidates,)`."""
        names = history.active
        scores = [self._scores(history, name) for name in names]
        flat = np.concatenate(scores)
        centre = flat.mean() if np.ptp(flat) > 0 else flat[0]
        unit = np.abs(flat - centre).max()
        if unit == 0:
            return np.full(len(names), centre), np.zeros(len(names)), np.ones(len(names))
        table = _table([history.split_seeds(name) for name in names], [(values - centre) / unit for values in scores])
        means = mean_scores(table)
        return centre + unit * means.location, unit * means.scale, means.df

    def _scores(self, history: History, candidate: str) -> np.ndarray:
        """The scores as they are modelled, checked. Shape: `(num_finished,)`."""
        return checked_scores(history, candidate, self.min_evaluations)


@Belief.register("logit_split_paired")
class LogitSplitPaired(SplitPaired):
    """As `split_paired`, on log(score / (1 - score)); see `logit_student_t` for what that means. It has no margin."""

    has_margin = False

    def posterior(self, history: History) -> LogitStudentTPosterior:
        return LogitStudentTPosterior(*self._moments(history))

    def _scores(self, history: History, candidate: str) -> np.ndarray:
        return logit(super()._scores(history, candidate), candidate=candidate)


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
