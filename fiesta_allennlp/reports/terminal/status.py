"""The current state of a selection, for `fiesta status`. Nothing is locked or changed."""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Dict, Iterator, List, Literal, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.choosing.forecast import Forecast, forecast_open_selection
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import join_some
from fiesta_allennlp.core.records import History
from fiesta_allennlp.core.texts import duration_text
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.reports.report_sources import read_directory
from fiesta_allennlp.reports.words import decision_in_words, failures_in_words
from fiesta_allennlp.running.jobs import Attempt, JobStatus
from fiesta_allennlp.running.slurm import SlurmUnavailable, query_jobs
from fiesta_allennlp.selecting.results.candidate_table import Table, candidate_table
from fiesta_allennlp.version import __version__

STATUS_FORMAT = 3
"""The number of the format of `fiesta status --json`, raised where a key is renamed or removed."""

PendingState = Literal["queued", "running", "interrupted"]


@dataclass(frozen=True)
class PendingRun:
    """A run that has not ended.

    `state` is `queued` while the run waits for its job, then `running`, and `interrupted` if the selection is not at
    work. `job` is the number of its Slurm job, `host` its machine, and `reason` Slurm's reason for which the job waits.
    Each is empty if it is unknown.
    """

    run: str
    state: PendingState
    candidate: str = ""
    job: str = ""
    host: str = ""
    reason: str = ""


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
    """Return the state of the selection in a directory."""
    report, directory = read_directory(root), RunDirectory(root)
    result, meta = report.result, report.meta
    pending_runs = read_pending_runs(directory, report.history, is_running=result.running)
    num_queued = Counter(run.candidate for run in pending_runs if run.state == "queued")
    num_running = len(report.history.pending) - num_queued.total() if result.running else 0
    candidates = (
        replace(c, num_pending=c.num_pending - num_queued[c.name], num_queued=num_queued[c.name])
        for c in result.candidates
    )
    result = replace(result, candidates=tuple(candidates), forecast=_forecast(report, num_running=num_running))
    error = None if meta is None or result.running else meta.error
    sentences = (
        *failures_in_words(result),
        *(() if report.is_confirmation else decision_in_words(result)),  # the verdict of a confirmation decides
        *_describe_jobs(pending_runs),
        error and f"The last session ended with an error: {error}",
        "Continue with --recover." if pending_runs and not result.running else None,
        *report.legend,
        *report.confirmation_sentences,
        None if report.confirmations else _last_finish_text(report.history),
    )
    data = {
        "format": STATUS_FORMAT,
        "version": __version__,
        "directory": str(root),
        "running": result.running,
        "error": error,
        "pending": pending_runs,
        "selection": result.content(),
        "confirmations": [confirmation.content() for confirmation in report.confirmations],
    }
    table = candidate_table(result, title=result.metric_text)
    return Status(table, tuple(filter(None, sentences)), result.running, data)


def _forecast(report: Report, *, num_running: int) -> Optional[Forecast]:
    """Forecast the further runs of an open selection, as its live line does. Their time is known while runs are
    running."""
    meta, max_hours = report.meta, getattr(report.settings, "max_hours", None)
    return forecast_open_selection(
        report.strategy,
        report.history,
        report.strategy.recommend(report.history),
        seed=int((meta and meta.seed) or 0),
        workers=num_running,
        seconds_left=None if max_hours is None or meta is None else 3600 * max_hours - meta.working_seconds,
    )


def _describe_jobs(pending_runs: Sequence[PendingRun]) -> Iterator[str]:
    """Name the runs in Slurm jobs, and those that wait for a job."""
    taken_runs = (run for run in pending_runs if run.job and run.state == "running")
    slurm_runs = [f"{run.run} on {run.host or '?'} (job {run.job})" for run in taken_runs]
    if slurm_runs:
        yield f"Running: {join_some(slurm_runs)}."
    queued_runs = [run for run in pending_runs if run.state == "queued"]
    for reason in dict.fromkeys(run.reason for run in queued_runs):
        runs_text = join_some([run.run for run in queued_runs if run.reason == reason])
        yield f"Queued: {runs_text}{f' (Slurm: {reason})' if reason else ''}."


def _last_finish_text(history: History) -> Optional[str]:
    """State how long ago a run last finished; None if that is unknown."""
    finished = [run for run in history.evaluations if run.started_at]
    if not finished:
        return None
    starts = (datetime.fromisoformat(run.started_at).replace(tzinfo=timezone.utc) for run in finished)
    latest = max(start + timedelta(seconds=run.seconds) for start, run in zip(starts, finished, strict=True))
    seconds_ago = max(0.0, (datetime.now(timezone.utc) - latest).total_seconds())
    return f"The last run finished {duration_text(round(seconds_ago))} ago."


def read_pending_runs(directory: RunDirectory, history: History, *, is_running: bool) -> List[PendingRun]:
    """Return the pending runs of a history in order. Folders that this user cannot read tell nothing."""
    state: PendingState = "running" if is_running else "interrupted"
    attempts: Mapping[str, List[Attempt]] = {}
    with suppress(OSError):
        attempts = Attempt.find_all(directory.jobs)
    latest = {name: found[-1] for name, found in attempts.items() if found[-1].read_outcome() is None}
    statuses: Mapping[str, JobStatus] = {}
    if any(attempt.job and attempt.job.isdigit() for attempt in latest.values()):
        with suppress(SlurmUnavailable):  # an answer that does not come tells nothing
            statuses = query_jobs()
    runs: List[PendingRun] = []
    for request in history.pending:
        run, attempt = PendingRun(request.name, state, request.candidate), latest.get(request.name)
        if attempt is not None:
            job = attempt.job or ""
            status = statuses.get(job, JobStatus())
            is_queued = not attempt.has_begun and (is_running or status.state == "PENDING")
            job_number = job if job.isdigit() else ""
            reason = status.reason if is_queued and status.reason != "None" else ""
            run = replace(run, state="queued" if is_queued else state, job=job_number, host=status.host, reason=reason)
        runs.append(run)
    return runs
