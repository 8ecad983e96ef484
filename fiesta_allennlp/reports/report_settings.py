"""The options of `fiesta-status` and of `fiesta-report` as records."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Optional, Tuple

from fiesta_allennlp.core.choice_settings import BELIEF, CONFIG_METAVAR, MAX_FAILURES, ChoiceSettings, splits_option
from fiesta_allennlp.core.options import SettingsRecord, option, restated_option
from fiesta_allennlp.tables.table_settings import SCORES_GROUP, TABLE_OPTIONS, NextSettings, TableSettings

REPORT_GROUP, FOLLOW_GROUP = "Report", "Following"

UNRECORDED_OPTIONS = (*TABLE_OPTIONS, "done", "splits", "belief", "margin", "max_failures", "min_score")
"""The settings of a report that a selection has recorded."""


@dataclass(frozen=True)
class StatusSettings(SettingsRecord):
    """The settings of `fiesta status`. Names and defaults are those of the command's options."""

    GROUPS: ClassVar[Tuple[str, ...]] = (FOLLOW_GROUP,)

    directory: Path = option(Path(), "the directory of the selection", metavar="DIR", parse=Path)
    follow: bool = option(
        False, "print the table repeatedly until the selection ends", group=FOLLOW_GROUP, can_be_undone=False
    )
    json: bool = option(
        False, "print one JSON object; with --follow one per line", group=FOLLOW_GROUP, can_be_undone=False
    )
    every: float = option(10.0, "with --follow: seconds between tables", group=FOLLOW_GROUP, metavar="SECONDS", above=0)


@dataclass(frozen=True)
class ReportSettings(TableSettings):
    """The settings of `fiesta report`, which are the arguments of `reports.report_files.report`."""

    GROUPS: ClassVar[Tuple[str, ...]] = (REPORT_GROUP, SCORES_GROUP)

    source: Optional[str] = option(
        None, "the directory of a selection, or a table of scores", metavar="DIR|SCORES.json|SCORES.csv"
    )
    output: Optional[Path] = option(
        None,
        "directory of the report (default: DIR/report, NAME-report next to a table, or compare-A-B)",
        group=REPORT_GROUP,
        metavar="DIR",
        parse=Path,
    )
    compare: Optional[Tuple[str, ...]] = option(
        None, "report on two candidates only, each by its name", group=REPORT_GROUP, metavar=("A", "B")
    )
    splits: Optional[str] = splits_option(SCORES_GROUP, default=None)
    belief: Any = option(
        None,
        f"for a table of scores: model of the scores (default {BELIEF})",
        group=SCORES_GROUP,
        metavar=CONFIG_METAVAR,
    )
    margin: Any = restated_option(ChoiceSettings, "margin", group=SCORES_GROUP)
    prefer: Optional[str] = restated_option(NextSettings, "prefer", group=REPORT_GROUP)
    max_failures: Optional[int] = option(
        None,
        f"for a table of scores: drop a candidate after this number of failed runs (default {MAX_FAILURES})",
        group=SCORES_GROUP,
        metavar="N",
        least=1,
    )
