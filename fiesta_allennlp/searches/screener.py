"""The sampling rule of the first stage of a search: one run of each config that a searcher chooses."""

from typing import List, Optional

import numpy as np

from fiesta_allennlp.records import Decision, History
from fiesta_allennlp.searches.searchers.base import Points, Searcher, SearchHistory
from fiesta_allennlp.strategies.base import Strategy

MOST_FAILURES = 10
"""So many failed runs before the first score end a screening: the mistake is probably in the template."""


class Screener(Strategy):
    """Runs each config at most once, as a searcher chooses. The history's candidates are the points, in their order.

    # Parameters

    configs : how many are run.
    sign : -1 where the lowest score is the best.
    """

    def __init__(self, searcher: Searcher, points: Points, *, configs: int, sign: int = 1) -> None:
        self.searcher = searcher
        self.points = points
        self.configs = configs
        self.sign = sign

    def propose(self, history: History, slots: int, rng: np.random.Generator) -> List[str]:
        known = self.searched(history)
        left = self.configs - len(known.seen) - len(known.pending)
        rows = self.searcher.propose(known, min(slots, left), rng) if left > 0 else []
        return [history.candidates[row] for row in rows]

    def recommend(self, history: History) -> Decision:
        ranked, known = self.ranked(history), self.searched(history)
        return Decision(best=ranked[0] if ranked else None, stopped_by=self._stopped_by(known, len(ranked)))

    def _stopped_by(self, known: SearchHistory, num_scores: int) -> Optional[str]:
        if not num_scores and len(known.seen) >= min(MOST_FAILURES, self.configs):
            return "failures"
        return "budget" if len(known.seen) >= self.configs else None

    def bounds(self, num_candidates: int) -> "tuple[int, int]":
        return self.configs, self.configs

    def ranked(self, history: History) -> List[str]:
        """The configs that have a score, the best first; of equal ones the first that finished."""
        best_first = sorted(history.evaluations, key=lambda evaluation: -self.sign * evaluation.score)
        return [evaluation.request.candidate for evaluation in best_first]

    def searched(self, history: History) -> SearchHistory:
        """What the searcher knows: the scores in the order of finishing, and then the runs that failed for good."""
        row_of = {name: row for row, name in enumerate(history.candidates)}
        pending = dict.fromkeys(request.candidate for request in history.pending)
        scored = {e.request.candidate: self.sign * e.score for e in history.evaluations}
        failed = dict.fromkeys(failure.request.candidate for failure in history.failures)
        lost = [name for name in failed if name not in scored and name not in pending]
        scores = np.array([*scored.values(), *(np.nan for _ in lost)], dtype=float)
        return SearchHistory(
            self.points,
            seen=tuple(row_of[name] for name in [*scored, *lost]),
            scores=scores[:, None],
            pending=tuple(row_of[name] for name in pending),
        )
