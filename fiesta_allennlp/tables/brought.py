"""Reads runs that exist already, for `fiesta select --scores`."""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, List, Mapping, Tuple

from fiesta_allennlp.core.files import file_digest
from fiesta_allennlp.core.origin import Origin
from fiesta_allennlp.core.records import Outcome, Request
from fiesta_allennlp.selection.brought import BroughtRuns
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.settings import OFFICIAL, SHARED
from fiesta_allennlp.tables.forms import Content
from fiesta_allennlp.tables.read_back import ReadBack
from fiesta_allennlp.tables.settings import BroughtSettings, TableSettings
from fiesta_allennlp.tables.table_reader import read_rows


def read_brought_runs(
    settings: BroughtSettings, selection_settings: Mapping[str, Any], content: Content = None
) -> "BroughtTable":
    """Read the table that the settings name, or its `content` from Python, for a selection with these settings.

    Raises:
        ConfigError: if the file does not exist or a setting does not fit.
        DataError: if the table is wrong, with the line and the value.
    """
    path = Path(str(settings.scores or "rows"))
    is_official = selection_settings.get("splits") == OFFICIAL
    minimise = Metric.parse(selection_settings.get("metric") or "").minimise
    columns = {name: getattr(settings, name) for name in ("columns", "where", "wide")}
    table_settings = _ReaderSettings(**columns, minimise=minimise, splits=OFFICIAL if is_official else SHARED)
    table = read_rows(path, table_settings, content, is_one_candidate=True)
    history = table.history()
    origin = Origin(file=path.name)
    num_runs: Counter[str] = Counter()
    outcomes: List[Outcome] = []
    table_outcomes: Tuple[Outcome, ...] = (*history.evaluations, *history.failures)
    for outcome in table_outcomes:
        name = outcome.request.candidate
        num_runs[name] += 1
        request = Request(name, -num_runs[name], -1 - outcome.request.split_seed, 0, 0, 0)
        outcomes.append(replace(outcome, request=request, origin=origin, seconds=0.0))  # another selection's time
    digest = file_digest(path) if content is None else ""
    runs = BroughtRuns(path.name, digest, table.has_splits, tuple(outcomes))
    return BroughtTable(runs, table.read_back)


@dataclass(frozen=True)
class BroughtTable:
    """The runs of a table, and what was understood of it."""

    runs: BroughtRuns
    read_back: ReadBack


@dataclass(frozen=True)
class _ReaderSettings(TableSettings):
    splits: Any = None
