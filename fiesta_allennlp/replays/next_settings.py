"""The options of `fiesta-next` as one record."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Mapping, Optional, Tuple

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.replays.settings import SCORES, columns_option, done_option, minimise_option, separated
from fiesta_allennlp.selection.options import option
from fiesta_allennlp.selection.settings import CHOOSING, OFFICIAL, RESOURCES, ChoiceSettings, splits_option


@dataclass(frozen=True)
class NextSettings(ChoiceSettings):
    """The settings of `fiesta-next`. Names and defaults are those of the command's options.

    `scores` is a CSV file, or empty for rows of Python. `candidates` are those that may have no row yet. `columns` maps
    names of columns to the names in the file.
    """

    GROUPS: ClassVar[Tuple[str, ...]] = (SCORES, CHOOSING, RESOURCES)

    scores: str = option(
        "",
        "a CSV file with the columns candidate, score and seed, and split if runs have random splits. Leave the score "
        "empty while a run has not finished; write `failed` if it gave none",
        metavar="SCORES.csv",
    )
    candidates: Tuple[str, ...] = option(
        (),
        "candidates that have no row yet; put a name with a comma between double quotes",
        group=SCORES,
        metavar="A,B,...",
        parse=separated,
    )
    columns: Optional[Mapping[str, str]] = columns_option(SCORES)
    done: Tuple[str, ...] = done_option(SCORES)
    minimise: bool = minimise_option(SCORES)
    splits: Optional[str] = splits_option(SCORES, default=None)
    workers: int = option(1, "number of runs to name (default 1)", group=RESOURCES, least=1)
    max_failures: int = option(
        3, "drop a candidate after this number of failed runs (default 3)", group=RESOURCES, least=1
    )
    seed: int = option(
        0,
        "seed of the random choices; the same table and seed give the same answer (default 0)",
        group=RESOURCES,
        metavar="N",
        least=0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scores and Path(self.scores).suffix != ".csv":
            raise ConfigError(
                f"'{self.scores}' is not a CSV file. Give the table to which each run adds a row. An empty table has "
                "only the line candidate,split,seed,score; name its candidates with --candidates."
            )

    @property
    def on_official_splits(self) -> bool:
        return self.splits == OFFICIAL
