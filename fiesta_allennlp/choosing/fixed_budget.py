"""Strategies for a fixed budget, and the two to compare with, which evaluate every candidate equally often."""

from abc import abstractmethod
from copy import copy
from dataclasses import dataclass, replace
from typing import List, Optional, Tuple

import numpy as np

from fiesta_allennlp.choosing.beliefs.belief import Belief
from fiesta_allennlp.choosing.fixed_confidence import FixedConfidence
from fiesta_allennlp.choosing.probability.batch import Rules, choose_in_turn
from fiesta_allennlp.choosing.strategy import Decision, Strategy, analyse, check_candidates, fill_evenly, have_finished
from fiesta_allennlp.core.errors import OptionError
from fiesta_allennlp.core.records import History


@dataclass(frozen=True)
class Stage:
    """The open stage of a fixed-budget strategy: each of `contenders` must reach `target` finished runs."""

    contenders: Tuple[str, ...]
    target: int


class FixedBudget(Strategy):
    """Spends `budget` runs by a plan, and recommends the remaining contender with the highest mean score.

    Args:
        belief: model of the scores. It does not influence the choice. The decision reports its probabilities as soon as
            every active candidate has enough runs for it.
        budget: limit on the finished and pending runs of all candidates together. Failures do not count.
    """

    needs_budget = True

    def __init__(self, *, belief: Belief, budget: int) -> None:
        self.belief = belief
        self.budget: int = budget

    @abstractmethod
    def stage(self, history: History) -> Stage:
        """Return the open stage, or the last one. Requires at least one active candidate."""

    @abstractmethod
    def least(self, num_candidates: int) -> int:
        """Return the smallest budget for `num_candidates` candidates."""

    def planned(self, history: History) -> int:
        """Return the part of the budget that is left for the candidates that the user did not remove.

        The plan of these candidates is made from this number.
        """
        return self.budget - history.num_runs_of_removed

    def check(self, candidates: List[str]) -> None:
        check_candidates(candidates)
        min_budget = self.least(len(candidates))
        if self.budget < min_budget:
            raise OptionError(
                "budget", f"must be at least {min_budget} for {len(candidates)} candidates but got {self.budget}."
            )

    def check_room(self, history: History) -> None:
        sufficient = copy(self)
        sufficient.budget = max(self.budget, self.least(history.num_planned) + history.num_runs_of_removed)
        while sufficient._num_missing_runs(history) > sufficient.budget - history.total_started:
            sufficient.budget += 1
        if sufficient.budget > self.budget:
            raise OptionError(
                "budget",
                f"must be at least {sufficient.budget} to cover the {history.total_started} runs so far and "
                f"those that the current candidates still need, but is {self.budget}. Use a larger --budget.",
            )

    def _num_missing_runs(self, history: History) -> int:
        stage = self.stage(history)
        return sum(max(0, stage.target - history.num_started(name)) for name in self.open(stage.contenders))

    def propose(self, history: History, slots: int, rng: np.random.Generator) -> List[str]:
        if len(history.active) < 2:
            return []
        names = self._plan_runs(history, min(slots, self.budget - history.total_started))
        return [name for name in names if self.num_left(history, name) >= 1]

    def _plan_runs(self, history: History, slots: int) -> List[str]:
        stage = self.stage(history)
        return fill_evenly(history.started_by(self.open(stage.contenders)), target_runs=stage.target, slots=slots)

    def recommend(self, history: History) -> Decision:
        decision = analyse(history, self.belief)
        if len(history.active) < 2:
            return replace(decision, stopped_by="failures")
        stage = self.stage(history)
        is_spent = history.total_started >= self.budget and not history.pending
        is_over = is_spent or have_finished(history, self.open(stage.contenders), stage.target)
        best = None
        if have_finished(history, stage.contenders, 1):
            best = max(stage.contenders, key=lambda name: history.scores(name).mean())
        decision = replace(decision, best=best, stopped_by="budget" if is_over else None)
        return self.end_at_limit(history, decision) if not is_over and self._is_at_run_limit(history) else decision

    def _is_at_run_limit(self, history: History) -> bool:
        """Return whether the plan asks for a run of a candidate that has made all of them: nothing else is part of
        the plan."""
        exhausted = self.exhausted(history)
        next_names = [] if history.pending else self._plan_runs(history, 1)
        is_next_missing = any(name in exhausted for name in next_names)
        return bool(exhausted) and (is_next_missing or len(exhausted) == len(history.active))


@Strategy.register("sequential_halving")
class SequentialHalving(FixedBudget):
    """Spends an equal share of the budget in each round and keeps the better half (FIESTA, algorithm 1 and table 1).

    With N candidates there are ceil(log2 N) rounds (Karnin et al., 2013). Round r gives each of its contenders S_r::

        floor(budget / (|S_r| ceil(log2 N)))

    new runs. It keeps the ``ceil(|S_r| / 2)`` contenders with the highest mean of all their scores so far. Among equal
    means, the first in the candidates' order stays. Exactly the scores planned up to the round count, by replicate, so
    the order in which runs finish has no influence.

    Use it if the number of runs is fixed beforehand. It gives no guarantee about confidence.

    A candidate that drops out after failures leaves all rounds. If it had survived a round, the best candidate that was
    eliminated in that round takes its place and catches up, as far as the budget lasts. A candidate that the user
    removed is not part of the plan: N counts the other candidates, and they share what it left of the budget.

    The parameters are those of `FixedBudget`.
    """

    def least(self, num_candidates: int) -> int:
        return num_candidates * _num_rounds(num_candidates)

    def stage(self, history: History) -> Stage:
        contenders = history.active
        target = 0
        for size in _round_sizes(history.num_planned):
            num_new_runs = _num_new_runs(self.planned(history), size, history.num_planned)
            target += num_new_runs
            if num_new_runs == 0 or not have_finished(history, self.open(contenders), target):
                break
            means = {name: history.scores(name)[:target].mean() for name in contenders}
            ranked = sorted(means, key=means.__getitem__, reverse=True)
            contenders = tuple(name for name in contenders if name in ranked[: (size + 1) // 2])
        return Stage(contenders, target)

    def bounds(self, num_candidates: int) -> Tuple[int, int]:
        """Return the plan's total twice.

        If a candidate drops out, the selection can take fewer runs, or more within the budget.
        """
        planned = sum(size * _num_new_runs(self.budget, size, num_candidates) for size in _round_sizes(num_candidates))
        return self.limited_bounds(num_candidates, planned, planned)


def _num_new_runs(budget: int, num_contenders: int, num_candidates: int) -> int:
    return budget // (num_contenders * _num_rounds(num_candidates))


def _num_rounds(num_candidates: int) -> int:
    return (num_candidates - 1).bit_length()


def _round_sizes(num_candidates: int) -> List[int]:
    """|S_r| of every round, ceil(N / 2^r)."""
    return [-(-num_candidates // 2**number) for number in range(_num_rounds(num_candidates))]


@Strategy.register("non_adaptive_fc")
class NonAdaptiveFixedConfidence(FixedConfidence):
    """Runs every candidate once per round, until the target confidence is reached (FIESTA, section 5.2 and table 2).

    The strategy stops only at complete rounds, from round `num_starts` on. It begins a round when the previous one is
    complete, so more slots than active candidates stay empty. It does not begin a round that `max_evaluations` would
    cut short.

    The parameters are those of `FixedConfidence`.
    """

    choose_at_once = staticmethod(choose_in_turn)

    def fill(self, history: History, decision: Decision, slots: int, rng: np.random.Generator) -> List[str]:
        num_started_by_name = history.started_by(self.open(history.active))
        return fill_evenly(num_started_by_name, target_runs=self._num_complete_rounds(history) + 1, slots=slots)

    def rules(self, limit: int, num_slots: int) -> Optional[Rules]:
        """Return the rules with complete rounds: `num_slots` is the number of candidates that get further runs."""
        rules = super().rules(limit // num_slots * num_slots, num_slots)
        return rules and replace(rules, runs_missing=False)

    def may_stop(self, history: History, decision: Decision) -> bool:
        num_started = history.started_by(self.open(history.active)).values()
        return super().may_stop(history, decision) and max(num_started, default=0) <= self._num_complete_rounds(history)

    def room(self, history: History) -> int:
        num_started = list(history.started_by(self.open(history.active)).values())
        num_to_start, room = num_started.count(self._num_complete_rounds(history)), super().room(history)
        return room if room >= num_to_start else 0

    def bounds(self, num_candidates: int) -> Tuple[int, int]:
        min_rounds = max(self.num_starts, self.to_win)
        most = self.limit(num_candidates) // num_candidates * num_candidates
        return self.limited_bounds(num_candidates, min_rounds * num_candidates, most)

    def _num_complete_rounds(self, history: History) -> int:
        """The number of complete rounds of the active candidates that get further runs."""
        return min((history.num_finished(name) for name in self.open(history.active)), default=0)


@Strategy.register("non_adaptive_fb")
class NonAdaptiveFixedBudget(FixedBudget):
    """Runs each of N candidates floor(budget / N) times, then takes the best mean score (FIESTA, section 5.1).

    If a candidate drops out after failures or is removed by the user, its unused runs are not spent.

    The parameters are those of `FixedBudget`.
    """

    def least(self, num_candidates: int) -> int:
        return num_candidates

    def stage(self, history: History) -> Stage:
        return Stage(history.active, self.planned(history) // history.num_planned)

    def bounds(self, num_candidates: int) -> Tuple[int, int]:
        planned = self.budget // num_candidates * num_candidates
        return self.limited_bounds(num_candidates, planned, planned)
