"""Documents run out: a strategy that knows how many there are."""

from collections import Counter
from dataclasses import replace
from typing import Callable, Dict, List, Optional, Tuple

import numpy as np

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.records import CredibleMargin, Decision, History
from fiesta_allennlp.strategies import FixedConfidence, Strategy


class LimitedDocuments(Strategy):
    """Another strategy, over candidates of which each can be evaluated `num_batches` times and no more.

    A candidate that has been through all documents is not evaluated again; in its place comes the one that is most
    probably best among the others. The selection ends with `stopped_by` `documents` when nothing is left to learn from
    this file: when all candidates that together are best with the strategy's confidence have been through it. The
    best is then the one with the highest measure over the whole file, which is no estimate. Where fewer than two
    candidates answered anything it is `failures`, as there is nothing to compare.

    Args:
        strategy: chooses, and stops before that if it can.
        num_batches: the most replicates of a candidate.
        measure: the measure of a candidate over all that it was asked about.
    """

    def __init__(self, strategy: Strategy, *, num_batches: int, measure: Callable[[History, str], float]) -> None:
        self.strategy = strategy
        self.belief = strategy.belief
        self.num_batches = num_batches
        self.measure = measure
        self._latest: Tuple[Optional[History], Dict[str, int]] = (None, {})

    def check(self, candidates: List[str]) -> None:
        self.strategy.check(candidates)
        needed = self.strategy.num_starts if isinstance(self.strategy, FixedConfidence) else 1
        if self.num_batches < needed:
            raise ConfigError(
                f"at least {needed} documents, or batches of documents, are needed to begin with every system but "
                f"there are {self.num_batches}. Give more documents, or a smaller --batch-size."
            )

    def check_room(self, history: History) -> None:
        self.strategy.check_room(history)

    def propose(self, history: History, slots: int, rng: np.random.Generator) -> List[str]:
        left = dict(self._left(history))
        chosen: List[str] = []
        for name in self.strategy.propose(history, slots, rng):
            other = name if left[name] else self._substitute(history, left)
            if other is not None:
                left[other] -= 1
                chosen.append(other)
        return chosen

    def recommend(self, history: History) -> Decision:
        decision = self.strategy.recommend(history)
        if decision.stopped_by in ("confidence", "failures", "budget"):
            return decision
        through = self._through(history)
        if not through or not self._is_enough(history, decision, through):
            return decision
        answered = [name for name in history.active if history.num_finished(name)]
        if len(answered) < 2:
            return replace(decision, best=answered[0] if answered else None, stopped_by="failures")
        best = max(set(through).intersection(answered) or answered, key=lambda name: self.measure(history, name))
        return replace(decision, best=best, stopped_by="documents")

    def credible_margin(self, history: History) -> Optional[CredibleMargin]:
        return self.strategy.credible_margin(history)

    def bounds(self, num_candidates: int) -> "tuple[int, int]":
        least, most = self.strategy.bounds(num_candidates)
        most = min(most, num_candidates * self.num_batches)
        return min(least, most), most

    def _is_enough(self, history: History, decision: Decision, through: List[str]) -> bool:
        if len(through) == len(history.active):
            return True
        if not isinstance(self.strategy, FixedConfidence):
            # What its plan asks for next is not there, and nothing else is part of the plan.
            wanted = self.strategy.propose(history, 1, np.random.default_rng(0))
            return not history.pending and bool(wanted) and wanted[0] in through
        together = sum(decision.prob_best.get(name, 0.0) for name in through)
        return len(through) > 1 and together >= self.strategy.confidence

    def _through(self, history: History) -> List[str]:
        """Return the systems that have finished with all documents, even if they failed on each."""
        pending = Counter(request.candidate for request in history.pending)
        left = self._left(history)
        return [name for name in history.active if not left[name] and not pending[name]]

    def _substitute(self, history: History, left: Dict[str, int]) -> Optional[str]:
        if not isinstance(self.strategy, FixedConfidence):
            return None
        prob_best = self.strategy.recommend(history).prob_best
        open_ = [name for name in history.active if left[name]]
        return max(open_, key=lambda name: (prob_best.get(name, 0.0), left[name]), default=None)

    def _left(self, history: History) -> Dict[str, int]:
        """Return the number of batches left for each candidate; failed ones count as asked."""
        if self._latest[0] is not history:
            used = dict.fromkeys(history.candidates, 0)
            made = [e.request for e in history.evaluations] + [f.request for f in history.failures]
            for request in [*made, *history.pending]:
                used[request.candidate] = max(used[request.candidate], request.replicate + 1)
            self._latest = (history, {name: self.num_batches - number for name, number in used.items()})
        return self._latest[1]
