"""From a selection, a table of scores or two candidates to their report: the call of the command line and of Python."""

import re
from pathlib import Path
from typing import Any, Optional, Sequence, Union

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.reports.pages import refuse_symbolic_link, write_report
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.reports.settings import ReportSettings
from fiesta_allennlp.reports.source_data import SourceData, read_selection
from fiesta_allennlp.selection.options import check_setting_names, list_to_tuple
from fiesta_allennlp.tables.settings import is_selection, split_table_argument

PathLike = Union[str, Path]


def report(
    source: Any = None, *, output: Optional[PathLike] = None, compare: Optional[Sequence[str]] = None, **settings: Any
) -> Report:
    """Report on a selection, on a table of scores, or on two candidates.

    Args:
        source: the directory of a selection, finished or running, or a table of scores: a file; a list of files; rows
            as mappings from names of columns to values; a data frame; or a mapping from candidates to their scores.
            Optional if `compare` names files.
        output: the directory for the files of the report. If None, nothing is written.
        compare: two candidates of `source`. Each can also be `PATH:NAME` in another source, or the `PATH` of a source
            with one candidate.
        settings: the command's other options by name, with underscores:

            - `evaluations_per_split`: for a JSON table: the number of consecutive scores of a candidate that share a
              split (default 1).
            - `belief`: for a table: a registered name or a config (default `split_paired`).
            - `paired`: with `compare` and two tables: match splits by name.
            - `minimise`: for a table: the lowest mean is the best.
            - `long_table`: write all columns and the comparisons to `table.tex`, instead of n, mean, sd and P(best).
            - `columns`: for a table: its names for some of the columns, such as `{"score": "test_f1"}`.
            - `where`: for a table: use only rows with these values, such as `{"task": "iris"}`.
            - `wide`: for a table whose headers name candidates, splits or seeds: which of them.
            - `splits`: for a table: `official` if all runs share one official split.
            - `done`: for a table: candidates that get no further runs. The report notes this.

    Raises:
        FiestaError: if the source or a candidate does not exist, an option does not apply to it, or the output cannot
            be written.
    """
    check_setting_names(settings, ReportSettings)
    table_options, content = split_table_argument(settings, source, "source")
    option_values = {name: list_to_tuple(value) for name, value in table_options.items()}
    report_settings = ReportSettings(**{**option_values, "compare": None if compare is None else tuple(compare)})
    report_record = Report.of(_read_sources(report_settings, content), is_pair=compare is not None)
    if output is not None:
        write_report(report_record, Path(output), long_table=report_settings.long_table)
    return report_record


def _read_sources(settings: ReportSettings, content: Any) -> SourceData:
    names = settings.compare
    if names is None and content is None:
        if settings.source is None:
            raise ConfigError("pass the directory of a selection, a table of scores, or two candidates with --compare.")
        if settings.paired:
            raise ConfigError("--paired is for two tables of scores with --compare. Add --compare, or remove --paired.")
        if is_selection(Path(settings.source)):
            return read_selection(Path(settings.source), settings)
    from fiesta_allennlp.reports.tables_and_pairs import read_pair, read_source, read_table  # a selection needs none

    if names is None:
        return read_table(Path(settings.source or "rows"), settings, content)
    if len(names) != 2:
        raise ConfigError(f"--compare takes two candidates but got {len(names)}: {', '.join(names) or 'none'}.")
    source = None
    if content is not None:
        source = read_table(Path("rows"), settings, content, least_candidates=1)
    elif settings.source is not None:
        source = read_source(Path(settings.source), settings, least_candidates=1)
    return read_pair((names[0], names[1]), source, settings)


def default_output(source: Optional[PathLike], compare: Optional[Sequence[str]]) -> Path:
    """Return the default output directory: inside the selection, or next to the table. Refuse a symbolic link."""
    is_directory = source is None or Path(source).is_dir()
    parent = Path(source or "") if is_directory else Path(source or "").parent
    if compare is not None:
        output = parent / re.sub(r"[^\w.-]+", "-", "-".join(["compare", *compare]))
    else:
        output = RunDirectory(parent).report if is_directory else parent / f"{Path(source or '').stem}-report"
    refuse_symbolic_link(output)
    return output
