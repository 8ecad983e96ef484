import math
from abc import ABC, abstractmethod
from typing import Optional

import numpy as np
from allennlp.common import Registrable
from scipy.optimize import brentq

from fiesta_allennlp.errors import ScoreError
from fiesta_allennlp.records import History

SMALLEST_MARGIN = 1e-9
LARGEST_MARGIN = 1e4
"""In scales of the posterior."""


class Posterior(ABC):
    """What is believed of the mean scores of the active candidates, in the order of `History.active`.

    `location` and `scale` sum it up candidate by candidate, as normal variables would be: the middle and the spread
    of each mean score, up to a shift that all have in common. Shape: `(num_candidates,)`.
    """

    location: np.ndarray
    scale: np.ndarray

    @abstractmethod
    def sample(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Joint draws of the mean scores. Shape: `(size, num_candidates)`."""

    @abstractmethod
    def prob_best(self, margin: float = 0.0) -> np.ndarray:
        """P(mean_i >= max_j mean_j - margin). Shape: `(num_candidates,)`. Sums to 1 where `margin` is 0."""

    def doubted(self, best: int, *, confidence: float, margin: float = 0.0) -> Optional[int]:
        """The candidate to run again before `best` may be named, if there is one. By default there is none."""
        return None


class Belief(Registrable):
    """Turns a history into a posterior over the candidates' mean scores."""

    min_evaluations: int = 3
    """How many finished evaluations of every active candidate `posterior` needs."""

    has_margin: bool = True
    """Whether the posterior is of mean scores in their own units, so that a margin above 0 means something."""

    needs_counts: bool = False
    """Whether every evaluation must report counts of right and wrong answers, see `History.counts`."""

    pairs_splits: bool = False
    """Whether scores on one split are compared as pairs."""

    def min_to_win(self, confidence: float) -> int:
        """How many finished evaluations a winner and one rival need before this belief may end a selection."""
        return self.min_evaluations

    def posterior(self, history: History) -> Posterior:
        """The posterior after the finished evaluations. Pending, failed and withdrawn ones play no part.

        Raises:
            ScoreError: where a score is outside what the belief can model, or a candidate has too few of them.
        """
        raise NotImplementedError


def check_evaluations(history: History, candidate: str, least: int) -> None:
    """Refuse a candidate with fewer finished evaluations.

    Raises:
        ScoreError: with both numbers.
    """
    number = history.num_finished(candidate)
    if number < least:
        raise ScoreError(
            f"the posterior needs at least {least} evaluations of every candidate but "
            f'"{candidate}" has {number}: evaluate it more often first.'
        )


def least_margin(posterior: Posterior, confidence: float) -> Optional[float]:
    """The least margin at which max_i P(mean_i >= max_j mean_j - margin) is `confidence`, to six digits.

    In units of the score; 0 where the probability is that high without a margin, and `None` where the confidence is so
    near to 1 that only margins without meaning have it.
    """

    def lacking(margin: float) -> float:
        return confidence - float(posterior.prob_best(margin).max())

    if lacking(0.0) <= 0:
        return 0.0
    enough = float(np.ptp(posterior.location) + posterior.scale.max()) or SMALLEST_MARGIN
    limit = LARGEST_MARGIN * enough
    while lacking(enough) > 0:
        enough *= 2
        if enough > limit:
            return None
    return float(brentq(lacking, 0.0, enough, rtol=1e-6))


def least_to_win(confidence: float) -> int:
    """log2(1 / (1 - confidence)), rounded up: so many times running the better of two equal candidates is the same one
    with a probability of at most 1 - confidence. 3 for .8, 4 for .9, 5 for .95, 7 for .99."""
    return math.ceil(round(-math.log2(1 - confidence), 9))
