"""A selection, finished, interrupted or running, as the source of a report."""

import json
import os
import platform
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

from allennlp.common import Params

from fiesta_allennlp.beliefs import Belief
from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import StoreError
from fiesta_allennlp.records import UNDECIDED, History
from fiesta_allennlp.reports.checklist import selection_checklist
from fiesta_allennlp.reports.document_directory import is_by_documents, stored_documents
from fiesta_allennlp.reports.source import Source
from fiesta_allennlp.reports.stored import Stored, importing
from fiesta_allennlp.selection.loop import SECONDS_BETWEEN_NOTES
from fiesta_allennlp.selection.store import StoreReader, reading
from fiesta_allennlp.selection.strategy_building import build_strategy
from fiesta_allennlp.trainings.settings import merge

LOCKS = Path("/proc/locks")
"""Where Linux lists the locks that are held."""

SECONDS_OF_SILENCE = 3 * SECONDS_BETWEEN_NOTES
"""A selection that has not written anything for so long is not running."""


def from_directory(root: Path) -> Source:
    """Everything that a report needs of the selection in a directory. Nothing there is locked or changed.

    # Raises

    `StoreError` : where there is no selection, or its store is damaged.
    `ConfigError` : where its strategy or belief belongs to a package that cannot be imported.
    """
    directory = RunDirectory(root)
    with reading(directory) as store:
        meta = store.meta()
        if not meta.begun:
            raise StoreError(
                f"{root}: the selection has not begun: its candidates are being checked, or it was stopped before its "
                "first training. There is nothing to report yet."
            )
        stored = stored_documents(store, directory) if is_by_documents(store) else _stored_trainings(store)
        environments = meta.environments or ({},)
        running = is_running(directory, environments[-1].get("host"))
        history = _history(store, stored.max_failures)
        decision = stored.strategy.recommend(history)
        if decision.stopped_by is None and not running:
            decision = replace(decision, stopped_by=_stopped_by(directory, len(history.evaluations)))
        if decision.stopped_by in UNDECIDED:
            decision = replace(decision, credible_margin=stored.strategy.credible_margin(history))
        source = Source(
            name=str(root),
            metric=stored.metric,
            history=history,
            decision=decision,
            belief=Belief.from_params(Params(dict(stored.params["belief"]))),
            belief_name=stored.params["belief"]["type"],
            asked_confidence=stored.asked_confidence,
            is_selection=True,
            adaptive=True,
            running=running and decision.stopped_by is None,
            removed=frozenset(meta.removed),
            num_parameters=stored.num_parameters or {},
            checklist=stored.checklist(history),
            data=stored.data,
        )
    return stored.finish(source)


def _stored_trainings(store: StoreReader) -> Stored:
    settings, candidates = merge(store.meta().settings or {}), store.candidates()
    names = [candidate.name for candidate in candidates]
    strategy = importing(settings.include_package, lambda: build_strategy(settings, names))
    asked_confidence = getattr(strategy, "confidence", None)
    return Stored(
        metric=settings.metric,
        strategy=strategy,
        params=settings.strategy_params(),
        asked_confidence=asked_confidence,
        max_failures=settings.max_failures,
        checklist=lambda history: selection_checklist(store, settings, history, asked_confidence=asked_confidence),
        num_parameters={c.name: c.facts["num_parameters"] for c in candidates},
        data=candidates[0].facts["pool"]["fingerprint"],
    )


def is_running(directory: RunDirectory, host: Optional[str]) -> bool:
    """Whether a selection is at work in the directory, found out without touching its lock.

    On the machine of this name, where it was started last, a running one holds the lock, which the system lists. From
    elsewhere, and where locks are not listed, it is one that has written to its store not long ago.
    """
    try:
        if host == platform.node():
            status = directory.lock.stat()
            file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
            return any(file in line.split() for line in LOCKS.read_text(encoding="ascii").splitlines())
    except OSError:
        pass
    log = directory.store_log
    return log.exists() and time.time() - log.stat().st_mtime < SECONDS_OF_SILENCE


def _history(store: StoreReader, max_failures: int) -> History:
    """The history with the metrics of every evaluation."""
    history = store.history(max_failures=max_failures)
    metrics: Dict[Any, Mapping[str, float]] = {
        (row["candidate"], row["replicate"]): json.loads(row["metrics"])
        for row in store.rows()
        if row["status"] == "finished"
    }
    return replace(history, evaluations=tuple(replace(e, metrics=metrics[e.request.key]) for e in history.evaluations))


def _stopped_by(directory: RunDirectory, num_evaluations: int) -> Optional[str]:
    """Why a selection that has more to do is not at work: what it wrote itself, or it was killed."""
    try:
        summary = json.loads(directory.selection_json.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "interrupted"
    is_latest = summary.get("num_evaluations") == num_evaluations
    return summary.get("stopped_by") if is_latest else "interrupted"
