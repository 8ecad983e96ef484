"""A posterior of your own: normal scores with a known standard deviation.

python examples/own_classes/posterior.py
"""

import numpy as np

from fiesta_allennlp import replay
from fiesta_allennlp.choosing.beliefs.belief import Belief
from fiesta_allennlp.choosing.beliefs.student_t import StudentTPosterior
from fiesta_allennlp.core.records import History
from fiesta_allennlp.tables.simulation.planning import ScorePreset


@Belief.register("known_sd")
class KnownSd(Belief):
    """Normal scores whose standard deviation is known and the same for all candidates."""

    min_evaluations = 1

    def __init__(self, *, sd: float) -> None:
        self.sd = sd

    def posterior(self, history: History) -> StudentTPosterior:
        scores = [history.scores(name) for name in history.active]
        location = np.array([values.mean() for values in scores])
        scale = np.array([self.sd / np.sqrt(len(values)) for values in scores])
        return StudentTPosterior(location, scale, df=np.full(len(scores), 1e6), noise_variance=self.sd**2)


source = ScorePreset("models", {"cnn": 0.78, "lstm": 0.80, "bert": 0.82})
belief = {"type": "known_sd", "sd": 0.03}
print(replay(source, belief=belief, splits="independent", repetitions=5, seed=1))
