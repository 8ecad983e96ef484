from typing import Any, List, Mapping

import numpy as np

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.records import History
from fiesta_allennlp.strategies.base import Strategy
from fiesta_allennlp.strategies.thompson import PosteriorSampling, draw


@Strategy.register("ttts")
class TopTwoThompson(PosteriorSampling):
    """Top-two Thompson sampling (FIESTA, algorithm 2; Russo, 2016): the strategy to use for a fixed confidence.

    With pi_i the probability that candidate i is best, I is drawn from pi, and J != I with probability
    pi_J / (1 - pi_I). I is trained with probability `beta`, else J. Where pi leaves nothing for the others, J is any
    of them with equal probability. Every free slot gets a pair of its own.

    # Parameters

    beta : above 0 and below 1. The paper chooses "uniformly between these two", 0.5.

    See `FixedConfidence` for the others.
    """

    def __init__(self, *, beta: float = 0.5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.beta = beta

    def check(self, candidates: List[str]) -> None:
        super().check(candidates)
        if not 0 < self.beta < 1:
            raise ConfigError(f"beta must be above 0 and below 1, such as 0.5, but got {self.beta}.")

    def choose(
        self, history: History, prob_best: Mapping[str, float], slots: int, rng: np.random.Generator
    ) -> List[str]:
        return [self._one_of_two(prob_best, rng) for _ in range(slots)]

    def _one_of_two(self, prob_best: Mapping[str, float], rng: np.random.Generator) -> str:
        first = draw(prob_best, 1, rng)[0]
        if rng.random() < self.beta:
            return first
        others = {name: prob for name, prob in prob_best.items() if name != first}
        if not any(others.values()):
            others = dict.fromkeys(others, 1.0)
        return draw(others, 1, rng)[0]
