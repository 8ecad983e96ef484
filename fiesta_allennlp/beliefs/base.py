from abc import ABC, abstractmethod
from typing import Optional, Sequence

import numpy as np

from fiesta_allennlp.core.errors import ScoreError
from fiesta_allennlp.core.records import History
from fiesta_allennlp.core.registry import Registrable

KNOWN_DF = 1e9
"""The degrees of freedom of noise that is as good as known."""


class Posterior(ABC):
    """Posterior of the mean scores of the active candidates, in the order of `History.active`.

    `location` and `scale` summarise it for each candidate, as for normal variables: the centre and the spread of each
    mean score, up to a shift that all candidates have in common. Shape: `(num_candidates,)`.
    """

    location: np.ndarray
    scale: np.ndarray

    @property
    def noise_df(self) -> np.ndarray:
        """Degrees of freedom of each candidate's noise; so many that it is known by default.
        Shape: `(num_candidates,)`."""
        return np.full(len(self.location), KNOWN_DF)

    @abstractmethod
    def sample(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Draw the mean scores of all candidates jointly. Shape: `(size, num_candidates)`."""

    @abstractmethod
    def prob_best(self, margin: float = 0.0) -> np.ndarray:
        """Compute P(mean_i >= max_j mean_j - margin). Shape: `(num_candidates,)`. Sums to 1 if `margin` is 0."""

    def interval(self, level: float) -> Optional[np.ndarray]:
        """Compute the interval of each mean score alone, such as with `level` 0.95. Shape: `(num_candidates, 2)`.

        Returns `None` if the posterior is of differences only.
        """
        return None

    def expected_loss(self, chosen: int) -> Optional[float]:
        """Compute E[max_j mean_j - mean_chosen] in the metric's units, `chosen` being an index into `History.active`.

        None if it is unknown, or infinite.
        """
        return None


class Belief(Registrable):
    """Model of the scores: computes a posterior over the candidates' mean scores from a history."""

    min_evaluations: int = 3
    """How many finished evaluations of every active candidate `posterior` needs."""

    has_margin: bool = True
    """Whether the posterior is of mean scores in their own units, so that a margin above 0 means something."""

    needs_counts: bool = False
    """Whether every evaluation must report counts of right and wrong answers, see `History.counts`."""

    pairs_splits: bool = False
    """Whether scores on one split are compared as pairs."""

    @abstractmethod
    def posterior(self, history: History) -> Posterior:
        """Compute the posterior after the finished runs.

        Pending and failed runs have no influence. Neither do candidates that dropped out after failures or were removed
        by the user.

        Raises:
            ScoreError: if the model cannot use a score, or if a candidate has too few of them.
        """

    def noise_sd(self, history: History) -> float:
        """Return the run-to-run sd of a typical active candidate, in units of the score: the unit of a margin in sds.

        Here it is pooled over the candidates. A model with effects of splits has that of runs on one split.
        """
        scores = [history.scores(name) for name in history.active]
        squares = sum(np.var(values) * len(values) for values in scores)
        df = sum(len(values) - 1 for values in scores)
        return float(np.sqrt(squares / max(df, 1)))

    def posteriors(self, histories: Sequence[History], margins: Sequence[float] = ()) -> Sequence[Posterior]:
        """Compute `posterior` of several histories with equally many active candidates.

        A simulation asks for them together, because some models then need a fraction of the time.

        Args:
            margins: those whose P(best) the caller will ask for, so that it can be computed together.
        """
        return [self.posterior(history) for history in histories]


def check_evaluations(history: History, candidate: str, minimum: int) -> None:
    """Check that every active candidate has enough finished runs.

    Raises:
        ScoreError: if one has fewer; the message has both numbers.
    """
    num_runs = history.num_finished(candidate)
    if num_runs < minimum:
        raise ScoreError(
            f"P(best) requires at least {minimum} runs of each candidate but '{candidate}' has {num_runs}."
        )
