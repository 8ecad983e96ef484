"""A function that stands for a model: it draws its score from the seeds of the split and of the run."""

import random
from typing import Dict


def noisy(*, gain: float, seed: int, split_seed: int) -> Dict[str, float]:
    """Return the accuracy of one run; `gain` is the advantage of this candidate."""
    split, run = random.Random(split_seed), random.Random(seed)
    return {"accuracy": 0.7 + gain + split.gauss(0, 0.02) + run.gauss(0, 0.01)}
