"""The options of `fiesta confirm`. They import neither NumPy nor AllenNLP, so that help is fast."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Mapping, Optional, Tuple

from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.core.choice_settings import MIN_FRESH_RUNS, POWER, seed_option
from fiesta_allennlp.core.errors import ConfigError, did_you_mean
from fiesta_allennlp.core.options import RESOURCES_GROUP, SettingsRecord, check_values, declared_options, option
from fiesta_allennlp.core.texts import split_names

CONFIRMATION_GROUP = "Confirmation"
NUM_FRESH_RUNS = 10


@dataclass(frozen=True)
class ConfirmSettings(SettingsRecord):
    """The settings of `fiesta confirm`, apart from those about resources, which are those of `fiesta select`."""

    GROUPS: ClassVar[Tuple[str, ...]] = (CONFIRMATION_GROUP,)

    directory: Path = option(Path(), "the directory of the selection", metavar="DIR", parse=Path)
    runs: Optional[int] = option(
        None,
        f"fresh runs of each candidate (default: enough for a power of {POWER}; {NUM_FRESH_RUNS} if no lead was seen)",
        group=CONFIRMATION_GROUP,
        least=MIN_FRESH_RUNS,
    )
    against: Tuple[str, ...] = option(
        (),
        "the rivals of the winner (default: the runner-up); put a name that contains a comma in double quotes",
        group=CONFIRMATION_GROUP,
        metavar="NAME,...",
        parse=split_names,
    )
    seed: Optional[int] = seed_option(CONFIRMATION_GROUP, "a confirmation (default: random, recorded)")


def check_resources(values: Mapping[str, Any]) -> None:
    """Refuse a setting of `fiesta select` that is not about resources: it is that of the selection."""
    resources = [name for name, declaration in declared_options(Settings) if declaration.group == RESOURCES_GROUP]
    for name in values:
        if name not in (*resources, "include_package"):
            hint = did_you_mean(name, resources)
            raise ConfigError(f"'{name}' is not a setting of a confirmation, which has those of its selection.{hint}")
    check_values(values, Settings)
