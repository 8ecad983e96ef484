"""Reads the source of a report, which is either the selection in a directory or a table of scores."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Mapping, Optional, Tuple

from fiesta_allennlp.beliefs import Belief
from fiesta_allennlp.errors import ConfigError, command
from fiesta_allennlp.records import Decision
from fiesta_allennlp.registry import build
from fiesta_allennlp.replays.files import SCORE_ENDINGS, read_scores
from fiesta_allennlp.replays.settings import done_note
from fiesta_allennlp.replays.sources import METRIC
from fiesta_allennlp.replays.table import history_of
from fiesta_allennlp.reports.reading import Reading, read_directory
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.settings import registered
from fiesta_allennlp.strategies.base import believed


@dataclass(frozen=True)
class TableOptions:
    """How to read a table of scores and what to believe of it; a selection knows both itself.

    Attributes:
        evaluations_per_split: so many consecutive scores of a JSON table share a split; 1 where it is None.
        belief: a registered name, or a config, of the belief to compute on all scores; `split_paired` where it is None.
        minimise: the lowest mean is the best. A CSV file can say so itself.
        columns: the names that a CSV file gives to some of its columns.
        done: candidates that get no further runs.
    """

    evaluations_per_split: Optional[int] = None
    belief: Any = None
    minimise: bool = False
    columns: Optional[Mapping[str, str]] = None
    done: Tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.evaluations_per_split is not None and self.evaluations_per_split < 1:
            raise ConfigError(f"--evaluations-per-split must be at least 1 but got {self.evaluations_per_split}.")


def read_source(path: Path, options: TableOptions, *, least_candidates: int = 2) -> Reading:
    """Read the selection in a directory, or the table in a file.

    Raises:
        FiestaError: where there is neither, or it is damaged, or an option does not go with it.
    """
    if path.is_dir():
        if options != TableOptions():
            given = (
                ("belief", options.belief is not None),
                ("minimise", options.minimise),
                ("columns", options.columns is not None),
                ("done", bool(options.done)),
            )
            name = next((name for name, is_given in given if is_given), "evaluations-per-split")
            raise ConfigError(
                f"--{name} is for tables of scores: the selection in {path} has its own. Leave the option out."
            )
        return read_directory(path)
    if path.suffix in SCORE_ENDINGS and path.is_file():
        return read_table(path, options, least_candidates=least_candidates)
    what = "is neither a directory nor a file that ends with .json or .csv" if path.exists() else "does not exist"
    raise ConfigError(
        f"{path}: {what}. Give the directory of a selection, the one after -s, or a table of scores as "
        f"{command('replay')} reads it."
    )


def read_table(path: Path, options: TableOptions, *, least_candidates: int = 2) -> Reading:
    """Read a table of scores, as `fiesta-replay` does.

    Raises:
        ConfigError: where there is no such file or belief.
        DataError: where the content is wrong, or there are fewer than `least_candidates`.
    """
    table = read_scores(path, options.evaluations_per_split, options.columns, least_candidates=least_candidates)
    default = "unpaired" if table.on_official_splits else "split_paired"
    params = registered(options.belief or default, "--belief")
    try:
        belief = build(Belief, params)
    except ConfigError as error:
        raise ConfigError(f"--belief {params['type']}: {error}") from error
    read = Reading(
        name=str(path),
        metric=Metric(METRIC, minimise=options.minimise or table.minimise),
        history=history_of(table),
        decision=Decision(best=None),
        belief=belief,
        belief_name=params["type"],
        table=table,
        table_notes=(*table.notes, *done_note(options.done)),
    )
    for name in options.done:
        read.check_name(name)
    return replace(read, decision=believed(read.directed(read.history), read.belief).decision)
