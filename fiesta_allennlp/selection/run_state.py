"""What a store knows, in memory, so that a step costs as much after two thousand evaluations as after two."""

import json
import sqlite3
from dataclasses import dataclass, field, fields, replace
from typing import AbstractSet, Any, Dict, FrozenSet, Iterable, List, Mapping, Sequence, Tuple

from fiesta_allennlp.counts import COUNT_PREFIX
from fiesta_allennlp.records import Evaluation, Failure, History, Outcome, Request


@dataclass
class RunState:
    """All that a history is made of. Changed only by what has been written to the store.

    # Parameters

    candidates : all names in the order given.
    removed : those that the user took out.
    evaluations : in order of finishing; of the metrics beside the score, those that are counts.
    pending : by key, in order of reservation.
    failures : in order of failing.
    """

    candidates: Tuple[str, ...] = ()
    removed: FrozenSet[str] = frozenset()
    evaluations: List[Evaluation] = field(default_factory=list)
    pending: Dict[Tuple[str, int], Request] = field(default_factory=dict)
    failures: List[Failure] = field(default_factory=list)

    def reserve(self, requests: Sequence[Request]) -> None:
        self.pending.update({request.key: request for request in requests})

    def record(self, outcome: Outcome, *, try_again: bool) -> None:
        if isinstance(outcome, Failure):
            self.failures.append(outcome)
        else:
            self.evaluations.append(replace(outcome, metrics=_counts_in(outcome.metrics)))
        if not try_again:
            self.pending.pop(outcome.request.key, None)

    def release(self, requests: Sequence[Request]) -> None:
        for request in requests:
            self.pending.pop(request.key, None)

    def history(self, *, max_failures: int) -> History:
        history = History(
            candidates=self.candidates,
            evaluations=tuple(self.evaluations),
            pending=tuple(self.pending.values()),
            failures=tuple(self.failures),
            removed=self.removed,
        )
        return replace(history, withdrawn=withdrawn(history, max_failures=max_failures, removed=self.removed))


def withdrawn(history: History, *, max_failures: int, removed: AbstractSet[str]) -> FrozenSet[str]:
    """The candidates with `max_failures` failures that count, and those that were removed."""
    failed = {failure.request.candidate for failure in history.failures}
    return frozenset(removed) | {name for name in failed if history.num_counted_failures(name) >= max_failures}


def read_state(database: sqlite3.Connection, *, removed: Iterable[str]) -> RunState:
    """The state that the tables of a store give."""
    rows = database.execute("SELECT * FROM evaluations ORDER BY reserved_order").fetchall()
    requests = {(row["candidate"], row["replicate"]): _request(row) for row in rows}
    finished = sorted((row for row in rows if row["status"] == "finished"), key=lambda row: row["finished_order"])
    failures = database.execute("SELECT * FROM failures ORDER BY finished_order").fetchall()
    candidates = database.execute("SELECT name FROM candidates ORDER BY position").fetchall()
    pending = [requests[row["candidate"], row["replicate"]] for row in rows if row["status"] == "pending"]
    return RunState(
        candidates=tuple(row["name"] for row in candidates),
        removed=frozenset(removed),
        evaluations=[_evaluation(row, requests) for row in finished],
        pending={request.key: request for request in pending},
        failures=[_failure(row, requests) for row in failures],
    )


def _counts_in(metrics: Mapping[str, float]) -> Dict[str, float]:
    """The metrics that a belief may use. The others stay in the store alone, so that the state stays small."""
    return {name: value for name, value in metrics.items() if name.startswith(COUNT_PREFIX)}


def _request(row: sqlite3.Row) -> Request:
    return Request(**{f.name: row[f.name] for f in fields(Request)})


def _evaluation(row: sqlite3.Row, requests: Mapping[Any, Request]) -> Evaluation:
    return Evaluation(
        request=requests[row["candidate"], row["replicate"]],
        score=row["score"],
        metric=row["metric"],
        seconds=row["seconds"],
        started_at=row["started_at"],
        metrics=_counts_in(json.loads(row["metrics"] or "{}")),
    )


def _failure(row: sqlite3.Row, requests: Mapping[Any, Request]) -> Failure:
    return Failure(
        request=requests[row["candidate"], row["replicate"]],
        kind=row["kind"],
        error=row["error"],
        seconds=row["seconds"],
        started_at=row["started_at"],
        log_path=row["log_path"],
    )
