"""What trainings cost in seconds, and what they would have cost."""

from typing import Any, Mapping, Optional, Sequence


def seconds_of_equal_allocation(candidates: Sequence[Mapping[str, Any]], best: Optional[str]) -> Optional[float]:
    """What it would have cost to evaluate every candidate as often as the leading one: n_best sum_i s_i, where s_i is
    the mean seconds of an evaluation of candidate i.

    `candidates` are entries of `selection.json`. None where nobody leads. Candidates without an evaluation, whose mean
    is not known, are left out.
    """
    num_evaluations = {candidate["name"]: candidate["num_evaluations"] for candidate in candidates}
    if best is None or not num_evaluations[best]:
        return None
    known = [candidate["mean_seconds"] for candidate in candidates if candidate["num_evaluations"]]
    return float(num_evaluations[best] * sum(known))


def duration_text(seconds: float) -> str:
    """In the two largest units of hours, minutes and seconds."""
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{seconds:.1f} s"
