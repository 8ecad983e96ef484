"""From a selection, a table of scores or two candidates to their report: the call of the command line and of Python."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union

from fiesta_allennlp.beliefs import Belief
from fiesta_allennlp.core.defaults import MAX_FAILURES
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, full_command
from fiesta_allennlp.core.records import Decision, History, Request
from fiesta_allennlp.core.registry import build
from fiesta_allennlp.reports.pages import refuse_link, write_report
from fiesta_allennlp.reports.reading import Reading, only, read_directory
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.reports.settings import TABLE_OPTIONS, ReportSettings
from fiesta_allennlp.reports.stored import FILES_PREFIX
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.options import check_setting_names, list_to_tuple
from fiesta_allennlp.selection.settings import OFFICIAL, to_config
from fiesta_allennlp.selection.summary import ScoreThreshold, failed_notes
from fiesta_allennlp.strategies import Strategy
from fiesta_allennlp.strategies.base import believed
from fiesta_allennlp.tables.forms import Content
from fiesta_allennlp.tables.settings import NextSettings, done_note, table_settings
from fiesta_allennlp.tables.sources import UNNAMED
from fiesta_allennlp.tables.table import is_selection, refuse_table_options, table_from
from fiesta_allennlp.tables.table_reader import read_rows


def read_source(path: Path, settings: ReportSettings, *, least_candidates: int = 2) -> Reading:
    """Read the selection in a directory, or the table in a file."""
    if not is_selection(path):
        return read_table(path, settings, least_candidates=least_candidates)
    refuse_table_options(settings, TABLE_OPTIONS, path)
    return read_directory(path, min_score=settings.min_score)


def read_table(path: Path, settings: ReportSettings, content: Content = None, *, least_candidates: int = 2) -> Reading:
    """Read a table of scores, and compute the belief on all scores."""
    rows = read_rows(path, settings, content, is_one_candidate=least_candidates < 2)
    table = table_from(rows, least_candidates)
    history = rows.history(list(table.scores))
    default = "split_paired" if rows.is_paired else "unpaired"
    params = to_config(settings.belief or default, "--belief")
    try:
        belief = build(Belief, params)
    except ConfigError as error:
        raise ConfigError(f"--belief {params['type']}: {error}") from error
    # a table has no order: the first runs of all candidates come before the second ones
    evaluations = tuple(sorted(history.evaluations, key=lambda run: run.request.replicate))
    history = ScoreThreshold(settings.min_score, table.minimise).apply_to(
        replace(history, evaluations=evaluations, pending=())
    )
    history = history.with_withdrawn(max_failures=settings.max_failures or MAX_FAILURES)
    reading = Reading(
        name=str(path),
        metric=table.metric,
        history=history,
        decision=Decision(best=None),
        belief=belief,
        belief_name=params["type"],
        splits=OFFICIAL if table.on_official_splits else "",
        table=table,
        table_files=() if content is not None else (str(path), *settings.files),
        min_score=settings.min_score,
        limit_is_late=settings.min_score is not None,
        table_notes=(*table.notes, *done_note(settings.done), *failed_notes(history)),
    )
    for name in settings.done:
        reading.check_name(name)
    return replace(reading, **_table_decision(reading, settings.done))


def _table_decision(reading: Reading, done_candidates: Sequence[str]) -> Dict[str, Any]:
    """Return the decision about a table, and the target confidence if the default strategy would go on."""
    history = reading.directed(reading.history)
    decision = believed(history, reading.belief).decision
    if len(history.candidates) < 2 or decision.best is None:
        return {"decision": decision}
    strategy = build(Strategy, {"type": NextSettings().strategy_params()["type"], "belief": reading.belief})
    strategy.without_further_runs(done_candidates, history)
    recommendation = strategy.recommend(history)
    target = None if recommendation.stopped_by == "confidence" else getattr(strategy, "confidence", None)
    return {"decision": replace(decision, lacking=recommendation.lacking), "table_target": target}


def read_pair(texts: Tuple[str, str], source: Optional[Reading], settings: ReportSettings) -> Reading:
    """Read two candidates alone, each named as a candidate of `source`, `PATH:NAME`, or a `PATH` with one candidate.

    Evaluations on equal splits are pairs: within one source, and in two selections on equal data. The splits of two
    tables differ, unless `settings.paired` matches them by name."""
    first_reading, second_reading = (_single_candidate(text, source, settings) for text in texts)
    if first_reading.by_documents or second_reading.by_documents:
        raise ConfigError(
            f"--compare does not support selections made with {full_command('documents')}. Without --compare, the "
            "report covers all systems, with their intervals and P(best)."
        )
    is_same_source = Path(first_reading.name).resolve() == Path(second_reading.name).resolve()
    if settings.paired and (is_same_source or first_reading.is_selection or second_reading.is_selection):
        raise ConfigError(
            "--paired is for two tables of scores. A selection, or a single table, already matches its splits. Remove "
            "--paired."
        )
    if not is_same_source:
        return _joined(first_reading, second_reading, paired=settings.paired)
    names = [*first_reading.history.candidates, *second_reading.history.candidates]
    if names[0] == names[1]:
        raise ConfigError(f"--compare: '{texts[0]}' and '{texts[1]}' are the same candidate. Name two different ones.")
    return (first_reading.unrestricted or first_reading).restricted(names)


def _single_candidate(selector: str, source: Optional[Reading], settings: ReportSettings) -> Reading:
    """Read one candidate. The decision is still about all candidates of its source."""
    if source is None or selector not in source.history.candidates:
        path, colon, name = selector.rpartition(":")
        if colon and Path(path).exists() and not Path(selector).exists():
            source, selector = read_source(Path(path), settings, least_candidates=1), name
        elif source is None or Path(selector).exists():
            source = read_source(Path(selector), settings, least_candidates=1)
            names = source.history.candidates
            if len(names) > 1:
                raise ConfigError(
                    f"--compare {selector}: found {len(names)} candidates: {', '.join(names)}. "
                    f"Choose one with {selector}:NAME."
                )
            selector = names[0]
        source.check_name(selector)
    parameters = {selector: source.num_parameters.get(selector)}
    return replace(source, history=only(source.history, [selector]), num_parameters=parameters, unrestricted=source)


def _joined(first: Reading, second: Reading, *, paired: bool) -> Reading:
    sides = (first, second)
    labels = [f"{side.name}:{side.history.candidates[0]}" for side in sides]
    metric = _common_metric(first, second, labels)
    if first.scored and second.scored and first.scored != second.scored:
        set_notes = [f"{name} has scores on the {side.scored} set" for name, side in zip(labels, sides, strict=True)]
        raise ConfigError(f"--compare: {' and '.join(set_notes)}. Compare scores on the same kind of set.")
    names = [*first.history.candidates, *second.history.candidates]
    names = names if names[0] != names[1] else labels
    first_history = _renamed(first.history, names[0], {})
    second_history = _renamed(second.history, names[1], _splits_of_second(first, second, paired=paired))
    history = History(
        tuple(names),
        first_history.evaluations + second_history.evaluations,
        failures=first_history.failures + second_history.failures,
    )
    joined = replace(first, metric=metric, history=history)
    return replace(
        joined,
        name=f"{first.name} and {second.name}",
        decision=believed(joined.directed(history), joined.belief).decision,
        asked_confidence=None,
        adaptive=first.adaptive or second.adaptive,
        notes=(*_notes(first, second), *_note_on_metrics(first.metric, second.metric)),
        splits=first.splits if first.splits == second.splits else "",
        test_share=first.test_share if first.test_share == second.test_share else None,
        scored=first.scored if first.scored == second.scored else _one_sided_set(first, second),
        running=first.running or second.running,
        num_parameters={n: p for n, side in zip(names, sides, strict=True) for p in side.num_parameters.values()},
        stored=None,
        unrestricted=None,
        compared=tuple((name, side.unrestricted or side) for name, side in zip(labels, sides, strict=True)),
    )


def _common_metric(first: Reading, second: Reading, names: Sequence[str]) -> Metric:
    """Return the metric of both. The name of a table's score column says little, so a table may take the metric and its
    direction from the other side."""
    first_metric, second_metric = first.metric, second.metric
    sides = ((side.is_selection, side.metric.minimise, side.metric != UNNAMED, side.metric) for side in (first, second))
    (*_, metric), (is_selection, minimise, _, other_metric) = sorted(sides, key=lambda side: side[:3], reverse=True)
    if other_metric == metric or (not is_selection and minimise <= metric.minimise):
        return metric
    raise ConfigError(
        f"--compare: {names[0]} has scores of {first_metric.display_name}, but {names[1]} has scores of "
        f"{second_metric.display_name}. Compare candidates with the same metric."
    )


def _one_sided_set(first: Reading, second: Reading) -> str:
    """Return the set of scores where only one side knows it: the validation set, which needs a caveat, or none."""
    return "validation" if "validation" in (first.scored, second.scored) else ""


def _notes(first: Reading, second: Reading) -> Tuple[str, ...]:
    if not (first.data and second.data) or first.data.startswith(FILES_PREFIX) != second.data.startswith(FILES_PREFIX):
        return ("It is unknown whether the two were scored on the same data.",)
    if first.data != second.data:
        return ("The two were scored on different data, so a difference is not due to the models alone.",)
    if first.on_official_splits != second.on_official_splits:
        return ("One was scored on the official split and the other on random ones, which may cause a difference.",)
    return ()


def _note_on_metrics(first: Metric, second: Metric) -> Tuple[str, ...]:
    if first.name == second.name or UNNAMED.name in (first.name, second.name):
        return ()
    return (f"The scores are {first.name} on one side and {second.name} on the other. Check that both are one metric.",)


def _splits_of_second(first: Reading, second: Reading, *, paired: bool) -> Mapping[int, int]:
    """Map the split seeds of the second source to those of the first."""
    if paired:
        return _match_split_names(first, second)
    on_official = first.on_official_splits or second.on_official_splits
    if first.data and first.data == second.data and not on_official:
        return {}
    second_splits = sorted({evaluation.request.split_seed for evaluation in second.history.evaluations})
    first_unused = 1 + max((evaluation.request.split_seed for evaluation in first.history.evaluations), default=0)
    return {split: first_unused + index for index, split in enumerate(second_splits)}


def _match_split_names(first: Reading, second: Reading) -> Dict[int, int]:
    first_splits, second_splits = (() if side.table is None else side.table.split_names for side in (first, second))
    split_indices = {name: index for index, name in enumerate(first_splits)}
    if split_indices.keys().isdisjoint(second_splits):
        raise ConfigError(
            f"--paired: {first.name} and {second.name} have no split in common: their first "
            f"splits are '{first_splits[0]}' and '{second_splits[0]}'. Use the same name for a split in both tables, "
            "or remove --paired."
        )
    return {split: split_indices.setdefault(name, len(split_indices)) for split, name in enumerate(second_splits)}


def _renamed(history: History, name: str, splits: Mapping[int, int]) -> History:
    def renamed(request: Request) -> Request:
        return replace(request, candidate=name, split_seed=splits.get(request.split_seed, request.split_seed))

    return History(
        (name,),
        tuple(replace(evaluation, request=renamed(evaluation.request)) for evaluation in history.evaluations),
        failures=tuple(replace(failure, request=renamed(failure.request)) for failure in history.failures),
    )


Pathlike = Union[str, Path]


def report(
    source: Any = None,
    *,
    output: Optional[Pathlike] = None,
    compare: Optional[Sequence[str]] = None,
    **settings: Any,
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
    table_options, content = table_settings(settings, source, "source")
    option_values = {name: list_to_tuple(value) for name, value in table_options.items()}
    report_settings = ReportSettings(**{**option_values, "compare": None if compare is None else tuple(compare)})
    report_record = Report.of(_read_sources(report_settings, content), pair=compare is not None)
    if output is not None:
        write_report(report_record, Path(output), long_table=report_settings.long_table)
    return report_record


def _read_sources(settings: ReportSettings, content: Content) -> Reading:
    source, compare = settings.source, settings.compare
    if compare is None:
        if content is not None:
            return read_table(Path("rows"), settings, content)
        if source is None:
            raise ConfigError("pass the directory of a selection, a table of scores, or two candidates with --compare.")
        if settings.paired:
            raise ConfigError("--paired is for two tables of scores with --compare. Add --compare, or remove --paired.")
        return read_source(Path(source), settings)
    if len(compare) != 2:
        raise ConfigError(f"--compare takes two candidates but got {len(compare)}: {', '.join(compare) or 'none'}.")
    source_reading = None if source is None else read_source(Path(source), settings, least_candidates=1)
    if content is not None:
        source_reading = read_table(Path("rows"), settings, content, least_candidates=1)
    return read_pair((compare[0], compare[1]), source_reading, settings)


def default_output(source: Optional[Pathlike], compare: Optional[Sequence[str]]) -> Path:
    """Return the default output directory: inside the selection, or next to the table. Refuse a symbolic link."""
    is_directory = source is None or Path(source).is_dir()
    parent = Path(source or "") if is_directory else Path(source or "").parent
    if compare is not None:
        output = parent / re.sub(r"[^\w.-]+", "-", "-".join(["compare", *compare]))
    else:
        output = RunDirectory(parent).report if is_directory else parent / f"{Path(source or '').stem}-report"
    refuse_link(output)
    return output
