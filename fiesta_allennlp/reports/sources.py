"""Reads the source of a report: the selection in a directory, a table of scores, or two candidates."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.beliefs import Belief
from fiesta_allennlp.core.errors import ConfigError, command
from fiesta_allennlp.core.records import Decision, History, Request
from fiesta_allennlp.core.registry import build
from fiesta_allennlp.reports.reading import Reading, only, read_directory
from fiesta_allennlp.reports.settings import OF_REPORTED_TABLES, ReportSettings
from fiesta_allennlp.reports.stored import OF_FILES
from fiesta_allennlp.selection.least_score import LeastScore
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.settings import OFFICIAL, registered
from fiesta_allennlp.strategies import Strategy
from fiesta_allennlp.strategies.base import believed
from fiesta_allennlp.tables.forms import Content
from fiesta_allennlp.tables.settings import NextSettings, done_note
from fiesta_allennlp.tables.sources import METRIC
from fiesta_allennlp.tables.table import is_selection, refuse_table_options, table_from
from fiesta_allennlp.tables.table_reader import read_rows


def read_source(path: Path, settings: ReportSettings, *, least_candidates: int = 2) -> Reading:
    """Read the selection in a directory, or the table in a file."""
    if not is_selection(path):
        return read_table(path, settings, least_candidates=least_candidates)
    refuse_table_options(settings, OF_REPORTED_TABLES, path)
    return read_directory(path, min_score=settings.min_score)


def read_table(path: Path, settings: ReportSettings, content: Content = None, *, least_candidates: int = 2) -> Reading:
    """Read a table of scores, and compute the belief on all scores."""
    rows = read_rows(path, settings, content, is_one_candidate=least_candidates < 2)
    table = table_from(rows, least_candidates)
    history = rows.history(list(table.scores))
    default = "split_paired" if rows.is_paired else "unpaired"
    params = registered(settings.belief or default, "--belief")
    try:
        belief = build(Belief, params)
    except ConfigError as error:
        raise ConfigError(f"--belief {params['type']}: {error}") from error
    # a table has no order: the first runs of all candidates come before the second ones
    evaluations = tuple(sorted(history.evaluations, key=lambda run: run.request.replicate))
    judged = LeastScore(settings.min_score, table.minimise).applied(
        replace(history, evaluations=evaluations, pending=())
    )
    read = Reading(
        name=str(path),
        metric=Metric(METRIC, minimise=table.minimise),
        history=judged,
        decision=Decision(best=None),
        belief=belief,
        belief_name=params["type"],
        splits=OFFICIAL if table.on_official_splits else "",
        table=table,
        table_files=() if content is not None else (str(path), *settings.files),
        min_score=settings.min_score,
        table_notes=(*table.notes, *done_note(settings.done)),
    )
    for name in settings.done:
        read.check_name(name)
    return replace(read, **_conclusion(read, settings.done))


def _conclusion(read: Reading, done: Sequence[str]) -> Dict[str, Any]:
    """Return the decision about a table, and the target confidence if the default strategy would go on."""
    history = read.directed(read.history)
    decision = believed(history, read.belief).decision
    if len(history.candidates) < 2 or decision.best is None:
        return {"decision": decision}
    strategy = build(Strategy, {"type": NextSettings().strategy_params()["type"], "belief": read.belief})
    strategy.without_further_runs(done, history)
    reached = strategy.recommend(history)
    target = None if reached.stopped_by == "confidence" else getattr(strategy, "confidence", None)
    return {"decision": replace(decision, lacking=reached.lacking), "table_target": target}


def read_pair(typed: Tuple[str, str], source: Optional[Reading], settings: ReportSettings) -> Reading:
    """Read two candidates alone, each named as a candidate of `source`, `PATH:NAME`, or a `PATH` with one candidate.

    Evaluations on equal splits are pairs: within one source, and in two selections on equal data. The splits of two
    tables differ, unless `settings.paired` matches them by name."""
    first, second = (_alone(text, source, settings) for text in typed)
    if first.by_documents or second.by_documents:
        raise ConfigError(
            f"--compare does not support selections made with {command('documents')}. Without --compare, the report "
            "covers all systems, with their intervals and P(best)."
        )
    is_one = Path(first.name).resolve() == Path(second.name).resolve()
    if settings.paired and (is_one or first.is_selection or second.is_selection):
        raise ConfigError(
            "--paired is for two tables of scores. A selection, or a single table, already matches its splits. Remove "
            "--paired."
        )
    if not is_one:
        return _joined(first, second, paired=settings.paired)
    names = [*first.history.candidates, *second.history.candidates]
    if names[0] == names[1]:
        raise ConfigError(f"--compare: '{typed[0]}' and '{typed[1]}' are the same candidate. Name two different ones.")
    return (first.whole or first).restricted(names)


def _alone(text: str, source: Optional[Reading], settings: ReportSettings) -> Reading:
    """Read one candidate. The decision is still about all candidates of its source."""
    if source is None or text not in source.history.candidates:
        path, colon, name = text.rpartition(":")
        if colon and Path(path).exists() and not Path(text).exists():
            source, text = read_source(Path(path), settings, least_candidates=1), name
        elif source is None or Path(text).exists():
            source = read_source(Path(text), settings, least_candidates=1)
            names = source.history.candidates
            if len(names) > 1:
                raise ConfigError(
                    f"--compare {text}: found {len(names)} candidates: {', '.join(names)}. Choose one with {text}:NAME."
                )
            text = names[0]
        source.check_name(text)
    parameters = {text: source.num_parameters.get(text)}
    return replace(source, history=only(source.history, [text]), num_parameters=parameters, whole=source)


def _joined(first: Reading, second: Reading, *, paired: bool) -> Reading:
    sides = (first, second)
    typed = [f"{read.name}:{read.history.candidates[0]}" for read in sides]
    metric = _common_metric(first, second, typed)
    if first.scored and second.scored and first.scored != second.scored:
        scored = [f"{name} has scores on the {read.scored} set" for name, read in zip(typed, sides, strict=True)]
        raise ConfigError(f"--compare: {' and '.join(scored)}. Compare scores on the same kind of set.")
    names = [*first.history.candidates, *second.history.candidates]
    names = names if names[0] != names[1] else typed
    one = _renamed(first.history, names[0], {})
    two = _renamed(second.history, names[1], _splits_of_second(first, second, paired=paired))
    history = History(tuple(names), one.evaluations + two.evaluations, failures=one.failures + two.failures)
    joined = replace(first, metric=metric, history=history)
    return replace(
        joined,
        name=f"{first.name} and {second.name}",
        decision=believed(joined.directed(history), joined.belief).decision,
        asked_confidence=None,
        adaptive=first.adaptive or second.adaptive,
        notes=_notes(first, second),
        splits=first.splits if first.splits == second.splits else "",
        test_share=first.test_share if first.test_share == second.test_share else None,
        scored=first.scored if first.scored == second.scored else _doubtful(first, second),
        running=first.running or second.running,
        num_parameters={n: p for n, read in zip(names, sides, strict=True) for p in read.num_parameters.values()},
        stored=None,
        whole=None,
        parts=tuple((name, read.whole or read) for name, read in zip(typed, sides, strict=True)),
    )


def _common_metric(first: Reading, second: Reading, typed: Sequence[str]) -> Metric:
    """Return the metric of both. A table does not name its metric, and may take the direction from the other side."""
    one, two = first.metric, second.metric
    for metric, other in ((one, two), (two, one)):
        if other == metric or (other.name == METRIC and other.minimise <= metric.minimise):
            return metric
    raise ConfigError(
        f"--compare: {typed[0]} has scores of {one.text}, but {typed[1]} has scores of {two.text}. Compare candidates "
        "with the same metric."
    )


def _doubtful(first: Reading, second: Reading) -> str:
    """Return the set of scores where only one side knows it: the validation set, which needs a caveat, or none."""
    return "validation" if "validation" in (first.scored, second.scored) else ""


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


def _renamed(history: History, name: str, splits: Mapping[int, int]) -> History:
    def renamed(request: Request) -> Request:
        return replace(request, candidate=name, split_seed=splits.get(request.split_seed, request.split_seed))

    return History(
        (name,),
        tuple(replace(evaluation, request=renamed(evaluation.request)) for evaluation in history.evaluations),
        failures=tuple(replace(failure, request=renamed(failure.request)) for failure in history.failures),
    )
