"""Metrics of which lower is better: a strategy that is given every score negated."""

from typing import Collection, List, Optional, Tuple

import numpy as np

from fiesta_allennlp.core.records import CredibleMargin, Decision, History, Remaining
from fiesta_allennlp.strategies.base import Strategy


class Minimising(Strategy):
    """Wraps another strategy, so that the lowest mean is the best.

    The strategy, its model of the scores and its stopping rule read `History.turned`; no other object does. A decision
    contains only candidates, probabilities and a margin above 0, so nothing in it needs to be negated back.

    Args:
        strategy: strategy that looks for the highest mean.
    """

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self.belief = strategy.belief
        self.confidence = strategy.confidence

    def without_further_runs(self, done: Collection[str], history: History) -> None:
        self.strategy.without_further_runs(done, history)

    def check(self, candidates: List[str]) -> None:
        self.strategy.check(candidates)

    def check_room(self, history: History) -> None:
        self.strategy.check_room(history.turned)

    def propose(self, history: History, slots: int, rng: np.random.Generator) -> List[str]:
        return self.strategy.propose(history.turned, slots, rng)

    def recommend(self, history: History) -> Decision:
        return self.strategy.recommend(history.turned)

    def fix_margin(self, history: History) -> Optional[str]:
        return self.strategy.fix_margin(history.turned)

    def credible_margin(self, history: History) -> Optional[CredibleMargin]:
        return self.strategy.credible_margin(history.turned)

    def expected_loss(self, history: History) -> Optional[float]:
        return self.strategy.expected_loss(history.turned)

    def remaining(self, history: History, rng: np.random.Generator) -> Optional[Remaining]:
        return self.strategy.remaining(history.turned, rng)

    def plain_loop(self, history: History, rng: np.random.Generator) -> Optional[Remaining]:
        return self.strategy.plain_loop(history.turned, rng)

    def bounds(self, num_candidates: int) -> Tuple[int, int]:
        return self.strategy.bounds(num_candidates)


def unwrapped(strategy: Strategy) -> Strategy:
    """Return the strategy that looks for the highest mean: the given one, or the one inside `Minimising`."""
    return strategy.strategy if isinstance(strategy, Minimising) else strategy
