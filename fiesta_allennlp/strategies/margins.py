"""A margin in units of the score, or in units of the run-to-run sd."""

import re
from dataclasses import dataclass
from typing import Any, Optional, Union

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.probability import check_margin

IN_SDS = re.compile(r"\s*(?P<share>[^\s=]+?)\s*sd\s*(=\s*(?P<number>\S+)\s*)?")


@dataclass(frozen=True)
class Margin:
    """The margin of a strategy: `number` in units of the score, `share` as a part of the run-to-run sd.

    The first runs fix the number of a share, see `FixedConfidence.margin_after`; until then it is None. As text, a
    share is `0.25sd`, and `0.25sd=0.0037` once it is fixed.
    """

    number: Optional[float] = 0.0
    share: Optional[float] = None

    @classmethod
    def of(cls, value: Union[float, str]) -> "Margin":
        """Read a number or a text.

        Raises:
            ConfigError: if it is neither a number of at least 0 nor a share of the sd.
        """
        match = IN_SDS.fullmatch(value) if isinstance(value, str) else None
        try:
            if match is None:
                margin = cls(float(value))
            else:
                fixed = match["number"]
                margin = cls(None if fixed is None else float(fixed), float(match["share"]))
        except (TypeError, ValueError):
            raise ConfigError(
                "margin must be a number in units of the score, or a share of the run-to-run sd such as 0.25sd, but "
                f"is '{value}'."
            ) from None
        for number in (margin.number, margin.share):
            check_margin(number or 0.0)
        return margin

    def fixed(self, sd: float) -> "Margin":
        """Return the share with its number, of two digits, for this run-to-run sd."""
        return Margin(float(f"{(self.share or 0.0) * sd:.2g}"), self.share)

    @property
    def is_above_0(self) -> bool:
        return bool(self.share or self.number)

    @property
    def text(self) -> str:
        if self.share is None:
            return f"{self.number:g}"
        return f"{self.share:g}sd" if self.number is None else f"{self.share:g}sd={self.number:g}"


def is_recorded_margin(new: Any, recorded: Any) -> bool:
    """Return whether a margin is the recorded one, whose number the first runs have fixed."""
    if not (isinstance(new, str) and isinstance(recorded, str)):
        return False
    new_margin, recorded_margin = Margin.of(new), Margin.of(recorded)
    return new_margin.share is not None and new_margin.share == recorded_margin.share and new_margin.number is None


def unfixed(recorded: Any) -> Any:
    """Return a recorded margin without the number that the first runs gave it."""
    return recorded.partition("=")[0] if isinstance(recorded, str) else recorded
