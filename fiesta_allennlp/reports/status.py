"""The current state of a selection or a search, for `fiesta status`. Nothing is locked or changed."""

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Iterator, Optional, Tuple

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import full_command
from fiesta_allennlp.core.names import numbered_legend
from fiesta_allennlp.core.records import History
from fiesta_allennlp.isolation.run_queue import RunQueue, Worker
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.reports.sources import read_directory
from fiesta_allennlp.reports.stored_selection import StoredSelection, open_selection
from fiesta_allennlp.reports.words import (
    collapsed_in_words,
    ended_in_words,
    failures_in_words,
    running_in_words,
    scored_on_text,
)
from fiesta_allennlp.selection.candidate_table import Table, candidate_table
from fiesta_allennlp.selection.texts import count_text, duration_text, number_text

MAX_CONFIGS_SHOWN = 5
"""The number of best configs of a screening to show."""


@dataclass(frozen=True)
class Status:
    """A table and the sentences below it."""

    table: Table
    sentences: Tuple[str, ...]
    running: bool


def read_status(root: Path) -> Status:
    """Return the state of the selection in a directory, or of the latest stage of a search."""
    directory = RunDirectory(root)
    if directory.screening.store.is_file() and not directory.store.is_file():
        with open_selection(directory.screening.root) as screening:
            status, directory = _make_screening_status(screening), directory.screening
    else:
        status = _make_selection_status(read_directory(root))
    return replace(status, sentences=(*status.sentences, *_describe_workers(directory, root)))


def _describe_workers(directory: RunDirectory, root: Path) -> Iterator[str]:
    """List the workers of a selection, if it has a queue that this user can read."""
    with suppress(OSError):
        for queue in RunQueue.open_queues(directory.queue):
            run_by_worker = {claim.job: claim.run for claim in queue.taken_claims().values()}
            silent_seconds = queue.seconds_since_heartbeat()
            for name, seconds in silent_seconds.items():
                worker = Worker.from_name(name)
                gpu_text = f", GPU {worker.device}" if worker.device else ""
                silence_text = f"last sign of life {duration_text(round(seconds))} ago"
                run = run_by_worker.get(name, "no run")
                yield f"Worker on {worker.host} (process {worker.pid}{gpu_text}): {run}, {silence_text}."
            if not silent_seconds:
                yield f"No worker is there. Start one: {full_command('worker')} {root}"


def _make_selection_status(report: Report) -> Status:
    result = report.result
    decision_text = running_in_words(result) if result.running else ended_in_words(result)
    run_sentences = (*failures_in_words(result), decision_text, *collapsed_in_words(result), scored_on_text(result))
    sentences = tuple(
        filter(None, (*run_sentences, _error_text(report), *report.legend, _last_finish_text(report.history)))
    )
    return Status(candidate_table(result, title=result.metric_text), sentences, result.running)


def _error_text(report: Report) -> Optional[str]:
    """State the error that ended the last session; None if none did."""
    error = None if report.selection is None or report.result.running else report.selection.meta.error
    return error and f"The last session ended with an error: {error}"


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
    return Status(table, tuple(filter(None, (*sentences, _last_finish_text(history)))), screening.is_running)


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
