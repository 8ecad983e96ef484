"""From a selection or a table of scores to its report: the call of the command line and of Python."""

import re
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence, Union

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import ConfigError, DataError, StoreError
from fiesta_allennlp.reports.pages import check_output, refuse_link, write_report
from fiesta_allennlp.reports.reading import Reading
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.reports.sources import TableOptions, read_pair, read_source

MIN_SCORES = 2
"""With fewer scores in all there is nothing to report."""

Pathlike = Union[str, Path]


def report(
    source: Optional[Pathlike] = None,
    *,
    output: Optional[Pathlike] = None,
    compare: Optional[Sequence[str]] = None,
    evaluations_per_split: Optional[int] = None,
    belief: Any = None,
    paired: bool = False,
    minimise: bool = False,
    long_table: bool = False,
    columns: Optional[Mapping[str, str]] = None,
    done: Sequence[str] = (),
) -> Report:
    """Report on a selection, on a table of scores, or on two candidates.

    Args:
        source: the directory of a selection, finished or running, or a table of scores as `fiesta-replay` reads it. May
            be left out where `compare` names files.
        output: a directory to write the files of the report into; nothing is written where it is None.
        compare: two candidates of `source`; either may be `PATH:NAME` of another source, or its `PATH` where it has one
            candidate.
        evaluations_per_split: of a JSON table: so many consecutive scores of a candidate share a split (default 1).
        belief: of a table: a registered name or a config (default `split_paired`).
        paired: with `compare` and two tables: splits of equal name are the same.
        minimise: of a table: the lowest mean is the best.
        long_table: writes all columns and the comparisons into `table.tex`, instead of n, mean, sd and P(best).
        columns: of a CSV table: the names that it gives to some of its columns, such as `{"score": "test_f1"}`.
        done: of a table: candidates that get no further runs, which the report says.

    Raises:
        FiestaError: where there is no such source or candidate, an option does not go with it, there are fewer than two
            scores, or the output cannot be written.
    """
    if output is not None:
        check_output(Path(output))
    options = TableOptions(evaluations_per_split, belief, minimise, columns, tuple(done))
    read = _read(source, compare=compare, options=options, paired=paired)
    made = Report.of(_checked(read), pair=compare is not None)
    if output is not None:
        write_report(made, Path(output), long_table=long_table)
    return made


def _read(
    source: Optional[Pathlike], *, compare: Optional[Sequence[str]], options: TableOptions, paired: bool
) -> Reading:
    if compare is None:
        if source is None:
            raise ConfigError("pass the directory of a selection or a table of scores, or two candidates to --compare.")
        if paired:
            raise ConfigError("--paired is about two tables of scores. Add --compare, or leave it out.")
        return read_source(Path(source), options)
    if len(compare) != 2:
        raise ConfigError(f"--compare takes two candidates but got {len(compare)}: {', '.join(compare) or 'none'}.")
    opened = None if source is None else read_source(Path(source), options, least_candidates=1)
    return read_pair((compare[0], compare[1]), opened, options, paired=paired)


def _checked(source: Reading) -> Reading:
    number = len(source.history.evaluations)
    if number >= MIN_SCORES:
        return source
    text = f"{source.name}: a report needs at least {MIN_SCORES} scores but there are {number}."
    raise (StoreError if source.is_selection else DataError)(
        f"{text} Wait until more {source.words.evaluations} have finished." if source.running else f"{text} Add scores."
    )


def default_output(source: Optional[Pathlike], compare: Optional[Sequence[str]]) -> Path:
    """Return where the files go unless told: below the selection, or beside the table. A symbolic link is refused."""
    is_directory = source is None or Path(source).is_dir()
    place = Path(source or "") if is_directory else Path(source or "").parent
    if compare is not None:
        output = place / re.sub(r"[^\w.-]+", "-", "-".join(["compare", *compare]))
    else:
        output = RunDirectory(place).report if is_directory else place / f"{Path(source or '').stem}-report"
    refuse_link(output)
    return output
