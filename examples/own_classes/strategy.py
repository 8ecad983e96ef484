"""A sampling rule of your own: mostly the candidate that is most probably best.

python examples/own_classes/strategy.py
"""

from typing import Any, List

import numpy as np

from fiesta_allennlp import replay
from fiesta_allennlp.choosing.sampling_rules import PosteriorSampling
from fiesta_allennlp.choosing.strategy import Decision, Strategy
from fiesta_allennlp.core.records import History
from fiesta_allennlp.tables.simulation.planning import ScorePreset


@Strategy.register("my_epsilon_greedy")
class EpsilonGreedy(PosteriorSampling):
    """Runs the candidate that is most probably best, and with probability `epsilon` another one."""

    def __init__(self, *, epsilon: float = 0.5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def choose(self, history: History, decision: Decision, slots: int, rng: np.random.Generator) -> List[str]:
        prob_best = decision.prob_best
        leader = max(prob_best, key=lambda name: prob_best[name])
        others = [name for name in prob_best if name != leader]
        return [str(rng.choice(others)) if rng.random() < self.epsilon else leader for _ in range(slots)]


scores = ScorePreset("models", {"cnn": 0.78, "lstm": 0.80, "bert": 0.82})
print(replay(scores, strategy={"type": "my_epsilon_greedy", "epsilon": 0.3}, repetitions=5, seed=1))
