from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Optional

import numpy as np

from fiesta_allennlp.choosing.probability.leads import Leads, PooledNoise
from fiesta_allennlp.core.errors import ScoreError
from fiesta_allennlp.core.records import History
from fiesta_allennlp.core.registry import Registrable

TIE_DIGITS = 9
"""Probabilities that are equal to so many digits are a tie: the quadrature is not exact to the last one."""


@dataclass(frozen=True)
class Lead:
    """The lead of one candidate over another: the `difference` of their means and its `standard_error` in units of the
    score, the degrees of freedom `df` of that error, and the probability `prob_behind` that the other one is better."""

    difference: float
    standard_error: float
    df: float
    prob_behind: float

    @property
    def t(self) -> float:
        return self.difference / self.standard_error


class Posterior(ABC):
    """Posterior of the leads among the active candidates, which are in the order of `History.active`.

    `has_margin` says whether the leads are in units of the score, and not of its logit. `num_tasks` is the number of
    tasks on whose average candidates are compared.
    """

    has_margin: bool = True
    num_tasks: int = 1

    @property
    @abstractmethod
    def leader(self) -> int:
        """The index of the candidate that leads."""

    @abstractmethod
    def leads_of(self, candidate: int) -> Leads:
        """Return the leads of a candidate over all, as a batch of one selection."""

    @abstractmethod
    def prob_best(self, margin: float = 0.0) -> np.ndarray:
        """Compute P(mean_i >= max_j mean_j - margin). Shape: `(num_candidates,)`. Sums to 1 if `margin` is 0."""

    @cached_property
    def leads(self) -> Leads:
        """The leads of the leader."""
        return self.leads_of(self.leader)

    @property
    def noise_sd(self) -> float:
        """The run-to-run sd of a typical candidate on one unit, in units of the score; 0 where nothing varied."""
        noise = self.leads.noise
        return float(np.sqrt(noise.variance[0])) if noise.varied[0] else 0.0

    def lead(self, rival: int, leader: Optional[int] = None) -> Optional[Lead]:
        """Return the lead of the leader, or of another candidate instead, over a rival; None where nothing varied, or
        over itself."""
        leads = self.leads if leader is None else self.leads_of(leader)
        if leads.variance[0, rival] <= 0 or rival == leads.leader[0] or not leads.noise.varied[0]:
            return None
        prob_behind, error = float(leads.tails()[0, rival]), float(np.sqrt(leads.variance[0, rival]))
        return Lead(float(leads.difference[0, rival]), error, float(leads.df[0, rival]), prob_behind)

    def expected_loss(self, chosen: int) -> Optional[float]:
        """Compute what choosing a candidate costs on average at least, the greatest E[max(0, mean_j - mean_chosen)], in
        units of the score.

        None if it is unknown, or infinite.
        """
        loss = float(self.leads_of(chosen).expected_losses().max())
        return loss if np.isfinite(loss) else None


class MeanPosterior(Posterior):
    """Posterior of independent mean scores, by which Thompson sampling draws. The models of the papers have one.

    A subclass sets `location` and `scale`, the centre and the spread of each mean, and `df`, the degrees of freedom of
    the spread, of shape `(num_candidates,)` each. `noise_variance` is that of a single run of a typical candidate.
    """

    location: np.ndarray
    scale: np.ndarray
    df: np.ndarray
    noise_variance: float

    @abstractmethod
    def interval(self, level: float) -> np.ndarray:
        """Compute the interval of each mean score alone, such as with `level` 0.95. Shape: `(num_candidates, 2)`."""

    @cached_property
    def leader(self) -> int:
        return int(np.argmax(np.round(self.prob_best(), TIE_DIGITS)))

    def leads_of(self, candidate: int) -> Leads:
        """Return the leads by Welch's approximation: the variances of both means add up."""
        variance = self.scale**2
        both = variance + variance[candidate]
        share = np.where(both > 0, variance / np.where(both > 0, both, 1.0), 0.5)
        df = 1 / (share**2 / self.df + (1 - share) ** 2 / self.df[candidate])
        varied = self.noise_variance > 0
        noise = PooledNoise(
            np.array([self.noise_variance if varied else 1.0]), np.zeros(1), np.zeros(1), varied=np.array([varied])
        )
        difference = self.location[candidate] - self.location
        return Leads(np.array([candidate]), difference[None], both[None], df[None], noise)


class Belief(Registrable):
    """Model of the scores: computes a posterior over the candidates' mean scores from a history."""

    min_evaluations: int = 3
    """How many finished evaluations of every active candidate `posterior` needs."""

    has_margin: bool = True
    """Whether the posterior is of mean scores in their own units, so that a margin above 0 means something."""

    has_draws: bool = True
    """Whether `posterior` returns a `MeanPosterior`, by which Thompson sampling draws."""

    takes_logits: bool = False
    """Whether log(score / (1 - score)) is modelled."""

    needs_counts: bool = False
    """Whether every evaluation must report counts of right and wrong answers, see `History.counts`."""

    @abstractmethod
    def posterior(self, history: History) -> Posterior:
        """Compute the posterior after the finished runs.

        Pending and failed runs have no influence. Neither do candidates that dropped out after failures or were removed
        by the user.

        Raises:
            ScoreError: if the model cannot use a score, or if a candidate has too few of them.
        """


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
