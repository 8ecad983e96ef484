"""The two strategies to compare with: every candidate is evaluated equally often, whatever the scores."""

from typing import List, Tuple

import numpy as np

from fiesta_allennlp.records import Decision, History
from fiesta_allennlp.strategies.base import Look, Strategy, in_turn
from fiesta_allennlp.strategies.fixed_budget import FixedBudget, Stage
from fiesta_allennlp.strategies.fixed_confidence import FixedConfidence


@Strategy.register("non_adaptive_fc")
class NonAdaptiveFixedConfidence(FixedConfidence):
    """Runs every candidate once per round, until the target confidence is reached (FIESTA, section 5.2 and table 2).

    The strategy stops only at complete rounds, from round `num_starts` on. It begins a round when the previous one is
    complete, so more slots than active candidates stay empty. It does not begin a round that `max_evaluations` would
    cut short.

    The parameters are those of `FixedConfidence`.
    """

    def fill(self, history: History, look: Look, slots: int, rng: np.random.Generator) -> List[str]:
        started = history.started_by(self.open(history.active))
        return in_turn(started, target=self._num_complete(history) + 1, slots=slots)

    def may_stop(self, history: History, decision: Decision) -> bool:
        started = history.started_by(self.open(history.active)).values()
        return super().may_stop(history, decision) and max(started, default=0) <= self._num_complete(history)

    def room(self, history: History) -> int:
        started = list(history.started_by(self.open(history.active)).values())
        to_start, room = started.count(self._num_complete(history)), super().room(history)
        return room if room >= to_start else 0

    def bounds(self, num_candidates: int) -> Tuple[int, int]:
        rounds = max(self.num_starts, self.to_win)
        return rounds * num_candidates, self.limit(num_candidates) // num_candidates * num_candidates

    def _num_complete(self, history: History) -> int:
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
        return planned, planned
