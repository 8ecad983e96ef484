"""Simulated selections that take turns, so that their posteriors are computed together: in a fraction of the time."""

from typing import Dict, Generator, List, Sequence, Tuple, TypeVar

from fiesta_allennlp.beliefs.base import Belief, Posterior
from fiesta_allennlp.records import History
from fiesta_allennlp.strategies.base import Strategy, all_finished
from fiesta_allennlp.strategies.fixed_confidence import FixedConfidence
from fiesta_allennlp.strategies.minimising import unwrapped

Outcome = TypeVar("Outcome")


def side_by_side(strategy: Strategy, runs: Sequence[Generator[History, None, Outcome]]) -> List[Outcome]:
    """Return what several simulated selections return. Each yields every history before it asks `strategy` about it."""
    belief = getattr(unwrapped(strategy), "belief", None)
    found: Dict[int, Outcome] = {}
    while len(found) < len(runs):
        waiting: List[History] = []
        for number, run in enumerate(runs):
            if number not in found:
                try:
                    waiting.append(next(run))
                except StopIteration as end:
                    found[number] = end.value
        if isinstance(belief, PreparedBelief):
            belief.prepare([h if unwrapped(strategy) is strategy else h.turned for h in waiting])
    return [found[number] for number in range(len(runs))]


def prepare_beliefs(strategies: Sequence[Strategy]) -> None:
    """Let these strategies, which differ in their margins alone, share one `PreparedBelief`.

    A strategy for a budget asks for one posterior, at its end, so nothing is prepared for it.
    """
    plain = [unwrapped(strategy) for strategy in strategies]
    belief = plain[0].belief
    margins = {0.0, *(strategy.margin for strategy in plain if isinstance(strategy, FixedConfidence))}
    if not isinstance(belief, PreparedBelief):
        belief = PreparedBelief(belief, sorted(margins))
    for strategy in plain:
        if isinstance(strategy, FixedConfidence):
            strategy.belief = belief


class PreparedBelief(Belief):
    """Another model of the scores, which is asked about several histories at once, and once about each."""

    def __init__(self, belief: Belief, margins: Sequence[float]) -> None:
        self._belief = belief
        self._margins = margins
        self._known: Dict[int, Tuple[History, Posterior]] = {}
        self.min_evaluations, self.has_margin = belief.min_evaluations, belief.has_margin

    def prepare(self, histories: Sequence[History]) -> None:
        """Compute the posteriors of these histories, and forget all others."""
        ready = [h for h in histories if len(h.active) > 1 and all_finished(h, h.active, self.min_evaluations)]
        found = self._belief.posteriors(ready, self._margins)
        self._known = {id(h): (h, posterior) for h, posterior in zip(ready, found, strict=True)}

    def posterior(self, history: History) -> Posterior:
        if id(history) not in self._known:
            self.prepare([history])
        return self._known[id(history)][1]
