"""What a command refuses unless you accept it by name, with `--allow NAME`."""

from dataclasses import dataclass
from typing import Any, Collection, Dict, Iterable, Sequence, Tuple

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.settings.options import option


@dataclass(frozen=True)
class Objection:
    """A doubt about candidates or scores, which ends a command unless it is allowed.

    Attributes:
        name: what `--allow` takes.
        accepts: what is then accepted, for the help.
        is_kept: whether a selection remembers it. If not, it is for one call.
    """

    name: str
    accepts: str
    is_kept: bool = True

    def check(self, reasons: Iterable[str], allowed: Collection[str]) -> None:
        """Refuse the first of the `reasons`, which need not be looked for if this is allowed. A reason ends with
        another remedy and without a full stop.

        Raises:
            ConfigError: if there is a reason and the name of this objection is not among those `allowed`.
        """
        for reason in () if self.name in allowed else reasons:
            raise ConfigError(f"{reason}, or add --allow {self.name}.")


UNSEEDED = Objection("unseeded", "a program whose command does not use {seed}, and runs that repeat")
PRETRAINED = Objection("pretrained", "with random splits, starting weights that were trained on the same files")
REMOVED = Objection("removed", "with --recover, leaving out candidates, whose runs are kept", is_kept=False)
UNITS = Objection("units", "scores of which some look like fractions, others like percent")

OBJECTIONS = (UNSEEDED, PRETRAINED, REMOVED, UNITS)


def allow_option(group: str, objections: Sequence[Objection] = OBJECTIONS) -> Any:
    """Declare the option `--allow`, below this heading, for some objections."""
    accepted = "; ".join(f"{objection.name}: {objection.accepts}" for objection in objections)
    names = tuple(objection.name for objection in objections)
    kind: Dict[str, Any] = {"choices": names, "is_repeated": True, "is_added": True, "is_rare": True}
    return option((), f"accept what is refused otherwise; {accepted}", group=group, metavar="NAME", **kind)


def kept_allowances(allowed: Iterable[str]) -> Tuple[str, ...]:
    """Return the names of those objections that a selection remembers to be allowed."""
    passing_names = {objection.name for objection in OBJECTIONS if not objection.is_kept}
    return tuple(name for name in allowed if name not in passing_names)
