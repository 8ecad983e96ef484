"""The sampling rule of the first stage of a search: one run of each config that a searcher chooses."""

from dataclasses import dataclass
from typing import List, Set

import numpy as np

from fiesta_allennlp.core.records import Decision, Evaluation, History
from fiesta_allennlp.searches.searchers.base import Points, Searcher, SearchHistory
from fiesta_allennlp.searches.searchers.covariances import pareto_front
from fiesta_allennlp.strategies.base import Strategy

MOST_FAILURES = 10
"""The number of failed runs before the first score that end a screening: the mistake is probably in the template."""


def failed_configs(history: History) -> List[str]:
    """Return the configs that failed and have no score, by name."""
    finished = {evaluation.request.candidate for evaluation in history.evaluations}
    return sorted({failure.request.candidate for failure in history.failures} - finished)


@dataclass(eq=False)
class Screener(Strategy):
    """Runs each config at most once, as a searcher chooses. The history's candidates are the points, in their order.

    With `in_little_time`, the seconds of a run are a second objective, to minimise."""

    searcher: Searcher
    points: Points
    configs: int
    sign: int = 1
    in_little_time: bool = False

    def propose(self, history: History, slots: int, rng: np.random.Generator) -> List[str]:
        searched = self.searched(history)
        num_left = self.configs - len(searched.seen) - len(searched.pending)
        rows = self.searcher.propose(searched, min(slots, num_left), rng) if num_left > 0 else []
        return [history.candidates[row] for row in rows]

    def recommend(self, history: History) -> Decision:
        ranked, num_seen = self.ranked(history), len(self.searched(history).seen)
        if not ranked and num_seen >= min(MOST_FAILURES, self.configs):
            return Decision(best=None, stopped_by="failures")
        best = ranked[0] if ranked else None
        return Decision(best=best, stopped_by="budget" if num_seen >= self.configs else None)

    def bounds(self, num_candidates: int) -> "tuple[int, int]":
        return self.configs, self.configs

    def ranked(self, history: History) -> List[str]:
        """Return the configs that have a score, the best first; with two objectives, those of the Pareto front come
        before the others."""
        on_front = self.on_front(history)
        best_first = sorted(
            history.evaluations,
            key=lambda evaluation: (evaluation.request.candidate not in on_front, -self.sign * evaluation.score),
        )
        return [evaluation.request.candidate for evaluation in best_first]

    def on_front(self, history: History) -> Set[str]:
        """Return the configs that no other one beats in both objectives; with one objective, nothing."""
        if not self.in_little_time or not history.evaluations:
            return set()
        front = pareto_front(np.array([self._objectives(evaluation) for evaluation in history.evaluations]))
        return {e.request.candidate for e, is_in in zip(history.evaluations, front, strict=True) if is_in}

    def _objectives(self, evaluation: Evaluation) -> List[float]:
        return [self.sign * evaluation.score, *([-evaluation.seconds] if self.in_little_time else [])]

    def searched(self, history: History) -> SearchHistory:
        """Return the data of the searcher: scores in the order of finishing, then the runs that failed for good."""
        rows = {name: row for row, name in enumerate(history.candidates)}
        pending = dict.fromkeys(request.candidate for request in history.pending)
        scored = {e.request.candidate: self._objectives(e) for e in history.evaluations}
        failed = dict.fromkeys(failure.request.candidate for failure in history.failures)
        lost = [name for name in failed if name not in scored and name not in pending]
        nothing = [np.nan] * (1 + self.in_little_time)
        scores = np.array([*scored.values(), *(nothing for _ in lost)], dtype=float)
        return SearchHistory(
            self.points,
            seen=tuple(rows[name] for name in [*scored, *lost]),
            scores=scores.reshape(-1, len(nothing)),
            pending=tuple(rows[name] for name in pending),
        )
