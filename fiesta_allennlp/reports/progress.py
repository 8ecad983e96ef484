"""The progress of a selection: the live table or the lines of one that is running here, and `fiesta status`, which
locks and changes nothing."""

import time
from collections import Counter
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Callable, Collection, Iterator, Literal, Mapping, Optional, Sequence, Union

from rich.console import Console

from fiesta_allennlp.choosing.forecast import forecast_open_selection
from fiesta_allennlp.choosing.strategy import Decision
from fiesta_allennlp.core.directory import RunDirectory, is_locked
from fiesta_allennlp.core.errors import StoreError, join_some
from fiesta_allennlp.core.files import shorten
from fiesta_allennlp.core.records import Failure, History, Outcome
from fiesta_allennlp.core.texts import count_text, duration_text, number_text, probability_text
from fiesta_allennlp.reports.report_sources import read_directory
from fiesta_allennlp.reports.words import decision_in_words, failures_in_words
from fiesta_allennlp.running.jobs import Attempt, JobStatus
from fiesta_allennlp.running.slurm import SlurmUnavailable, query_jobs
from fiesta_allennlp.selecting.loop import Listener
from fiesta_allennlp.selecting.results.candidate_table import Table, candidate_table
from fiesta_allennlp.selecting.results.facts import describe_collapsed_runs, describe_other_metrics, runs_left_text
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.selecting.store import open_for_reading
from fiesta_allennlp.version import __version__

MAX_NAME = 14
"""Characters of a name in a line of progress before it is cut. A line has at most 100."""


@dataclass(eq=False)
class LiveTable(Listener):
    """Shows a running selection: as a live table on a terminal, elsewhere as a line for one finished evaluation in
    `report_every`, and for each failure, whose error is shown once. `make_result` returns the result with the facts to
    show, once after every outcome."""

    console: Console
    _: KW_ONLY
    make_result: Callable[[History, Decision], Result]
    report_every: int = 1
    find_queued: Callable[[], Collection[str]] = tuple
    _noted: set[str] = field(default_factory=set, init=False)
    _first_run_by_error: dict[str, str] = field(default_factory=dict, init=False)
    _num_finished: int = field(default=0, init=False)
    _start: float = field(default_factory=time.monotonic, init=False)
    _history: History = field(default=History(()), init=False)
    _decision: Decision = field(default=Decision(None), init=False)
    _result: Optional[Result] = field(default=None, init=False)
    _pending_line: Optional[str] = field(default=None, init=False)
    _live: Any = field(default=None, init=False)

    def __enter__(self) -> "LiveTable":
        if self.console.is_terminal:
            from rich.live import Live  # late, because quick commands import this module for its tables

            self._live = Live(
                console=self.console, refresh_per_second=2, transient=True, get_renderable=self._build_table
            )
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._print_pending_line()
        if self._live is not None:
            self._live.stop()

    def on_state(self, history: History, decision: Decision) -> None:
        old_counts = len(self._history.evaluations), len(self._history.failures)
        is_new = old_counts != (len(history.evaluations), len(history.failures))
        self._history, self._decision = history, decision
        if self.console.quiet:
            return
        if is_new or self._result is None:
            self._result = self.make_result(history, decision)
            result = self._result
            notes = {note: note for note in describe_other_metrics(result.metric_name, result.other_metrics)}
            for runs in result.collapsed:
                notes[runs.candidate] = describe_collapsed_runs(runs, minimise=result.minimise)
            for subject in [subject for subject in notes if subject not in self._noted]:
                self._print_line(f"Note: {notes[subject]}")
            self._noted |= notes.keys()
        self._print_pending_line()

    def on_outcome(self, outcome: Outcome) -> None:
        """Print the outcome of a run. A finished run waits for the decision that it leads to."""
        if isinstance(outcome, Failure):
            retry_text = " (will be retried after a pause)" if outcome.kind == "machine" else ""
            place_text = "" if outcome.origin.is_only_machine else f" on {outcome.origin.machine}"
            failure_text = f"{outcome.request.name} failed ({outcome.kind}) after {outcome.seconds:.1f} s{place_text}"
            first_run = self._first_run_by_error.setdefault(outcome.error, outcome.request.name)
            error_text = outcome.error if first_run == outcome.request.name else f"the error of {first_run}"
            self._print_line(f"{failure_text}: {error_text}{retry_text}")
            return
        self._num_finished += 1
        if not self.console.is_terminal and self._num_finished % self.report_every == 0:
            candidate = outcome.request.candidate
            number = outcome.request.name.removeprefix(candidate)
            self._pending_line = f"{shorten(candidate, MAX_NAME)}{number} {number_text(outcome.score)}"

    def _print_pending_line(self) -> None:
        if self._pending_line is not None:
            best, confidence = self._decision.best, self._decision.confidence
            lead = ""
            if best is not None and confidence is not None:
                lead = f"; {shorten(best, MAX_NAME)} P(best) {probability_text(confidence)}"
            self._print_line(self._pending_line + lead + self._runs_left_text)
            self._pending_line = None

    @property
    def _runs_left_text(self) -> str:
        """The further runs, after a semicolon; not for a selection that is over."""
        is_over = self._result is None or self._decision.stopped_by is not None
        text = "" if is_over else runs_left_text(self._result)
        return text and f"; {text}"

    def _print_line(self, text: str) -> None:
        self.console.print(f"[{self._elapsed_text}] {text}")

    @property
    def _elapsed_text(self) -> str:
        return str(timedelta(seconds=int(time.monotonic() - self._start)))

    def _build_table(self) -> Union[Table, str]:
        history, result = self._history, self._result
        if result is None:
            return ""
        queued_names = {*self.find_queued()}
        num_queued = Counter(request.candidate for request in history.pending if request.name in queued_names)
        queued_text = f", {num_queued.total()} queued" if num_queued else ""
        running_text = f"{len(history.pending) - num_queued.total()} running{queued_text}"
        runs_text = f"{count_text(len(history.evaluations), 'run')}, {running_text}"
        title = f"{result.metric_text}: {runs_text}, {self._elapsed_text} elapsed{self._runs_left_text}"
        return candidate_table(_with_queued(result, num_queued), title=title)


def _with_queued(result: Result, num_queued: Mapping[str, int]) -> Result:
    """Return a result whose pending runs leave out those that are queued."""
    numbers = ((candidate, num_queued.get(candidate.name, 0)) for candidate in result.candidates)
    return replace(
        result,
        candidates=tuple(replace(c, num_pending=c.num_pending - number, num_queued=number) for c, number in numbers),
    )


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
    """A table and the sentences below it, and the same as plain data for `--json`."""

    table: Table
    sentences: tuple[str, ...]
    data: dict[str, Any]

    @property
    def is_running(self) -> bool:
        """True while the selection or one of its confirmations runs."""
        return any(part["running"] for part in (self.data, *self.data["confirmations"]))


def is_starting(root: Path) -> bool:
    """Return whether a selection at work in a directory has not begun its first run, because it checks candidates."""
    directory, is_at_work = RunDirectory(root), False
    with suppress(OSError, StoreError):
        is_at_work = is_locked(directory)
        with open_for_reading(directory) as store:
            return is_at_work and not store.meta().is_started
    return is_at_work


def read_status(root: Path) -> Status:
    """Return the state of the selection in a directory."""
    report, directory = read_directory(root), RunDirectory(root)
    result, meta = report.result, report.meta
    pending_runs = read_pending_runs(directory, report.history, is_running=result.running)
    num_queued = Counter(run.candidate for run in pending_runs if run.state == "queued")
    num_running = len(report.history.pending) - num_queued.total() if result.running else 0
    max_hours = getattr(report.settings, "max_hours", None)
    forecast = forecast_open_selection(  # as the live line does; their time is known while runs are running
        report.strategy,
        report.history,
        report.strategy.recommend(report.history),
        seed=int((meta and meta.seed) or 0),
        workers=num_running,
        seconds_left=None if max_hours is None or meta is None else 3600 * max_hours - meta.working_seconds,
    )
    result = replace(_with_queued(result, num_queued), forecast=forecast)
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
    return Status(candidate_table(result, title=result.metric_text), tuple(filter(None, sentences)), data)


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


def read_pending_runs(directory: RunDirectory, history: History, *, is_running: bool) -> list[PendingRun]:
    """Return the pending runs of a history in order. Folders that this user cannot read tell nothing."""
    state: PendingState = "running" if is_running else "interrupted"
    attempts: Mapping[str, list[Attempt]] = {}
    with suppress(OSError):
        attempts = Attempt.find_all(directory.jobs)
    latest = {name: found[-1] for name, found in attempts.items() if found[-1].read_outcome() is None}
    statuses: Mapping[str, JobStatus] = {}
    if any(attempt.job and attempt.job.isdigit() for attempt in latest.values()):
        with suppress(SlurmUnavailable):  # an answer that does not come tells nothing
            statuses = query_jobs()
    runs: list[PendingRun] = []
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
