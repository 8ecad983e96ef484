"""When a selection for a fixed budget is over."""

from dataclasses import dataclass, replace
from typing import List, Tuple

import numpy as np

from fiesta_allennlp.beliefs.base import Belief
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.records import Decision, History
from fiesta_allennlp.strategies.base import Strategy, all_finished, believed, check_candidates, in_turn


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

    def __init__(self, *, belief: Belief, budget: int) -> None:
        self.belief = belief
        self.budget = budget

    def stage(self, history: History) -> Stage:
        """Return the open stage, or the last one. Requires at least one active candidate."""
        raise NotImplementedError

    def least(self, num_candidates: int) -> int:
        """Return the smallest budget for `num_candidates` candidates."""
        raise NotImplementedError

    def planned(self, history: History) -> int:
        """Return the part of the budget that is left for the candidates that the user did not remove.

        The plan of these candidates is made from this number.
        """
        return self.budget - history.spent_on_removed

    def check(self, candidates: List[str]) -> None:
        check_candidates(candidates)
        least = self.least(len(candidates))
        if self.budget < least:
            raise ConfigError(
                f"budget must be at least {least} for {len(candidates)} candidates but got {self.budget}."
            )

    def check_room(self, history: History) -> None:
        stage = self.stage(history)
        lacking = sum(max(0, stage.target - history.num_started(name)) for name in self.open(stage.contenders))
        least = max(self.least(history.num_planned) + history.spent_on_removed, history.total_started + lacking)
        if least > self.budget:
            raise ConfigError(
                f"budget must be at least {least} to cover the {history.total_started} runs so far and those that the "
                f"current candidates still need, but is {self.budget}. Use a larger --budget."
            )

    def propose(self, history: History, slots: int, rng: np.random.Generator) -> List[str]:
        if len(history.active) < 2:
            return []
        stage = self.stage(history)
        room = min(slots, self.budget - history.total_started)
        return in_turn(history.started_by(self.open(stage.contenders)), target=stage.target, slots=room)

    def recommend(self, history: History) -> Decision:
        decision = believed(history, self.belief).decision
        if len(history.active) < 2:
            return replace(decision, stopped_by="failures")
        stage = self.stage(history)
        spent = history.total_started >= self.budget and not history.pending
        over = spent or all_finished(history, self.open(stage.contenders), stage.target)
        best = None
        if all_finished(history, stage.contenders, 1):
            best = max(stage.contenders, key=lambda name: history.scores(name).mean())
        return replace(decision, best=best, stopped_by="budget" if over else None)
