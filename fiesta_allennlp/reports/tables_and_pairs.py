"""Reads the sources of a report that are not one selection: a table of scores, or two candidates of any sources."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.beliefs import Belief
from fiesta_allennlp.core.defaults import MAX_FAILURES
from fiesta_allennlp.core.errors import ConfigError, full_command
from fiesta_allennlp.core.records import Decision, History, Request
from fiesta_allennlp.core.registry import build
from fiesta_allennlp.reports.settings import ReportSettings
from fiesta_allennlp.reports.source_data import SourceData, read_selection, restrict_history
from fiesta_allennlp.reports.stored_selection import FILES_FINGERPRINT_PREFIX
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.settings import OFFICIAL, to_config
from fiesta_allennlp.selection.summary import ScoreThreshold, failed_notes
from fiesta_allennlp.strategies import Strategy
from fiesta_allennlp.strategies.base import analyse
from fiesta_allennlp.tables.forms import Content
from fiesta_allennlp.tables.settings import NextSettings, done_note, is_selection
from fiesta_allennlp.tables.sources import UNNAMED
from fiesta_allennlp.tables.table import make_score_table
from fiesta_allennlp.tables.table_reader import read_rows


def read_source(path: Path, settings: ReportSettings, *, least_candidates: int = 2) -> SourceData:
    """Read the selection in a directory, or the table in a file."""
    if is_selection(path):
        return read_selection(path, settings)
    return read_table(path, settings, least_candidates=least_candidates)


def read_table(
    path: Path, settings: ReportSettings, content: Content = None, *, least_candidates: int = 2
) -> SourceData:
    """Read a table of scores, and compute the belief on all scores."""
    rows = read_rows(path, settings, content, is_one_candidate=least_candidates < 2)
    table = make_score_table(rows, least_candidates)
    history = rows.history(list(table.scores))
    default_belief = "split_paired" if rows.is_paired else "unpaired"
    belief_params = to_config(settings.belief or default_belief, "--belief")
    try:
        belief = build(Belief, belief_params)
    except ConfigError as error:
        raise ConfigError(f"--belief {belief_params['type']}: {error}") from error
    # a table has no order: the first runs of all candidates come before the second ones
    evaluations = tuple(sorted(history.evaluations, key=lambda run: run.request.replicate))
    history = ScoreThreshold(settings.min_score, table.minimise).apply_to(
        replace(history, evaluations=evaluations, pending=())
    )
    history = history.with_withdrawn(max_failures=settings.max_failures or MAX_FAILURES)
    source = SourceData(
        name=str(path),
        metric=table.metric,
        history=history,
        decision=Decision(best=None),
        belief=belief,
        belief_name=belief_params["type"],
        splits=OFFICIAL if table.on_official_splits else "",
        table=table,
        table_files=() if content is not None else (str(path), *settings.files),
        min_score=settings.min_score,
        limit_is_late=settings.min_score is not None,
        table_notes=(*done_note(settings.done), *failed_notes(history)),
    )
    for name in settings.done:
        source.check_name(name)
    return replace(source, **_decide_table(source, settings.done))


def _decide_table(source: SourceData, done_candidates: Sequence[str]) -> Dict[str, Any]:
    """Return the decision about a table, and the target confidence if the default strategy would go on."""
    history = source.history_for_belief(source.history)
    decision = analyse(history, source.belief).decision
    if len(history.candidates) < 2 or decision.best is None:
        return {"decision": decision}
    strategy = build(Strategy, {"type": NextSettings().strategy_params()["type"], "belief": source.belief})
    strategy.without_further_runs(done_candidates, history)
    recommendation = strategy.recommend(history)
    target_confidence = None if recommendation.stopped_by == "confidence" else getattr(strategy, "confidence", None)
    return {"decision": replace(decision, lacking=recommendation.lacking), "table_target": target_confidence}


def read_pair(selectors: Tuple[str, str], source: Optional[SourceData], settings: ReportSettings) -> SourceData:
    """Read two candidates alone, each named as a candidate of `source`, `PATH:NAME`, or a `PATH` with one candidate.

    Evaluations on equal splits are pairs: within one source, and in two selections on equal data. The splits of two
    tables differ, unless `settings.paired` matches them by name."""
    first, second = (_read_candidate(text, source, settings) for text in selectors)
    if first.by_documents or second.by_documents:
        raise ConfigError(
            f"--compare does not support selections made with {full_command('documents')}. Without --compare, the "
            "report covers all systems, with their intervals and P(best)."
        )
    is_same_source = Path(first.name).resolve() == Path(second.name).resolve()
    if settings.paired and (is_same_source or first.is_selection or second.is_selection):
        raise ConfigError(
            "--paired is for two tables of scores. A selection, or a single table, already matches its splits. Remove "
            "--paired."
        )
    if not is_same_source:
        return _join_sources(first, second, paired=settings.paired)
    names = [*first.history.candidates, *second.history.candidates]
    if names[0] == names[1]:
        raise ConfigError(
            f"--compare: '{selectors[0]}' and '{selectors[1]}' are the same candidate. Name two different ones."
        )
    return (first.full_source or first).restrict(names)


def _read_candidate(selector: str, source: Optional[SourceData], settings: ReportSettings) -> SourceData:
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
    return replace(
        source, history=restrict_history(source.history, [selector]), num_parameters=parameters, full_source=source
    )


def _join_sources(first: SourceData, second: SourceData, *, paired: bool) -> SourceData:
    sources = (first, second)
    labels = [f"{source.name}:{source.history.candidates[0]}" for source in sources]
    metric = _choose_metric(first, second, labels)
    if first.scored and second.scored and first.scored != second.scored:
        set_texts = [
            f"{name} has scores on the {source.scored} set" for name, source in zip(labels, sources, strict=True)
        ]
        raise ConfigError(f"--compare: {' and '.join(set_texts)}. Compare scores on the same kind of set.")
    names = [*first.history.candidates, *second.history.candidates]
    names = names if names[0] != names[1] else labels
    first_history = _rename_history(first.history, names[0], {})
    second_history = _rename_history(second.history, names[1], _map_second_splits(first, second, paired=paired))
    history = History(
        tuple(names),
        first_history.evaluations + second_history.evaluations,
        failures=first_history.failures + second_history.failures,
    )
    joined = replace(first, metric=metric, history=history)
    one_sided_set = "validation" if "validation" in (first.scored, second.scored) else ""  # which needs a caveat
    return replace(
        joined,
        name=f"{first.name} and {second.name}",
        decision=analyse(joined.history_for_belief(history), joined.belief).decision,
        asked_confidence=None,
        adaptive=first.adaptive or second.adaptive,
        notes=(*_data_notes(first, second), *_metric_notes(first.metric, second.metric)),
        splits=first.splits if first.splits == second.splits else "",
        test_share=first.test_share if first.test_share == second.test_share else None,
        scored=first.scored if first.scored == second.scored else one_sided_set,
        running=first.running or second.running,
        num_parameters={n: p for n, source in zip(names, sources, strict=True) for p in source.num_parameters.values()},
        selection=None,
        full_source=None,
        compared=tuple((name, source.full_source or source) for name, source in zip(labels, sources, strict=True)),
    )


def _choose_metric(first: SourceData, second: SourceData, labels: Sequence[str]) -> Metric:
    """Return the metric of both. The name of a table's score column says little, so a table may take the metric and its
    direction from the other side."""
    sides = ((side.is_selection, side.metric.minimise, side.metric != UNNAMED, side.metric) for side in (first, second))
    (*_, metric), (is_selection, minimise, _, other_metric) = sorted(sides, key=lambda side: side[:3], reverse=True)
    if other_metric == metric or (not is_selection and minimise <= metric.minimise):
        return metric
    raise ConfigError(
        f"--compare: {labels[0]} has scores of {first.metric.display_name}, but {labels[1]} has scores of "
        f"{second.metric.display_name}. Compare candidates with the same metric."
    )


def _data_notes(first: SourceData, second: SourceData) -> Tuple[str, ...]:
    if not (first.data_fingerprint and second.data_fingerprint) or first.data_fingerprint.startswith(
        FILES_FINGERPRINT_PREFIX
    ) != second.data_fingerprint.startswith(FILES_FINGERPRINT_PREFIX):
        return ("It is unknown whether the two were scored on the same data.",)
    if first.data_fingerprint != second.data_fingerprint:
        return ("The two were scored on different data, so a difference is not due to the models alone.",)
    if first.on_official_splits != second.on_official_splits:
        return ("One was scored on the official split and the other on random ones, which may cause a difference.",)
    return ()


def _metric_notes(first: Metric, second: Metric) -> Tuple[str, ...]:
    if first.name == second.name or UNNAMED.name in (first.name, second.name):
        return ()
    return (f"The scores are {first.name} on one side and {second.name} on the other. Check that both are one metric.",)


def _map_second_splits(first: SourceData, second: SourceData, *, paired: bool) -> Mapping[int, int]:
    """Map the split seeds of the second source to those of the first."""
    if paired:
        return _match_splits_by_name(first, second)
    has_official_splits = first.on_official_splits or second.on_official_splits
    if first.data_fingerprint and first.data_fingerprint == second.data_fingerprint and not has_official_splits:
        return {}
    second_splits = sorted({evaluation.request.split_seed for evaluation in second.history.evaluations})
    first_unused_seed = 1 + max((evaluation.request.split_seed for evaluation in first.history.evaluations), default=0)
    return {split: first_unused_seed + index for index, split in enumerate(second_splits)}


def _match_splits_by_name(first: SourceData, second: SourceData) -> Dict[int, int]:
    first_splits, second_splits = (() if side.table is None else side.table.split_names for side in (first, second))
    split_indices = {name: index for index, name in enumerate(first_splits)}
    if split_indices.keys().isdisjoint(second_splits):
        raise ConfigError(
            f"--paired: {first.name} and {second.name} have no split in common: their first "
            f"splits are '{first_splits[0]}' and '{second_splits[0]}'. Use the same name for a split in both tables, "
            "or remove --paired."
        )
    return {split: split_indices.setdefault(name, len(split_indices)) for split, name in enumerate(second_splits)}


def _rename_history(history: History, name: str, split_seeds: Mapping[int, int]) -> History:
    def rename_request(request: Request) -> Request:
        return replace(request, candidate=name, split_seed=split_seeds.get(request.split_seed, request.split_seed))

    return History(
        (name,),
        tuple(replace(evaluation, request=rename_request(evaluation.request)) for evaluation in history.evaluations),
        failures=tuple(replace(failure, request=rename_request(failure.request)) for failure in history.failures),
    )
