"""How often the default rule names a wrong winner, as measured. The paragraph for papers quotes it."""

from dataclasses import dataclass
from typing import Tuple

from fiesta_allennlp.core.defaults import CONFIDENCE, STOPPING_RULE, STRATEGY


@dataclass(frozen=True)
class MeasuredError:
    """The share of wrong winners among those named by a rule at a target, with its 95% interval over data sets."""

    strategy: str
    stop: str
    confidence: float
    wrong_of_named: float
    interval: Tuple[float, float]
    num_problems: int
    num_selections: int


DEFAULT_RULE_ERROR = MeasuredError(
    strategy=STRATEGY,
    stop=STOPPING_RULE,
    confidence=CONFIDENCE,
    wrong_of_named=0.026,
    interval=(0.015, 0.038),
    num_problems=179,
    num_selections=1432,
)
"""Measured by `scripts/benchmarks/real_problems.py` on commit 7624e772, on 179 problems of published scores from five
sources, on none of which a rule, a constant or a prior was chosen. Update it whenever the default rule changes."""
