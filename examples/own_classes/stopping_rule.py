"""A stopping rule of your own: the winner must have a number of runs.

python examples/own_classes/stopping_rule.py
"""

from typing import Optional, Tuple

from fiesta_allennlp import replay
from fiesta_allennlp.choosing.stopping_rules import BayesianStop, StoppingRule
from fiesta_allennlp.choosing.strategy import Decision
from fiesta_allennlp.core.records import History
from fiesta_allennlp.tables.simulation.planning import ScorePreset


@StoppingRule.register("patient")
class PatientStop(BayesianStop):
    """Also requires a number of runs of the winner."""

    def __init__(self, *, num_runs: int = 10) -> None:
        self.num_runs = num_runs

    def missing_runs(self, history: History, decision: Decision, confidence: float) -> Optional[Tuple[str, ...]]:
        best = decision.best
        if best is None or super().missing_runs(history, decision, confidence) is None:
            return None
        return (best,) * max(0, self.num_runs - history.num_finished(best))


source = ScorePreset("models", {"cnn": 0.78, "lstm": 0.80, "bert": 0.82})
print(replay(source, stop={"type": "patient", "num_runs": 12}, repetitions=5, seed=1))
