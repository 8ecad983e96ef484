"""Strategies that draw from the posterior: Thompson sampling, its synchronous batches, and top-two rules."""

from abc import abstractmethod
from collections import Counter
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.records import History
from fiesta_allennlp.strategies.base import Strategy, analyse, fill_evenly, have_finished, valid_names
from fiesta_allennlp.strategies.decision import Decision
from fiesta_allennlp.strategies.fixed_confidence import FixedConfidence


class PosteriorSampling(FixedConfidence):
    """Makes the starting runs of all candidates in turn, and then draws names from the posterior.

    If the stopping rule misses runs of some candidates before it names the winner, only these run, so that many workers
    do not make runs that nobody needs. A run of a candidate of `done` goes to the most probable of
    the others.

    The parameters are those of `FixedConfidence`.
    """

    def fill(self, history: History, decision: Decision, slots: int, rng: np.random.Generator) -> List[str]:
        names = self.open(history.active)
        starting_runs = fill_evenly(history.started_by(names), target_runs=self.num_starts, slots=slots)
        if starting_runs or not have_finished(history, names, self.num_starts):
            return starting_runs
        if decision.lacking:
            return _subtract_pending(decision.lacking, history)[:slots]
        return valid_names(self.choose(history, decision, slots, rng), history, f"{type(self).__name__}.choose")

    @abstractmethod
    def choose(self, history: History, decision: Decision, slots: int, rng: np.random.Generator) -> List[str]:
        """Return at most `slots` names, once all starting runs have finished.

        `decision` has the current decision, with a probability for every active candidate.
        """


@Strategy.register("thompson")
class Thompson(PosteriorSampling):
    """Thompson sampling: draws a candidate for every free slot by its probability of being the best (FIESTA, section
    4.2).

    With many workers this is the asynchronous form of batch Thompson sampling (section 4.3): each draw uses all scores
    that have finished. Prefer `top_two` for high confidence, because Thompson sampling runs little else once a
    candidate is probably the best.

    The parameters are those of `FixedConfidence`.
    """

    def choose(self, history: History, decision: Decision, slots: int, rng: np.random.Generator) -> List[str]:
        return draw_names(decision.prob_best, slots, rng)


@Strategy.register("bts")
class BatchThompson(PosteriorSampling):
    """Batch Thompson sampling, synchronous (FIESTA, section 4.3 and table 3; Kandasamy et al., 2018).

    The strategy draws a whole batch from the posterior at the start of the batch. The next batch begins when all runs
    of this one have finished. With fewer slots than `batch_size`, it starts a batch in pieces, all drawn from the same
    posterior. If a run fails, another draw replaces it within its batch. Use `thompson` if workers need not wait for
    each other.

    Args:
        batch_size: number of runs in a batch. By default, a batch is as large as the number of slots that are free when
            nothing is pending; failed runs are then not replaced.

    The other parameters are those of `FixedConfidence`.
    """

    def __init__(self, *, batch_size: Optional[int] = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.batch_size = batch_size
        self._batch_start: Tuple[Optional[History], Mapping[str, float]] = (None, {})

    def check(self, candidates: List[str]) -> None:
        super().check(candidates)
        if self.batch_size is not None and self.batch_size < 1:
            raise ConfigError(f"batch_size must be at least 1 but is {self.batch_size}.")

    def choose(self, history: History, decision: Decision, slots: int, rng: np.random.Generator) -> List[str]:
        num_started = self._num_started_in_batch(history)
        if num_started == 0 and history.pending:
            return []
        start_history = history.first_evaluations(history.total_started - num_started)
        if num_started == 0:
            self._batch_start = (start_history, decision.prob_best)
        elif self._batch_start[0] != start_history:  # another history than at the last piece, as after a resumption
            prob_best = analyse(start_history, self.belief).prob_best  # empty if a candidate joined since
            self._batch_start = (start_history, prob_best or decision.prob_best)
        num_draws = min(slots, (self.batch_size or slots) - num_started)
        return draw_names(self._batch_start[1], num_draws, rng)

    def _num_started_in_batch(self, history: History) -> int:
        """Count the started evaluations of the batch: 0 where the last one is complete, or pending."""
        num_starting_runs = sum(min(self.num_starts, history.num_started(name)) for name in history.candidates)
        return (history.total_started - num_starting_runs) % self.batch_size if self.batch_size else 0


@Strategy.register("top_two")
class TopTwo(PosteriorSampling):
    """Top-two sampling with a challenger by transportation cost: the sampling rule to use for a fixed confidence.

    With pi_i the probability that candidate i is the best, the rule draws a leader I from pi. The challenger J != I is
    the candidate with the least evidence that separates it from I. The one of the two with fewer runs is run next, I if
    they are equal. Every free slot gets its own pair.

    The leader is that of Russo (2016), the challenger belongs to the family T3C (Shang et al., 2020). Let n_i be the
    finished and pending runs of i, and z_ij = (mean_i - mean_j) / sqrt(v_i + v_j), with each posterior variance v
    scaled by finished / n. J minimises::

        sign(z_IJ) z_IJ^2 / 2 + log n_J

    the improved transportation cost (Jourdan et al., 2022). Pending runs count as made, so that many workers do not all
    choose the same pair. Equal numbers of runs keep scores on shared splits in pairs.

    The paper's own rule is `ttts`, which needs more runs.

    Args:
        beta: probability that I is run instead of J, above 0 and at most 1; with 1, I always runs. By default, the one
            with fewer runs is run.

    The other parameters are those of `FixedConfidence`.
    """

    def __init__(self, *, beta: Optional[float] = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.beta = beta

    def check(self, candidates: List[str]) -> None:
        super().check(candidates)
        if self.beta is not None and not 0 < self.beta <= 1:
            raise ConfigError(f"beta must be above 0 and at most 1, such as 0.5, but is {self.beta}.")

    def choose(self, history: History, decision: Decision, slots: int, rng: np.random.Generator) -> List[str]:
        num_started = history.started_by(decision.prob_best)
        chosen: List[str] = []
        for _ in range(slots):
            name = leader = draw_names(decision.prob_best, 1, rng)[0]
            if self.beta is None or rng.random() >= self.beta:
                name = self.challenger(leader, history, decision, num_started, rng)
            if self.beta is None and num_started[leader] <= num_started[name]:
                name = leader
            num_started[name] += 1
            chosen.append(name)
        return chosen

    def challenger(
        self, leader: str, history: History, decision: Decision, num_started: Dict[str, int], rng: np.random.Generator
    ) -> str:
        """Return the challenger of a leader: the candidate of least transportation cost from it.

        `num_started` counts the runs of each candidate, earlier slots included.
        """
        assert decision.posterior is not None
        names, num_started = list(num_started), np.array(list(num_started.values()), dtype=float)
        num_finished = np.array([history.num_finished(name) for name in names])
        location, variance = decision.posterior.location, decision.posterior.scale**2 * num_finished / num_started
        leader_index = names.index(leader)
        cost = transportation_cost(location[leader_index] - location, variance[leader_index] + variance, num_started)
        cost[leader_index] = np.inf
        return names[int(np.argmin(cost))]


@Strategy.register("ttts")
class TopTwoThompson(TopTwo):
    """Top-two Thompson sampling as in the FIESTA paper (algorithm 2; Russo, 2016).

    With pi_i the probability that candidate i is the best, the rule draws a leader I from pi and a challenger J != I
    with probability pi_J / (1 - pi_I), or with equal probability if pi leaves nothing for the others. I is run with
    probability `beta`, otherwise J. This is also the pure exploration Thompson sampling (PETS) of Haffari et al. (2017,
    algorithms 1 and 2). With `beta` 1 it is their Thompson sampling. `top_two` needs fewer runs.

    Args:
        beta: probability that I is run instead of J, above 0 and at most 1.

    The other parameters are those of `FixedConfidence`.
    """

    def __init__(self, *, beta: float = 0.5, **kwargs: Any) -> None:
        super().__init__(beta=beta, **kwargs)

    def challenger(
        self, leader: str, history: History, decision: Decision, num_started: Dict[str, int], rng: np.random.Generator
    ) -> str:
        weights = {name: prob for name, prob in decision.prob_best.items() if name != leader}
        return draw_names(weights if any(weights.values()) else dict.fromkeys(weights, 1.0), 1, rng)[0]


def _subtract_pending(names: Sequence[str], history: History) -> List[str]:
    """The names, each as often as it has no pending run that stands for it."""
    num_pending_by_name = Counter(request.candidate for request in history.pending)
    unmatched: List[str] = []
    for name in names:
        num_pending_by_name[name] -= 1
        if num_pending_by_name[name] < 0:
            unmatched.append(name)
    return unmatched


def draw_names(weights: Mapping[str, float], size: int, rng: np.random.Generator) -> List[str]:
    """Draw `size` independent names with probabilities proportional to the weights. At least one weight must be above
    0.
    """
    names = [name for name, weight in weights.items() if weight > 0]
    cumulative_weights = np.cumsum([weights[name] for name in names])
    indices = np.searchsorted(cumulative_weights, rng.random(size) * cumulative_weights[-1], side="right")
    return [names[min(index, len(names) - 1)] for index in indices]


def transportation_cost(lead: np.ndarray, variance: np.ndarray, num_runs: np.ndarray) -> np.ndarray:
    """The improved transportation cost (Jourdan et al., 2022): sign(z) z^2 / 2 + log n_J, z = ahead / sqrt(variance).

    Args:
        lead: how far the leader is ahead of each candidate J.
        variance: the posterior variance of `lead`; 0 where both means are known.
        num_runs: n_J, at least 1. All shapes are alike.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(np.sign(lead) * lead**2 / variance / 2) + np.log(num_runs)
