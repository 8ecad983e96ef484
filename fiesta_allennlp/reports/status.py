"""The current state of a selection or a search, for `fiesta status`. Nothing is locked or changed."""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Dict, Iterator, List, Literal, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import full_command, join_some
from fiesta_allennlp.core.names import numbered_legend
from fiesta_allennlp.core.records import History
from fiesta_allennlp.isolation.run_queue import RunQueue, Worker
from fiesta_allennlp.reports.fresh_runs import confirmation_in_words, confirmation_table
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.reports.sources import read_directory
from fiesta_allennlp.reports.stored_selection import StoredSelection, open_selection
from fiesta_allennlp.reports.words import decision_in_words, failures_in_words
from fiesta_allennlp.selection.candidate_table import Table, candidate_table
from fiesta_allennlp.selection.confirmation_progress import progress_table
from fiesta_allennlp.selection.facts import forecast_open_selection
from fiesta_allennlp.selection.texts import count_text, duration_text, number_text
from fiesta_allennlp.strategies.forecast import Forecast
from fiesta_allennlp.version import __version__

STATUS_FORMAT = 3
"""The number of the format of `fiesta status --json`, raised where a key is renamed or removed."""

MAX_CONFIGS_SHOWN = 5
"""The number of best configs of a screening to show."""


PendingState = Literal["queued", "running", "interrupted"]


@dataclass(frozen=True)
class PendingRun:
    """A run that has not ended.

    `state` is `queued` until a job or a worker takes the run, then `running`, and `interrupted` if the selection is not
    at work. `job` is the Slurm job or the worker's process, `host` its machine, and `reason` Slurm's reason for which
    the jobs of the selection wait. `executor` is `slurm` or `workers`. Each is empty if it is unknown.
    """

    run: str
    state: PendingState
    candidate: str = ""
    job: str = ""
    host: str = ""
    reason: str = ""
    executor: str = ""


@dataclass(frozen=True)
class WorkerState:
    """A worker of a queue, the run that it makes (None if it makes none), and the seconds since its last sign of
    life."""

    host: str
    process: str
    gpu: str
    run: Optional[str]
    silent_seconds: float


@dataclass(frozen=True)
class Status:
    """A table and the sentences below it, and the same as plain data for `--json`. `running` is about the selection,
    and `is_followed` about its confirmations too."""

    table: Table
    sentences: Tuple[str, ...]
    running: bool
    data: Dict[str, Any]

    @property
    def is_followed(self) -> bool:
        """True while anything in the directory is running."""
        return self.running or any(confirmation["running"] for confirmation in self.data["confirmations"])


def read_status(root: Path) -> Status:
    """Return the state of the selection in a directory, or of the latest stage of a search."""
    directory = RunDirectory(root)
    if directory.screening.store.is_file() and not directory.store.is_file():
        with open_selection(directory.screening.root) as screening:
            status, directory = _make_screening_status(screening), directory.screening
    else:
        status = _make_selection_status(read_directory(root), directory)
    workers = read_workers(directory)
    shared_data = {"format": STATUS_FORMAT, "version": __version__, "directory": str(root), "running": status.running}
    no_data: Dict[str, Any] = dict.fromkeys(("error", "pending", "selection", "screening"))
    data = {**shared_data, **no_data, "confirmations": [], **status.data, "workers": workers or []}
    return replace(status, sentences=(*status.sentences, *_describe_workers(workers, root)), data=data)


def _describe_workers(workers: Optional[Sequence[WorkerState]], root: Path) -> Iterator[str]:
    """List the workers of a selection; None if it has no queue."""
    for worker in workers or ():
        gpu_text = f", GPU {worker.gpu}" if worker.gpu else ""
        silence_text = f"last sign of life {duration_text(round(worker.silent_seconds))} ago"
        yield f"Worker on {worker.host} (process {worker.process}{gpu_text}): {worker.run or 'no run'}, {silence_text}."
    if workers == []:
        yield f"No workers are running. Start one: {full_command('worker')} {root}"


def _make_selection_status(report: Report, directory: RunDirectory) -> Status:
    if report.is_confirmation:
        return _make_confirmation_status(report, directory)
    result = report.result
    pending_runs = read_pending_runs(directory, report.history, is_running=result.running)
    num_queued = Counter(run.candidate for run in pending_runs if run.state == "queued")
    candidates = tuple(
        replace(c, num_pending=c.num_pending - num_queued[c.name], num_queued=num_queued[c.name])
        for c in result.candidates
    )
    num_running = len(report.history.pending) - num_queued.total() if result.running else 0
    result = replace(result, candidates=candidates, forecast=_forecast(report, num_running=num_running))
    run_sentences = (*failures_in_words(result), *decision_in_words(result))
    error = None if report.selection is None or result.running else report.selection.meta.error
    error_text = error and f"The last session ended with an error: {error}"
    last_sentences = (
        *_describe_jobs(pending_runs),
        error_text,
        *report.legend,
        *report.confirmation_sentences,
        None if report.confirmations else _last_finish_text(report.history),
    )
    sentences = tuple(filter(None, (*run_sentences, *last_sentences)))
    data = {
        "error": error,
        "pending": pending_runs,
        "selection": result.content(),
        "confirmations": [confirmation.content() for confirmation in report.confirmations],
    }
    return Status(candidate_table(result, title=result.metric_text), sentences, result.running, data)


def _make_confirmation_status(report: Report, directory: RunDirectory) -> Status:
    """Return the verdicts, and before them nothing but the numbers of runs, because nobody looks before the last."""
    (confirmation,), result = report.confirmations, report.result
    table = confirmation_table([confirmation]) if confirmation.is_over else progress_table(confirmation)
    pending_runs = read_pending_runs(directory, report.history, is_running=result.running)
    error = None if report.selection is None or result.running else report.selection.meta.error
    sentences = (
        *_describe_jobs(pending_runs),
        error and f"The last session ended with an error: {error}",
        *confirmation_in_words(confirmation),
        _last_finish_text(report.history),
    )
    data = {
        "error": error,
        "pending": pending_runs,
        "selection": result.content() if confirmation.is_over else None,
        "confirmations": [confirmation.content()],
    }
    return Status(table, tuple(filter(None, sentences)), result.running, data)


def _forecast(report: Report, *, num_running: int) -> Optional[Forecast]:
    """Forecast the further runs of an open selection, as its live line does. Their time is known while runs are
    running."""
    if report.selection is None or not report.result.running:
        return None
    meta, max_hours = report.selection.meta, getattr(report.settings, "max_hours", None)
    seconds_left = None if max_hours is None else 3600 * max_hours - meta.working_seconds
    decision = report.strategy.recommend(report.history)
    return forecast_open_selection(
        report.strategy,
        report.history,
        decision,
        seed=int(meta.seed or 0),
        workers=num_running,
        seconds_left=seconds_left,
    )


def _describe_jobs(pending_runs: Sequence[PendingRun]) -> Iterator[str]:
    """Name the runs that Slurm jobs have taken, and those that wait for one."""
    taken_runs = (run for run in pending_runs if (run.executor, run.state) == ("slurm", "running"))
    slurm_runs = [f"{run.run} on {run.host or '?'} (job {run.job})" for run in taken_runs]
    if slurm_runs:
        yield f"Running: {join_some(slurm_runs)}."
    queued_runs = [run for run in pending_runs if run.state == "queued"]
    if queued_runs:
        reason = queued_runs[0].reason
        yield f"Queued: {join_some([run.run for run in queued_runs])}{f' (Slurm: {reason})' if reason else ''}."


def _make_screening_status(screening: StoredSelection) -> Status:
    from fiesta_allennlp.searches.screener import failed_configs
    from fiesta_allennlp.searches.search_settings import stored_search

    settings = stored_search(screening.meta)
    history, metric = screening.read_history(max_failures=settings.max_failures), settings.scored_by
    ranked_evaluations = sorted(history.evaluations, key=lambda evaluation: -metric.sign * evaluation.score)
    best_evaluations = ranked_evaluations[:MAX_CONFIGS_SHOWN]
    rows = [[run.request.candidate, number_text(run.score), f"{run.seconds:.0f}"] for run in best_evaluations]
    headings = ("best configs so far", "score", "seconds")
    table = Table(headings, rows, title=f"validation {metric.display_name}")
    num_configs = settings.num_configs or len(screening.candidates)
    state, pending_word = ("running", "running") if screening.is_running else ("interrupted", "pending")
    finished_text = f"{len(history.evaluations)} of {count_text(num_configs, 'config')} finished"
    counts_text = f"{len(failed_configs(history))} failed, {len(history.pending)} {pending_word}"
    value_lines = numbered_legend(screening.candidate_values(run.request.candidate for run in best_evaluations))
    sentences = (f"The screening is {state}.", f"{finished_text}, {counts_text}.", *value_lines)
    sentences = tuple(filter(None, (*sentences, _last_finish_text(history))))
    pending_runs = read_pending_runs(screening.directory, history, is_running=screening.is_running)
    best = {run.request.candidate: run.score for run in best_evaluations}
    counts = {"num_configs": num_configs, "num_finished": len(history.evaluations), "best": best}
    error = None if screening.is_running else screening.meta.error
    data = {"error": error, "pending": pending_runs, "screening": counts}
    return Status(table, sentences, screening.is_running, data)


def _last_finish_text(history: History) -> Optional[str]:
    """State how long ago a run last finished; None if that is unknown."""
    end_times = [
        datetime.fromisoformat(evaluation.started_at).replace(tzinfo=timezone.utc)
        + timedelta(seconds=evaluation.seconds)
        for evaluation in history.evaluations
        if evaluation.started_at
    ]
    if not end_times:
        return None
    seconds_ago = max(0.0, (datetime.now(timezone.utc) - max(end_times)).total_seconds())
    return f"The last run finished {duration_text(round(seconds_ago))} ago."


def read_pending_runs(directory: RunDirectory, history: History, *, is_running: bool) -> List[PendingRun]:
    """Return the pending runs of a history in order. Queues that this user cannot read tell nothing."""
    found: Dict[str, PendingRun] = {}
    with suppress(OSError):
        for queue in RunQueue.open_queues(directory.queue):
            found.update(_runs_of_workers(queue))
        for queue in RunQueue.open_queues(directory.slurm):
            found.update(_runs_of_slurm(queue))
    runs: List[PendingRun] = []
    for request in history.pending:
        default = PendingRun(request.name, state="running" if is_running else "interrupted")
        runs.append(replace(found.get(request.name, default), candidate=request.candidate))
    return runs


def _runs_of_workers(queue: RunQueue) -> Dict[str, PendingRun]:
    runs = {name: PendingRun(name, state="queued", executor="workers") for name in queue.waiting_runs()}
    for claim in queue.taken_claims().values():
        worker = Worker.from_name(claim.job)
        runs[claim.run] = PendingRun(claim.run, state="running", job=worker.pid, host=worker.host, executor="workers")
    return runs


def _runs_of_slurm(queue: RunQueue) -> Dict[str, PendingRun]:
    from fiesta_allennlp.executors.slurm_commands import (  # which the status of other selections does without
        WAITING_STATES,
        JobStatus,
        SlurmUnavailable,
        query_statuses,
    )

    jobs: Mapping[str, JobStatus] = {}
    with suppress(SlurmUnavailable):
        jobs = query_statuses(queue.root.name)
    reason = ", ".join(dict.fromkeys(job.reason for job in jobs.values() if job.state in WAITING_STATES and job.reason))
    runs = {name: PendingRun(name, state="queued", reason=reason, executor="slurm") for name in queue.waiting_runs()}
    for claim in queue.taken_claims().values():
        host = jobs[claim.job].node if claim.job in jobs else ""
        runs[claim.run] = PendingRun(claim.run, state="running", job=claim.job, host=host, executor="slurm")
    return runs


def read_workers(directory: RunDirectory) -> Optional[List[WorkerState]]:
    """Return the workers of a selection; None if it has no queue for workers that this user can read."""
    with suppress(OSError):
        workers: Optional[List[WorkerState]] = None
        for queue in RunQueue.open_queues(directory.queue):
            run_by_worker = {claim.job: claim.run for claim in queue.taken_claims().values()}
            workers = workers or []
            for name, seconds in queue.seconds_since_heartbeat().items():
                worker = Worker.from_name(name)
                workers.append(
                    WorkerState(worker.host, worker.pid, worker.device, run_by_worker.get(name), round(seconds, 1))
                )
        return workers
    return None
