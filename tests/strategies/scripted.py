from typing import Optional, cast

import numpy as np


class _Scripted:
    """Stands in for a generator: `random` returns the numbers it was given, in turn, and no more."""

    def __init__(self, *numbers: float) -> None:
        self.numbers = list(numbers)

    def random(self, size: Optional[int] = None) -> "float | np.ndarray":
        if size is None:
            return self.numbers.pop(0)
        return np.array([self.numbers.pop(0) for _ in range(size)])


def scripted(*numbers: float) -> np.random.Generator:
    """A generator whose `random` returns these numbers."""
    return cast(np.random.Generator, _Scripted(*numbers))
