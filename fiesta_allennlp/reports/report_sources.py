"""Reads the source of a report: the selection in a directory, or a table of scores. Nothing is locked or changed.

`fiesta status` reads a directory with this module, so it imports what only documents and tables need inside functions.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Mapping, Sequence

from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.candidates.training_selection import training_result
from fiesta_allennlp.choosing import Strategy
from fiesta_allennlp.choosing.decision import Decision
from fiesta_allennlp.choosing.strategy import Margin, analyse
from fiesta_allennlp.choosing.strategy_building import build_strategy, packages_named_in_errors
from fiesta_allennlp.choosing.task_choice import check_tasks
from fiesta_allennlp.confirming.fresh_runs import read_confirmation, read_confirmations
from fiesta_allennlp.core.errors import ConfigError, did_you_mean, full_command, join_some
from fiesta_allennlp.core.records import History
from fiesta_allennlp.core.registry import build, build_record
from fiesta_allennlp.core.settings.choice_settings import OFFICIAL, to_config
from fiesta_allennlp.core.settings.defaults import BELIEF, CONFIDENCE, MAX_FAILURES
from fiesta_allennlp.core.settings.metrics import Metric
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.reports.report_settings import UNRECORDED_OPTIONS, ReportSettings
from fiesta_allennlp.reports.stored_selection import StoredSelection, open_selection
from fiesta_allennlp.selecting.database import translated_store_errors
from fiesta_allennlp.selecting.failures import ScoreThreshold
from fiesta_allennlp.selecting.results.preference import with_preference
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.selecting.results.result_words import failed_notes
from fiesta_allennlp.selecting.results.verdict import judge
from fiesta_allennlp.tables.table_settings import NextSettings, done_note, refuse_table_options
from fiesta_allennlp.tables.task_scales import refuse_unequal_scales


def read_selection(root: Path, settings: ReportSettings) -> Report:
    """Read the selection in a directory. Refuse options that are for tables of scores, and a
    confirmation, which is in the report of its selection."""
    refuse_table_options(settings, UNRECORDED_OPTIONS, root)
    report = read_directory(root)
    report = replace(report, result=with_preference(report.result, settings.prefer, {}))
    if report.is_confirmation:
        raise ConfigError(f"{root}: this is a confirmation. Pass the directory of its selection, {root.parent}.")
    return report


def read_directory(root: Path) -> Report:
    """Read the selection in a directory."""
    with open_selection(root) as selection:
        if selection.meta.kind == "documents":
            return _read_documents(selection)
        return _read_runs(selection)


def _read_runs(selection: StoredSelection) -> Report:
    with translated_store_errors(selection.directory.store):
        settings = selection.meta.to_settings(Settings)
    score_threshold = ScoreThreshold.from_settings(selection.meta.settings or {})
    with packages_named_in_errors(settings.include_package):
        strategy = build_strategy(settings, selection.names, minimise=settings.scored_by.minimise)
    history = selection.read_history(max_failures=settings.max_failures, score_threshold=score_threshold)
    decision, trials = _decide(selection, history, strategy), selection.trials
    scores_in_study = {name: trial.score for name, trial in trials.items()}
    result = training_result(
        settings, strategy, history, decision, selection.preparations, scores_in_study, seed=str(selection.meta.seed)
    )
    return _report(selection, settings, strategy, history, result)


def _report(selection: StoredSelection, settings: Any, strategy: Strategy, history: History, result: Result) -> Report:
    """Return the report with the confirmations of the selection, or the one that it is itself."""
    directory = selection.directory
    if selection.meta.kind == "confirmation":
        confirmations = tuple(filter(None, [read_confirmation(directory)]))
    else:
        confirmations = read_confirmations(directory)
    return Report(
        source=str(directory.root),
        result=replace(result, running=result.stopped_by is None, directory=directory.root),
        history=history,
        strategy=strategy,
        selection=selection,
        settings=settings,
        confirmations=confirmations,
    )


def _read_documents(selection: StoredSelection) -> Report:
    from fiesta_allennlp.documents.answers import read_charges
    from fiesta_allennlp.documents.choice import DocumentFacts, DocumentsSetup, answers_path, build_task
    from fiesta_allennlp.documents.document_settings import DocumentSettings

    with translated_store_errors(selection.directory.store):
        settings = selection.meta.to_settings(DocumentSettings)
        document_facts = build_record(DocumentFacts, selection.meta.document_facts or {})
    choice = DocumentsSetup.of(settings, build_task(settings), document_facts, selection.names)
    history = selection.read_history(max_failures=settings.max_failures)
    charges = read_charges(answers_path(settings, selection.directory), run=str(selection.meta.run))
    decision = _decide(selection, history, choice.strategy)
    result = choice.result(history, decision, seed=str(selection.meta.seed), charges=charges)
    return _report(selection, settings, choice.strategy, history, result)


def _decide(selection: StoredSelection, history: History, strategy: Strategy) -> Decision:
    """Return the decision about a selection, and why it has stopped if it is not at work."""
    decision = strategy.recommend(history)
    if decision.stopped_by is None and not selection.is_running:
        return replace(decision, stopped_by=selection.find_stop_reason(history))
    return decision


def read_table(path: Path, settings: ReportSettings, content: Any = None) -> Report:
    """Read a table of scores, and decide about it as `fiesta next` does."""
    from fiesta_allennlp.tables.run_table import read_run_table
    from fiesta_allennlp.tables.table import make_score_table

    rows = read_run_table(path, settings, content)
    table = make_score_table(rows)
    history = _table_history(rows, settings)
    belief = to_config(settings.belief or BELIEF, "--belief")
    try:
        strategy = build(Strategy, {**NextSettings(margin=settings.margin).strategy_params(), "belief": belief})
    except ConfigError as error:
        raise ConfigError(f"--belief {belief['type']}: {error}") from error
    for name in settings.done:
        check_name(str(path), history, name)
    result = _table_result(history, strategy, settings, table.metric, belief, on_official=table.on_official_splits)
    return Report(
        source=str(path),
        result=with_preference(result, settings.prefer, rows.costs(settings.prefer or "")),
        history=history,
        strategy=strategy,
        table_notes=(*done_note(settings.done), *failed_notes(history)),
        table=table,
        table_files=() if content is not None else rows.files,
    )


def _table_history(rows: Any, settings: ReportSettings) -> History:
    """Return the runs of a table. It has no order: the first runs of all candidates come before the second ones. A
    candidate with failed runs alone takes no part; one that has only just begun is left out."""
    scored_names = {row.candidate for row in rows.rows if row.is_scored}
    failed_names = {row.candidate for row in rows.rows if isinstance(row.outcome, str)}
    history = rows.history([name for name in rows.candidates if name in scored_names | failed_names])
    evaluations = tuple(sorted(history.evaluations, key=lambda run: run.request.replicate))
    threshold = ScoreThreshold(settings.min_score, rows.minimise)
    history = threshold.apply_to(replace(history, evaluations=evaluations, pending=()))
    history = history.with_withdrawn(max_failures=settings.max_failures or MAX_FAILURES)
    return replace(history, withdrawn=history.withdrawn | (failed_names - scored_names))


def _table_result(
    history: History,
    strategy: Strategy,
    settings: ReportSettings,
    metric: Metric,
    belief: Mapping[str, Any],
    *,
    on_official: bool,
) -> Result:
    """Decide about a table. A decision about fewer than two candidates with scores is not one by confidence."""
    if len(history.active) > 1:
        strategy.without_further_runs(settings.done, history)
    check_tasks(strategy, history)
    recommendation = strategy.recommend(history)
    refuse_unequal_scales(settings, recommendation.posterior, tuple(history.by_task))
    is_decided = recommendation.stopped_by == "confidence"
    decision = replace(
        analyse(history, strategy.belief, margin=Margin.parse(settings.margin or 0.0)),
        lacking=recommendation.lacking,
        stopped_by="confidence" if is_decided else None,
    )
    facts: Dict[str, Any] = {
        "belief": belief,
        "min_score": settings.min_score,
        "target": strategy.confidence or CONFIDENCE,
    }
    decision = judge(history, decision, strategy, allowed=settings.allow)
    return Result.from_decision(history, decision, metric, splits=OFFICIAL if on_official else "", **facts)


def check_name(source: str, history: History, name: str) -> None:
    """Refuse the name of an unknown candidate."""
    names = history.candidates
    if name not in names:
        suggestion = did_you_mean(name, names, max_names=2)
        raise ConfigError(f"{source}: unknown candidate '{name}'.{suggestion} Candidates: {join_some(names)}.")


PAIR_FACTS = ("target", "belief", "strategy", "splits", "score", "min_score", "sets")
"""The fields of a result that a report on two of its candidates has too."""


def restrict_to_pair(report: Report, names: Sequence[str]) -> Report:
    """Return the report on two candidates, withdrawn or not, with a decision about them alone."""
    if len(names) != 2:
        raise ConfigError(f"--compare takes two candidates but got {len(names)}: {join_some(names) or 'none'}.")
    if not report.result.compared:
        raise ConfigError(
            f"--compare does not support several tasks, or selections made with {full_command('documents')}. Without "
            "--compare, the report covers everybody, with P(best)."
        )
    for name in names:
        check_name(report.source, report.history, name)
    if names[0] == names[1]:
        raise ConfigError(f"--compare: '{names[0]}' is named twice. Name two different candidates.")
    history = History(
        candidates=tuple(names),
        evaluations=tuple(run for run in report.history.evaluations if run.request.candidate in names),
        failures=tuple(failure for failure in report.history.failures if failure.request.candidate in names),
        sign=report.history.sign,
    )
    whole = report.result
    decision = analyse(history, report.belief, margin=Margin(whole.margin))
    facts = {name: getattr(whole, name) for name in PAIR_FACTS}
    for plural, name in (("num_parameters", "num_parameters"), ("study_scores", "study_score")):
        facts[plural] = {candidate.name: getattr(candidate, name) for candidate in whole.candidates}
    result = Result.from_decision(history, decision, whole.parsed_metric, **facts)
    return replace(report, result=replace(result, running=whole.running), history=history, whole=report)
