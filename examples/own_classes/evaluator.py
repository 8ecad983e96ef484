"""An evaluator of your own: it guesses coin tosses.

python examples/own_classes/evaluator.py
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fiesta_allennlp.core.records import Evaluation, Request
from fiesta_allennlp.running.executor import Evaluator


@Evaluator.register("guess")
@dataclass(frozen=True)
class Guess(Evaluator):
    """The accuracy of guessing coin tosses."""

    num_tosses: int = 100

    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        tosses = np.random.default_rng(request.split_seed).integers(2, size=self.num_tosses)
        guesses = np.random.default_rng(request.random_seed).integers(2, size=self.num_tosses)
        return Evaluation(request, score=float((tosses == guesses).mean()), metric="accuracy")


request = Request("guess", replicate=0, split_seed=1, random_seed=2, numpy_seed=3, pytorch_seed=4)
print(Guess().evaluate(request, Path(".")).score)
