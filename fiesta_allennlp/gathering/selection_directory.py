"""A selection, finished, interrupted or running, as the source of a report."""

import json
import os
import platform
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

from allennlp.common import Params
from allennlp.common.util import import_module_and_submodules

from fiesta_allennlp.beliefs import Belief
from fiesta_allennlp.errors import ConfigError, StoreError
from fiesta_allennlp.gathering.checklist import selection_checklist
from fiesta_allennlp.gathering.source import Source
from fiesta_allennlp.records import UNDECIDED, History
from fiesta_allennlp.run_directory import RunDirectory
from fiesta_allennlp.settings import Settings, merge
from fiesta_allennlp.store_reader import StoreReader, reading
from fiesta_allennlp.strategies import Strategy
from fiesta_allennlp.strategy_building import build_strategy
from fiesta_allennlp.working_time import SECONDS_BETWEEN_NOTES

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
        _check_there_is_something(store, directory)
        environments = store.get_meta("environments") or [{}]
        running = is_running(directory, environments[-1].get("host"))
        settings = merge(store.get_meta("settings"))
        strategy = _strategy(settings, [candidate["name"] for candidate in store.candidates()])
        history = _history(store, settings)
        decision = strategy.recommend(history)
        if decision.stopped_by is None and not running:
            decision = replace(decision, stopped_by=_stopped_by(directory, len(history.evaluations)))
        if decision.stopped_by in UNDECIDED:
            decision = replace(decision, credible_margin=strategy.credible_margin(history))
        candidates = store.candidates()
        params = settings.strategy_params()
        asked_confidence = getattr(strategy, "confidence", None)
        return Source(
            name=str(root),
            metric=settings.metric,
            history=history,
            decision=decision,
            belief=Belief.from_params(Params(dict(params["belief"]))),
            belief_name=params["belief"]["type"],
            asked_confidence=asked_confidence,
            is_selection=True,
            adaptive=True,
            running=running and decision.stopped_by is None,
            removed=store.removed(),
            num_parameters={c["name"]: c["facts"]["num_parameters"] for c in candidates},
            checklist=selection_checklist(store, settings, history, asked_confidence=asked_confidence),
            data=candidates[0]["facts"]["pool"]["fingerprint"],
        )


def _check_there_is_something(store: StoreReader, directory: RunDirectory) -> None:
    root = directory.root
    if not store.begun:
        raise StoreError(
            f"{root}: the selection has not begun: its candidates are being checked, or it was stopped before its "
            "first training. There is nothing to report yet."
        )
    if "documents" in store.get_meta("settings"):
        raise StoreError(
            f"{root}: the selection there is one of fiesta-documents, on which there is no report. What it came to "
            f"is in {directory.selection_json.name} and {directory.evaluations_csv.name} there; where it is not "
            f"finished, go on with allennlp fiesta-documents -s {root} --recover."
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


def _strategy(settings: Settings, names: Any) -> Strategy:
    """The strategy, whose package is imported where it is not known."""
    try:
        return build_strategy(settings, names)
    except ConfigError:
        if not settings.include_package:
            raise
    for package in settings.include_package:
        try:
            import_module_and_submodules(package)
        except ImportError as error:
            raise ConfigError(
                f"--include-package {package}, which the selection was started with, cannot be imported: {error}. "
                "Make the report where it can, or put its directory on PYTHONPATH."
            ) from error
    return build_strategy(settings, names)


def _history(store: StoreReader, settings: Settings) -> History:
    """The history with the metrics of every evaluation."""
    history = store.history(max_failures=settings.max_failures)
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
