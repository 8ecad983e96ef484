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
    def of(cls, typed: Union[float, str]) -> "Margin":
        """Read a number or a text.

        Raises:
            ConfigError: if it is neither a number of at least 0 nor a share of the sd.
        """
        found = IN_SDS.fullmatch(typed) if isinstance(typed, str) else None
        try:
            if found is None:
                made = cls(float(typed))
            else:
                fixed = found["number"]
                made = cls(None if fixed is None else float(fixed), float(found["share"]))
        except (TypeError, ValueError):
            raise ConfigError(
                "margin must be a number in units of the score, or a share of the run-to-run sd such as 0.25sd, but "
                f"is '{typed}'."
            ) from None
        for number in (made.number, made.share):
            check_margin(number or 0.0)
        return made

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


def kept_margin(typed: Any, recorded: Any) -> bool:
    """Return whether a margin is the recorded one, whose number the first runs have fixed."""
    if not (isinstance(typed, str) and isinstance(recorded, str)):
        return False
    one, other = Margin.of(typed), Margin.of(recorded)
    return one.share is not None and one.share == other.share and one.number is None


def unfixed(recorded: Any) -> Any:
    """Return a recorded margin without the number that the first runs gave it."""
    return recorded.partition("=")[0] if isinstance(recorded, str) else recorded
