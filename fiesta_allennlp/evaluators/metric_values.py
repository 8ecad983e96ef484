"""What a model may report as a metric: Python's numbers, NumPy's, and arrays and tensors that hold a single one."""

from numbers import Real
from typing import Any, Dict, Mapping, Optional

import numpy as np
import torch


def number_of(value: Any) -> Optional[float]:
    """The number that a metric is; None where it is none, such as a text or a truth value."""
    if isinstance(value, (np.ndarray, torch.Tensor)) and value.ndim == 0:
        value = value.item()
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else None


def as_plain(metrics: Mapping[str, Any]) -> Dict[str, Any]:
    """The metrics with numbers as Python has them, for AllenNLP cannot write others to `metrics.json`."""
    return {name: _plain(value) for name, value in metrics.items()}


def _plain(value: Any) -> Any:
    number = None if isinstance(value, int) else number_of(value)
    return value if number is None else number
