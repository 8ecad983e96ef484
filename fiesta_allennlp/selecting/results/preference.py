"""The cheapest candidate that is good enough: within a margin of the best with the target probability."""

from dataclasses import dataclass, replace
from typing import Any, Dict, List, Mapping, Optional

from fiesta_allennlp.core.errors import ConfigError, join_some
from fiesta_allennlp.core.texts import probability_text


@dataclass(frozen=True)
class Preference:
    """The candidate `name` with the lowest cost `by` which is good enough, and its `cost`. Both are None if nobody is
    good enough yet."""

    by: str
    name: Optional[str] = None
    cost: Optional[float] = None


def with_preference(result: Any, by: Optional[str], costs: Mapping[str, float]) -> Any:
    """Return a result with the cheapest candidate whose probability to be within the margin of the best is at least the
    target. Without `by`, it stays as it is.

    Args:
        result: a `Result` with a margin.
        by: `seconds` of a run, `parameters`, or the name of a column.
        costs: mean of that column for each candidate; empty if there is no such column.

    Raises:
        ConfigError: if there is no margin, or the cost of a candidate that is good enough is unknown.
    """
    if by is None:
        return result
    if not result.margin:
        raise ConfigError(f"--prefer {by} needs --margin, within which a candidate is as good as the best.")
    known = {"seconds": lambda c: c.mean_seconds, "parameters": lambda c: c.num_parameters}.get(by, lambda c: None)
    good = [c for c in result.candidates if not c.withdrawn and (c.prob_within_margin or 0.0) >= result.target]
    own: Dict[str, Any] = {c.name: known(c) or costs.get(c.name) for c in good}
    unknown = [name for name, cost in own.items() if cost is None]
    if unknown:
        raise ConfigError(f"--prefer {by}: nothing tells '{by}' of {join_some(unknown)}. Name a column of numbers.")
    name = min(own, key=lambda name: (own[name], name), default=None)
    return replace(result, preferred=Preference(by, name, None if name is None else float(own[name])))


def describe_preference(result: Any) -> List[str]:
    """Name the cheapest candidate that is good enough."""
    chosen = result.preferred
    if chosen is None:
        return []
    if chosen.name is None:
        return [f"Nobody is within {result.margin:g} of the best with the target probability yet."]
    candidate = next(c for c in result.candidates if c.name == chosen.name)
    chance = f"within {result.margin:g} of the best with probability {probability_text(candidate.prob_within_margin)}"
    return [f"Preferred by {chosen.by}: {chosen.name} ({chosen.cost:g}), {chance}."]
