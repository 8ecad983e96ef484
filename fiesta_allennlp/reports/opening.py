"""From what was typed to the source of a report."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.reports.score_file import SCORE_ENDINGS, from_scores
from fiesta_allennlp.reports.selection_directory import from_directory
from fiesta_allennlp.reports.source import Source


@dataclass(frozen=True)
class TableOptions:
    """How to read a table of scores and what to believe of it; see `from_scores`. A selection knows both itself."""

    evaluations_per_split: Optional[int] = None
    belief: Any = None

    def __post_init__(self) -> None:
        if self.evaluations_per_split is not None and self.evaluations_per_split < 1:
            raise ConfigError(f"--evaluations-per-split must be at least 1 but got {self.evaluations_per_split}.")


def open_source(path: Path, options: TableOptions, *, least_candidates: int = 2) -> Source:
    """The selection in a directory, or the table in a file.

    # Raises

    `FiestaError` : where there is neither, or it is damaged, or an option does not go with it.
    """
    if path.is_dir():
        if options != TableOptions():
            name = "belief" if options.belief is not None else "evaluations-per-split"
            raise ConfigError(
                f"--{name} is for tables of scores: the selection in {path} keeps to its own. Leave the option out."
            )
        return from_directory(path)
    if path.suffix in SCORE_ENDINGS and path.is_file():
        return from_scores(
            path,
            evaluations_per_split=options.evaluations_per_split,
            belief=options.belief,
            least_candidates=least_candidates,
        )
    what = "is neither a directory nor a file that ends with .json or .csv" if path.exists() else "does not exist"
    raise ConfigError(
        f"{path}: {what}. Give the directory of a selection, the one after -s, or a table of scores as fiesta-replay "
        "reads it."
    )
