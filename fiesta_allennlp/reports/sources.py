"""Reads the source of a report: the selection in a directory, a table of scores, or two candidates."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Dict, Mapping, Optional, Tuple

from fiesta_allennlp.beliefs import Belief
from fiesta_allennlp.errors import ConfigError, command
from fiesta_allennlp.records import Decision, History, Request
from fiesta_allennlp.registry import build
from fiesta_allennlp.replays.settings import done_note
from fiesta_allennlp.replays.sources import METRIC
from fiesta_allennlp.replays.table import history_of, is_selection, read_scores, refuse_table_options
from fiesta_allennlp.reports.reading import Reading, only, read_directory
from fiesta_allennlp.reports.settings import OF_TABLES, ReportSettings
from fiesta_allennlp.reports.stored import OF_FILES
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.settings import registered
from fiesta_allennlp.strategies.base import believed


def read_source(path: Path, settings: ReportSettings, *, least_candidates: int = 2) -> Reading:
    """Read the selection in a directory, or the table in a file."""
    if not is_selection(path):
        return read_table(path, settings, least_candidates=least_candidates)
    refuse_table_options(settings, OF_TABLES, path)
    return read_directory(path)


def read_table(path: Path, settings: ReportSettings, *, least_candidates: int = 2) -> Reading:
    """Read a table of scores as `fiesta replay` does, and compute the belief on all scores."""
    table = read_scores(path, settings, least_candidates=least_candidates)
    default = "unpaired" if table.on_official_splits else "split_paired"
    params = registered(settings.belief or default, "--belief")
    try:
        belief = build(Belief, params)
    except ConfigError as error:
        raise ConfigError(f"--belief {params['type']}: {error}") from error
    read = Reading(
        name=str(path),
        metric=Metric(METRIC, minimise=settings.minimise or table.minimise),
        history=history_of(table),
        decision=Decision(best=None),
        belief=belief,
        belief_name=params["type"],
        table=table,
        table_notes=(*table.notes, *done_note(settings.done)),
    )
    for name in settings.done:
        read.check_name(name)
    return replace(read, decision=believed(read.directed(read.history), read.belief).decision)


@dataclass(frozen=True)
class _Side:
    source: Reading
    name: str
    typed: str


def read_pair(typed: Tuple[str, str], source: Optional[Reading], settings: ReportSettings) -> Reading:
    """Read two candidates alone, each named as a candidate of `source`, `PATH:NAME`, or a `PATH` with one candidate.

    Evaluations on equal splits are pairs: within one source, and in two selections on equal data. The splits of two
    tables differ, unless `settings.paired` matches them by name."""
    first, second = (_side(text, source, settings) for text in typed)
    sources = first.source, second.source
    if any(each.by_documents for each in sources):
        raise ConfigError(
            f"--compare does not support selections made with {command('documents')}. Without --compare, the report "
            "covers all systems, with their intervals and P(best)."
        )
    is_one = Path(first.source.name).resolve() == Path(second.source.name).resolve()
    if settings.paired and (is_one or any(each.is_selection for each in sources)):
        raise ConfigError(
            "--paired is for two tables of scores. A selection, or a single table, already matches its splits. Remove "
            "--paired."
        )
    if not is_one:
        return _joined(first, second, paired=settings.paired)
    if first.name == second.name:
        raise ConfigError(f"--compare: '{typed[0]}' and '{typed[1]}' are the same candidate. Name two different ones.")
    return first.source.restricted([first.name, second.name])


def _side(text: str, source: Optional[Reading], settings: ReportSettings) -> _Side:
    if source is not None and text in source.history.candidates:
        return _Side(source, text, text)
    path, colon, name = text.rpartition(":")
    if colon and Path(path).exists() and not Path(text).exists():
        opened = read_source(Path(path), settings, least_candidates=1)
        opened.check_name(name)
        return _Side(opened, name, text)
    if source is not None and not Path(text).exists():
        source.check_name(text)
    opened = read_source(Path(text), settings, least_candidates=1)
    names = opened.history.candidates
    if len(names) > 1:
        listed = ", ".join(names)
        raise ConfigError(f"--compare {text}: found {len(names)} candidates: {listed}. Choose one with {text}:NAME.")
    return _Side(opened, names[0], text)


def _joined(first: _Side, second: _Side, *, paired: bool) -> Reading:
    metric = _common_metric(first, second)
    if first.source.scored != second.source.scored and first.source.is_selection and second.source.is_selection:
        scored = [f"{side.typed} has scores on the {side.source.scored} set" for side in (first, second)]
        raise ConfigError(f"--compare: {' and '.join(scored)}. Compare scores on the same kind of set.")
    names = [first.name, second.name] if first.name != second.name else [first.typed, second.typed]
    splits = _splits_of_second(first.source, second.source, paired=paired)
    one, two = _renamed(first, names[0], {}), _renamed(second, names[1], splits)
    history = History(tuple(names), one.evaluations + two.evaluations, failures=one.failures + two.failures)
    joined = replace(first.source, metric=metric, history=history)
    return replace(
        joined,
        name=f"{first.source.name} and {second.source.name}",
        decision=believed(joined.directed(history), joined.belief).decision,
        asked_confidence=None,
        is_selection=False,
        adaptive=first.source.adaptive or second.source.adaptive,
        notes=_notes(first.source, second.source),
        splits=first.source.splits if first.source.splits == second.source.splits else "",
        test_share=first.source.test_share if first.source.test_share == second.source.test_share else None,
        scored="validation" if "validation" in (first.source.scored, second.source.scored) else "test",
        running=first.source.running or second.source.running,
        num_parameters={
            name: side.source.num_parameters[side.name]
            for name, side in zip(names, (first, second), strict=True)
            if side.name in side.source.num_parameters
        },
        stored=None,
        parts=tuple((side.typed, side.source) for side in (first, second)),
    )


def _common_metric(first: _Side, second: _Side) -> Metric:
    """Return the metric of both. A table does not name its metric, and may take the direction from the other side."""
    one, two = first.source.metric, second.source.metric
    if one == two or (two.name == METRIC and two.minimise <= one.minimise):
        return one
    if one.name == METRIC and one.minimise <= two.minimise:
        return two
    raise ConfigError(
        f"--compare: {first.typed} has scores of {one.text}, but {second.typed} has scores of {two.text}. Compare "
        "candidates with the same metric."
    )


def _notes(first: Reading, second: Reading) -> Tuple[str, ...]:
    if not (first.data and second.data) or first.data.startswith(OF_FILES) != second.data.startswith(OF_FILES):
        return ("It is unknown whether the two were scored on the same data.",)
    if first.data != second.data:
        return ("The two were scored on different data, so a difference is not due to the models alone.",)
    if first.on_official_splits != second.on_official_splits:
        return ("One was scored on the official split and the other on random ones, which may cause a difference.",)
    return ()


def _splits_of_second(first: Reading, second: Reading, *, paired: bool) -> Mapping[int, int]:
    """Map the split seeds of the second source to those of the first."""
    if paired:
        return _by_name(first, second)
    on_official = first.on_official_splits or second.on_official_splits
    if first.data and first.data == second.data and not on_official:
        return {}
    theirs = sorted({evaluation.request.split_seed for evaluation in second.history.evaluations})
    unused = 1 + max((evaluation.request.split_seed for evaluation in first.history.evaluations), default=0)
    return {split: unused + number for number, split in enumerate(theirs)}


def _by_name(first: Reading, second: Reading) -> Dict[int, int]:
    mine, theirs = (() if read.table is None else read.table.split_names for read in (first, second))
    numbers = {name: number for number, name in enumerate(mine)}
    if numbers.keys().isdisjoint(theirs):
        raise ConfigError(
            f"--paired: {first.name} and {second.name} have no split in common: their first splits are '{mine[0]}' "
            f"and '{theirs[0]}'. Use the same name for a split in both tables, or remove --paired."
        )
    return {split: numbers.setdefault(name, len(numbers)) for split, name in enumerate(theirs)}


def _renamed(side: _Side, name: str, splits: Mapping[int, int]) -> History:
    def renamed(request: Request) -> Request:
        return replace(request, candidate=name, split_seed=splits.get(request.split_seed, request.split_seed))

    own = only(side.source.history, [side.name])
    return History(
        (name,),
        tuple(replace(evaluation, request=renamed(evaluation.request)) for evaluation in own.evaluations),
        failures=tuple(replace(failure, request=renamed(failure.request)) for failure in own.failures),
    )
