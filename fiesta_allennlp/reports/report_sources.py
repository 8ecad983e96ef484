"""Reads the source of a report: the selection in a directory, or a table of scores. Nothing is locked or changed.

`fiesta status` reads a directory with this module, so it imports what only documents and tables need inside functions.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Optional, Sequence, Tuple

from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.candidates.splits import Preparation
from fiesta_allennlp.candidates.training_selection import training_result
from fiesta_allennlp.choosing import Strategy
from fiesta_allennlp.choosing.strategy import Decision, Margin, analyse, build_strategy
from fiesta_allennlp.confirming.confirmation import Confirmation
from fiesta_allennlp.core.choice_settings import BELIEF, CONFIDENCE, MAX_FAILURES, OFFICIAL, to_config
from fiesta_allennlp.core.directory import RunDirectory, is_at_work
from fiesta_allennlp.core.errors import ConfigError, StoreError, did_you_mean, full_command, join_some
from fiesta_allennlp.core.records import Candidate, History
from fiesta_allennlp.core.registry import build, build_record, packages_named_in_errors
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.reports.report_settings import UNRECORDED_OPTIONS, ReportSettings
from fiesta_allennlp.selecting.database import translated_store_errors
from fiesta_allennlp.selecting.recovery import ScoreThreshold
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.selecting.results.verdict import failed_notes, judge, with_preference
from fiesta_allennlp.selecting.store import Meta, open_for_reading
from fiesta_allennlp.tables.table_settings import NextSettings, done_note, refuse_table_options

Judging = Tuple[Any, Strategy, Callable[[History, Decision], Result]]
"""The settings and the strategy of a selection, and what makes its result."""


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
    directory = RunDirectory(root)
    with open_for_reading(directory) as store:
        meta, candidates = store.meta(), tuple(store.candidates())
        if not meta.is_started:
            raise StoreError(f"{root}: the selection has not begun its first run, so there is nothing to report yet.")
        if not candidates:
            raise StoreError(f"{root}: the store has no candidates. Restore it from a copy.")
        prepare = _judging_of_documents if meta.kind == "documents" else _judging_of_runs
        settings, strategy, make_result = prepare(meta, candidates, directory)
        history = store.history(max_failures=settings.max_failures)
    decision = strategy.recommend(history)
    if decision.stopped_by is None and not is_at_work(directory, meta.environments):
        decision = replace(decision, stopped_by=_find_stop_reason(root, history))
    result = make_result(history, decision)
    own = [Confirmation.read(directory)] if meta.kind == "confirmation" else Confirmation.read_all(directory)
    return Report(
        source=str(root),
        result=replace(result, running=result.stopped_by is None, directory=root),
        history=history,
        strategy=strategy,
        meta=meta,
        stored_candidates=candidates,
        settings=settings,
        confirmations=tuple(filter(None, own)),
    )


def _judging_of_runs(meta: Meta, candidates: Sequence[Candidate], directory: RunDirectory) -> Judging:
    with translated_store_errors(directory.store):
        settings = meta.to_settings(Settings)
        by_name = {candidate.name: candidate for candidate in candidates}
        preparations = {name: build_record(Preparation, candidate.facts) for name, candidate in by_name.items()}
    with packages_named_in_errors(settings.include_package):
        strategy = build_strategy(settings, list(by_name), minimise=settings.scored_by.minimise)

    def make_result(history: History, decision: Decision) -> Result:
        return training_result(settings, strategy, history, decision, by_name, preparations, seed=str(meta.seed))

    return settings, strategy, make_result


def _judging_of_documents(meta: Meta, candidates: Sequence[Candidate], directory: RunDirectory) -> Judging:
    from fiesta_allennlp.documents.annotated_documents import DocumentFacts
    from fiesta_allennlp.documents.document_selection import DocumentsSetup, build_task
    from fiesta_allennlp.documents.document_settings import DocumentSettings
    from fiesta_allennlp.documents.queries import read_charges

    with translated_store_errors(directory.store):
        settings = meta.to_settings(DocumentSettings)
        facts = build_record(DocumentFacts, meta.document_facts or {})
    setup = DocumentsSetup(settings, build_task(settings), facts, [candidate.name for candidate in candidates])

    def make_result(history: History, decision: Decision) -> Result:
        charges = read_charges(Path(settings.answers or directory.answers), run=str(meta.run))
        return setup.result(history, decision, seed=str(meta.seed), charges=charges)

    return settings, setup.strategy, make_result


def _find_stop_reason(root: Path, history: History) -> Optional[str]:
    """Return why an unfinished selection is not running: the recorded reason, or `interrupted` after a kill."""
    num_scored = len(history.evaluations) + sum(failure.kind == "score" for failure in history.failures)
    try:
        result = Result.read(root)
    except StoreError:
        return "interrupted"
    is_latest = result.num_evaluations + sum(c.num_missed for c in result.candidates) == num_scored
    return result.stopped_by if is_latest else "interrupted"


def read_table(path: Path, settings: ReportSettings, content: Any = None) -> Report:
    """Read a table of scores, and decide about it as `fiesta next` does. A decision about fewer than two candidates
    with scores is not one by confidence."""
    from fiesta_allennlp.tables.table_reader import read_run_table

    rows = read_run_table(path, settings, content)
    rows.refuse_single()
    history = _table_history(rows, settings)
    strategy = _table_strategy(history, settings)
    recommendation = strategy.recommend(history)
    decision = replace(
        analyse(history, strategy.belief, margin=Margin.parse(settings.margin or 0.0)),
        lacking=recommendation.lacking,
        stopped_by="confidence" if recommendation.stopped_by == "confidence" else None,
    )
    result = Result.from_decision(
        history,
        judge(history, decision, strategy, allowed=settings.allow),
        rows.metric,
        splits="" if rows.has_splits else OFFICIAL,
        target=strategy.confidence or CONFIDENCE,
        belief=to_config(settings.belief or BELIEF, "--belief"),
        min_score=settings.min_score,
    )
    return Report(
        source=str(path),
        result=with_preference(result, settings.prefer, rows.costs(settings.prefer or "")),
        history=history,
        strategy=strategy,
        table_notes=(*done_note(settings.done), *failed_notes(history)),
        read_back=rows,
        table_files=() if content is not None else rows.files,
    )


def _table_history(rows: Any, settings: ReportSettings) -> History:
    """Return the runs of a table. It has no order: the first runs of all candidates come before the second ones. A
    candidate with failed runs alone takes no part; one that has only just begun is left out."""
    scored_names = {row.candidate for row in rows.rows if row.is_scored}
    failed_names = {row.candidate for row in rows.rows if isinstance(row.outcome, str)}
    history = rows.history([name for name in rows.candidates if name in scored_names | failed_names])
    evaluations = tuple(sorted(history.evaluations, key=lambda run: run.request.replicate))
    threshold = ScoreThreshold(settings.min_score, rows.metric.minimise)
    history = threshold.apply_to(replace(history, evaluations=evaluations, pending=()))
    history = history.with_withdrawn(max_failures=settings.max_failures or MAX_FAILURES)
    return replace(history, withdrawn=history.withdrawn | (failed_names - scored_names))


def _table_strategy(history: History, settings: ReportSettings) -> Strategy:
    """Return the strategy of `fiesta next`, checked for these runs."""
    from fiesta_allennlp.tables.next_runs import check_tasks

    belief = to_config(settings.belief or BELIEF, "--belief")
    try:
        strategy = build(Strategy, {**NextSettings(margin=settings.margin).strategy_params(), "belief": belief})
    except ConfigError as error:
        raise ConfigError(f"--belief {belief['type']}: {error}") from error
    if len(history.active) > 1:
        strategy.without_further_runs(settings.done, history)
    check_tasks(settings, strategy, history)
    return strategy


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
    candidates = report.history.candidates
    for name in names:
        if name not in candidates:
            hint = f"{did_you_mean(name, candidates, max_names=2)} Candidates: {join_some(candidates)}."
            raise ConfigError(f"{report.source}: unknown candidate '{name}'.{hint}")
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
    facts["num_parameters"] = {candidate.name: candidate.num_parameters for candidate in whole.candidates}
    facts["study_scores"] = {candidate.name: candidate.study_score for candidate in whole.candidates}
    result = Result.from_decision(history, decision, whole.parsed_metric, **facts)
    return replace(report, result=replace(result, running=whole.running), history=history, whole=report)
