"""The current state of a selection or a search, for `fiesta status`. Nothing is locked or changed."""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Iterator, Optional, Tuple

from rich.table import Table

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import full_command
from fiesta_allennlp.core.names import numbered_legend
from fiesta_allennlp.core.records import History
from fiesta_allennlp.isolation.run_queue import RunQueue, Worker
from fiesta_allennlp.reports.reading import Reading, read_directory
from fiesta_allennlp.reports.stored import Stored, opened
from fiesta_allennlp.reports.words import (
    collapsed_in_words,
    ended_in_words,
    failures_in_words,
    running_in_words,
    scope_in_words,
    selection_table,
)
from fiesta_allennlp.selection.progress import number_table
from fiesta_allennlp.selection.summary import count_text, duration_text, number_text

MOST_SHOWN = 5
"""The number of best configs of a screening to show."""


@dataclass(frozen=True)
class Status:
    """A table and the sentences below it."""

    table: Table
    sentences: Tuple[str, ...]
    running: bool


def status_of(root: Path) -> Status:
    """Return the state of the selection in a directory, or of the latest stage of a search."""
    directory = RunDirectory(root)
    if directory.screening.store.is_file() and not directory.store.is_file():
        with opened(directory.screening.root) as stored:
            status, directory = _screening_status(stored), directory.screening
    else:
        status = _selection_status(read_directory(root))
    return replace(status, sentences=(*status.sentences, *_worker_lines(directory, root)))


def _worker_lines(directory: RunDirectory, root: Path) -> Iterator[str]:
    """List the workers of a selection, if it has a queue that this user can read."""
    with suppress(OSError):
        for queue in RunQueue.open_queues(directory.queue):
            runs = {claim.job: claim.run for claim in queue.taken_claims().values()}
            silence = queue.seconds_since_heartbeat()
            for name, seconds in silence.items():
                worker = Worker.from_name(name)
                on_gpu = f", GPU {worker.device}" if worker.device else ""
                life = f"last sign of life {duration_text(round(seconds))} ago"
                yield f"Worker on {worker.host} (process {worker.pid}{on_gpu}): {runs.get(name, 'no run')}, {life}."
            if not silence:
                yield f"No worker is there. Start one: {full_command('worker')} {root}"


def _selection_status(reading: Reading) -> Status:
    result, history = reading.result, reading.history
    decision = running_in_words(result) if reading.running else ended_in_words(result)
    score_sentences = (result.scored_on, scope_in_words(result))
    run_sentences = (*failures_in_words(result), decision, *collapsed_in_words(result), *score_sentences)
    sentences = tuple(filter(None, (*run_sentences, *reading.legend, _last_finished(history))))
    pending = Counter(request.candidate for request in history.pending)
    table = selection_table(result, pending, heading="running" if reading.running else "pending")
    return Status(table, sentences, reading.running)


def _screening_status(stored: Stored) -> Status:
    from fiesta_allennlp.searches.screener import failed_configs
    from fiesta_allennlp.searches.search_settings import stored_search

    settings = stored_search(stored.meta)
    history, metric = stored.history(max_failures=settings.max_failures), settings.scored_by
    table = number_table("best configs so far", ("score", "seconds"), title=f"validation {metric.display_name}")
    best = sorted(history.evaluations, key=lambda evaluation: -metric.sign * evaluation.score)[:MOST_SHOWN]
    for evaluation in best:
        table.add_row(evaluation.request.candidate, number_text(evaluation.score), f"{evaluation.seconds:.0f}")
    configs = settings.num_configs or len(stored.candidates)
    state, pending_word = ("running", "running") if stored.running else ("interrupted", "pending")
    num_runs_text = (
        f"{len(history.evaluations)} of {count_text(configs, 'config')} finished, {len(failed_configs(history))} failed"
    )
    sentences = (f"The screening is {state}.", f"{num_runs_text}, {len(history.pending)} {pending_word}.")
    values = numbered_legend(stored.values(evaluation.request.candidate for evaluation in best))
    return Status(table, tuple(filter(None, (*sentences, *values, _last_finished(history)))), stored.running)


def _last_finished(history: History) -> Optional[str]:
    """State how long ago a run last finished; None if that is unknown."""
    ends = [
        datetime.fromisoformat(evaluation.started_at).replace(tzinfo=timezone.utc)
        + timedelta(seconds=evaluation.seconds)
        for evaluation in history.evaluations
        if evaluation.started_at
    ]
    if not ends:
        return None
    ago = max(0.0, (datetime.now(timezone.utc) - max(ends)).total_seconds())
    return f"The last run finished {duration_text(round(ago))} ago."
