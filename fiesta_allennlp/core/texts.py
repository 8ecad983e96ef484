"""Numbers and facts as texts, for the live display of a selection and for its report."""

import math
from typing import Optional, Sequence, Tuple

from fiesta_allennlp.core.errors import MAX_SHOWN, join_some


def duration_text(seconds: float) -> str:
    """Format a duration in the two largest units of hours, minutes and seconds."""
    whole_seconds = round(seconds)
    hours, minutes = whole_seconds // 3600, whole_seconds // 60 % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole_seconds % 60} s" if minutes else f"{seconds:.1f} s"


def count_text(number: int, noun: str) -> str:
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


SMALL, LARGE, HUGE = 1e-4, 1e7, 1e12
"""A number below the first or above the second is shown with significant digits instead of decimals."""


MIN_DECIMALS = 4


def number_text(value: Optional[float], digits: int = MIN_DECIMALS, *, sign: str = "") -> str:
    """Format a number with as many decimals, or `-` if there is none. With `sign` `+`, a positive one has its sign. A
    small or huge number has significant digits instead, and a large one up to 12."""
    if value is None:
        return "-"
    if abs(value) >= LARGE:
        return f"{value:{sign}.{12 if abs(value) < HUGE else 4}g}"
    if not 0 < abs(value) < SMALL:
        return f"{value:{sign}.{digits}f}"
    num_digits = max(digits + math.floor(math.log10(abs(value))) + 1, min(digits, MIN_DECIMALS))
    return f"{value:{sign}.{num_digits}g}"


def cost_text(value: Optional[float]) -> str:
    """Format a cost with two decimals, or a smaller one with two significant digits; `-` if it is unknown."""
    if value is None or not 0 < value < 0.1:
        return number_text(value, 2)
    return f"{value:.2g}"


def interval_text(interval: Optional[Tuple[float, float]], digits: int = MIN_DECIMALS) -> str:
    return "-" if interval is None else " to ".join(number_text(end, digits) for end in interval)


def probability_text(value: Optional[float]) -> str:
    """Format a probability with three decimals, but never as a rounded 0 or 1."""
    if value is None:
        return "-"
    return "> 0.999" if 0.9995 <= value < 1 else "< 0.001" if 0 < value < 0.0005 else f"{value:.3f}"


def names_text(names: Sequence[str]) -> str:
    """Return names as in `a, b and c`."""
    *first_names, last_name = names
    if not first_names or len(names) > MAX_SHOWN:
        return join_some(names)
    return f"{join_some(first_names)} and {join_some([last_name])}"


def chance_text(share: float) -> str:
    """Return a share of some 200 simulations with two decimals, but never as a rounded 0 or 1."""
    return "> 0.99" if share >= 0.995 else "< 0.01" if share < 0.005 else f"{share:.2f}"
