"""The sampling rule of the first stage of a search: one run of each config that a searcher chooses."""

from dataclasses import dataclass
from itertools import compress
from typing import List, Set

import numpy as np

from fiesta_allennlp.core.records import Evaluation, History
from fiesta_allennlp.searches.searchers.base import Points, Searcher, SearchHistory
from fiesta_allennlp.searches.searchers.covariances import pareto_front
from fiesta_allennlp.strategies.base import Strategy
from fiesta_allennlp.strategies.decision import Decision

MAX_INITIAL_FAILURES = 10
"""The number of failed runs before the first score that end a screening: the mistake is probably in the template."""


def failed_configs(history: History) -> List[str]:
    """Return the configs that failed and have no score, by name."""
    finished = {evaluation.request.candidate for evaluation in history.evaluations}
    return sorted({failure.request.candidate for failure in history.failures} - finished)


@dataclass(eq=False)
class Screener(Strategy):
    """Runs each config at most once, as a searcher chooses. The history's candidates are the points, in their order.

    With `minimises_seconds`, the seconds of a run are a second objective, to minimise."""

    searcher: Searcher
    points: Points
    num_configs: int
    sign: int = 1
    minimises_seconds: bool = False

    def propose(self, history: History, slots: int, rng: np.random.Generator) -> List[str]:
        searched = self.search_history(history)
        num_left = self.num_configs - len(searched.seen) - len(searched.pending)
        rows = self.searcher.propose(searched, min(slots, num_left), rng) if num_left > 0 else []
        return [history.candidates[row] for row in rows]

    def recommend(self, history: History) -> Decision:
        ranked, num_seen = self.rank_configs(history), len(self.search_history(history).seen)
        if not ranked and num_seen >= min(MAX_INITIAL_FAILURES, self.num_configs):
            return Decision(best=None, stopped_by="failures")
        best = ranked[0] if ranked else None
        return Decision(best=best, stopped_by="budget" if num_seen >= self.num_configs else None)

    def bounds(self, num_candidates: int) -> "tuple[int, int]":
        return self.num_configs, self.num_configs

    def rank_configs(self, history: History) -> List[str]:
        """Return the configs that have a score, the best first; with two objectives, those of the Pareto front come
        before the others."""
        optimal = self.pareto_configs(history)
        best_first = sorted(
            history.evaluations,
            key=lambda evaluation: (evaluation.request.candidate not in optimal, -self.sign * evaluation.score),
        )
        return [evaluation.request.candidate for evaluation in best_first]

    def pareto_configs(self, history: History) -> Set[str]:
        """Return the configs that no other one beats in both objectives; with one objective, nothing."""
        if not self.minimises_seconds or not history.evaluations:
            return set()
        is_optimal = pareto_front(np.array([self._objectives(evaluation) for evaluation in history.evaluations]))
        return {evaluation.request.candidate for evaluation in compress(history.evaluations, is_optimal)}

    def _objectives(self, evaluation: Evaluation) -> List[float]:
        return [self.sign * evaluation.score, *([-evaluation.seconds] if self.minimises_seconds else [])]

    def search_history(self, history: History) -> SearchHistory:
        """Return the data of the searcher: scores in the order of finishing, then the runs that failed for good."""
        row_by_name = {name: row for row, name in enumerate(history.candidates)}
        pending = dict.fromkeys(request.candidate for request in history.pending)
        scored = {run.request.candidate: self._objectives(run) for run in history.evaluations}
        failed = dict.fromkeys(failure.request.candidate for failure in history.failures)
        unscored = [name for name in failed if name not in scored and name not in pending]
        nan_objectives = [np.nan] * (1 + self.minimises_seconds)
        scores = np.array([*scored.values(), *(nan_objectives for _ in unscored)], dtype=float)
        return SearchHistory(
            self.points,
            seen=tuple(row_by_name[name] for name in [*scored, *unscored]),
            scores=scores.reshape(-1, len(nan_objectives)),
            pending=tuple(row_by_name[name] for name in pending),
        )
