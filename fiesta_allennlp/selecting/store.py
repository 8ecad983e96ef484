"""The store of a selection: one SQLite file, read by any process, written by one."""

import json
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence

from fiesta_allennlp.core import registry
from fiesta_allennlp.core.directory import DirectoryLock, RunDirectory
from fiesta_allennlp.core.errors import StoreError, full_command
from fiesta_allennlp.core.records import Candidate, Evaluation, Failure, History, Outcome, Request
from fiesta_allennlp.selecting import database
from fiesta_allennlp.selecting.database import FAILURE_FIELDS, Meta, translated_store_errors
from fiesta_allennlp.selecting.recovery import ScoreThreshold

COMMAND_BY_KIND = {"trainings": "select", "documents": "documents", "confirmation": "confirm"}
"""The commands, by the kind of selection that they make."""

LAST_ORDER_SQL = "IFNULL((SELECT MAX(finished_order) FROM {}), -1)"
NEXT_ORDER_SQL = f"(SELECT 1 + MAX({LAST_ORDER_SQL.format('evaluations')}, {LAST_ORDER_SQL.format('failures')}))"


class StoreReader:
    """Reads a store. Changes nothing and holds no lock."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._database, self._path = connection, path
        self._meta: Optional[Meta] = None
        self._history: Optional[History] = None

    def meta(self) -> Meta:
        """Return the fields that `RunStore.set_meta` wrote, read once until they change."""
        if self._meta is None:
            with translated_store_errors(self._path):
                rows = self._database.execute("SELECT key, value FROM meta").fetchall()
                self._meta = registry.build_record(Meta, {row["key"]: json.loads(row["value"]) for row in rows})
        return self._meta

    def candidates(self) -> List[Candidate]:
        with translated_store_errors(self._path):
            rows = self._database.execute("SELECT * FROM candidates ORDER BY position").fetchall()
            parsed = ({**row, **{name: json.loads(row[name]) for name in ("config", "facts")}} for row in rows)
            return [registry.build_record(Candidate, values) for values in parsed]

    def history(self, *, max_failures: int, score_threshold: Optional[ScoreThreshold] = None) -> History:
        """Return everything so far, with all metrics of every run. A removed candidate, or one with `max_failures`
        failures that count, is withdrawn. The latter is not stored, so resuming with a larger number gives it another
        chance. A `score_threshold` judges the runs instead of the stored verdicts."""
        if score_threshold is None:
            history = self._read_history()
        else:
            history = score_threshold.apply_to(self._read_rows(is_judged=False))
        return history.with_withdrawn(max_failures=max_failures)

    @property
    def score_threshold(self) -> ScoreThreshold:
        """The score of `--min-score`."""
        return ScoreThreshold.from_settings(self.meta().settings or {})

    def _read_history(self) -> History:
        if self._history is None:
            self._history = self._read_rows(is_judged=True)
        return self._history

    def _read_rows(self, *, is_judged: bool) -> History:
        meta = self.meta()
        with translated_store_errors(self._path):
            sign = meta.metric.sign
            return database.read_history(self._database, removed=meta.removed, sign=sign, is_judged=is_judged)

    def rows(self) -> List[Dict[str, Any]]:
        """Return every outcome in order of finishing, with all columns, and `status` `finished` or `failed`. A run that
        missed `--min-score` failed, and has its score too."""
        finished_rows = self._database.execute("SELECT * FROM evaluations WHERE status = 'finished'").fetchall()
        of_verdict = "f.kind = 'score'"
        failed_rows = self._database.execute(
            "SELECT f.*, 'failed' AS status, e.split_seed, e.random_seed, e.numpy_seed, e.pytorch_seed, e.metric,"
            f" IIF({of_verdict}, e.score, NULL) AS score, IIF({of_verdict}, e.metrics, NULL) AS metrics"
            " FROM failures f JOIN evaluations e USING (candidate, replicate)"
        ).fetchall()
        return sorted(map(dict, [*finished_rows, *failed_rows]), key=lambda row: row["finished_order"])


def check_store_not_lost(directory: RunDirectory) -> None:
    """Raise a `StoreError` if finished runs are here that the store has lost, or if they have lost the store."""
    if runs := directory.finished_runs:
        store, log = directory.store.name, directory.store_log.name
        remedy = f"Restore '{store}' and '{log}' from a copy, or start over with --force."
        raise StoreError(f"{directory.root}: {len(runs)} runs in 'evaluations' are missing from '{store}'. {remedy}")


@contextmanager
def open_for_reading(directory: RunDirectory) -> Iterator[StoreReader]:
    """Yield the store of a directory as it is at this moment, even while a selection is writing it."""
    if not directory.store.is_file():
        check_store_not_lost(directory)
        remedy = f"Pass the directory from `{full_command('select')} -s DIR`."
        raise StoreError(f"{directory.root}: no selection found: '{directory.store.name}' is missing. {remedy}")
    with closing(database.open_database(directory.store, read_only=True)) as connection:
        yield StoreReader(connection, directory.store)


class RunStore(StoreReader):
    """The store of a selection. Every request is recorded before its work starts, and every outcome in one transaction.
    One process writes, and holds the lock of the directory until `close`; others may read.

    The history is kept in memory too while runs start and finish, so that a step costs as much after two thousand runs
    as after two. After any other change, or an interrupted one, it is read from the file again.
    """

    def __init__(self, directory: RunDirectory, *, create: bool) -> None:
        self._path = directory.store
        if not create and not self._path.is_file():
            check_store_not_lost(directory)
            raise StoreError(f"{directory.root}: nothing to recover: '{self._path.name}' is missing. Check -s.")
        self._lock = DirectoryLock(directory)
        try:
            open_file = database.create_database if create else database.open_database
            super().__init__(open_file(self._path), self._path)
            self._lock.watch_files(self._path, directory.store_log)
        except BaseException:
            self._lock.release()
            raise

    def close(self, *, keep: bool = True) -> None:
        is_to_be_deleted = not keep and self._lock.replaced_path is None
        self._database.close()
        if is_to_be_deleted:
            self._path.unlink()
        self._lock.release()

    def check_ownership(self) -> None:
        """Raise a `StoreError` if the path belongs to this selection no longer (`DirectoryLock.check`). The results are
        written after this check, and each change of the store."""
        self._lock.check_files()

    # What the selection is about.

    def set_meta(self, **values: Any) -> None:
        self.put_candidates([], **values)

    def record_error(self, error: str) -> None:
        """Record the error that ends this session. On a full disk, the space that SQLite's log has is used again."""
        with translated_store_errors(self._path):
            self._database.execute("PRAGMA wal_checkpoint")
        self.set_meta(error=error)

    def put_candidates(
        self,
        candidates: Sequence[Candidate],
        *,
        corrected: Sequence[str] = (),
        brought: Sequence[Outcome] = (),
        **values: Any,
    ) -> None:
        """Record candidates, fields of `Meta`, and runs that were made before, in one step. A known candidate gets its
        new facts. Those that were `corrected` get their new config, and their failed runs are pending again."""
        rows = [(c.name, c.source, json.dumps(c.config), json.dumps(c.facts)) for c in candidates]
        self._meta = None
        with self._change_transaction():
            self._database.executemany(
                "INSERT INTO candidates (name, position, source, config, facts)"
                " VALUES (?, (SELECT COUNT(*) FROM candidates), ?, ?, ?)"
                " ON CONFLICT (name) DO UPDATE SET facts = excluded.facts",
                rows,
            )
            corrected_rows = [(source, config, name) for name, source, config, _ in rows if name in corrected]
            self._database.executemany("UPDATE candidates SET source = ?, config = ? WHERE name = ?", corrected_rows)
            failed_runs = "FROM failures WHERE replicate >= 0 AND candidate = ?"  # brought ones are not made here
            for name in corrected:
                update = "UPDATE evaluations SET status = 'pending' WHERE (candidate, replicate) IN"
                self._database.execute(f"{update} (SELECT candidate, replicate {failed_runs})", (name,))
                self._database.execute(f"DELETE {failed_runs}", (name,))
            meta = [(key, json.dumps(value)) for key, value in values.items()]
            self._database.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", meta)
            for outcome in brought:
                self._insert_request(outcome.request)
                self._insert_outcome(outcome)
            if "settings" in values:
                self._judge_again()

    def _judge_again(self) -> None:
        """Record the verdicts and the metric of the present settings instead of the stored ones."""
        self._database.execute("UPDATE evaluations SET metric = ? WHERE replicate < 0", (self.meta().metric.name,))
        self._database.execute("UPDATE evaluations SET status = 'finished' WHERE status = 'missed'")
        self._database.execute("DELETE FROM failures WHERE kind = 'score'")
        for run in database.read_history(self._database, removed=()).evaluations:
            self._judge(run)

    def _judge(self, run: Evaluation) -> Outcome:
        """Record that a finished run is a failure, if it is."""
        outcome = self.score_threshold.to_outcome(run)
        if isinstance(outcome, Failure):
            self._insert_failure(outcome, status="missed")
        return outcome

    # The way of an evaluation.

    def reserve(self, requests: Sequence[Request]) -> None:
        """Record requests as pending, before any of their work starts."""
        new_history = self._read_history().with_pending(requests)
        with self._change_transaction():
            for request in requests:
                self._insert_request(request)
        self._history = new_history

    def _insert_request(self, request: Request) -> None:
        values = asdict(request)
        self._database.execute(
            f"INSERT INTO evaluations ({', '.join(values)}, status, reserved_order) VALUES"
            f" ({', '.join('?' * len(values))}, 'pending',"
            " (SELECT IFNULL(MAX(reserved_order) + 1, 0) FROM evaluations))",
            tuple(values.values()),
        )

    def record(self, outcome: Outcome, *, will_retry: bool = False) -> Outcome:
        """Record the outcome of a pending request, and return it: a run that missed `--min-score` is a failure. With
        `will_retry`, a failure leaves the request pending."""
        history, new_history = self._read_history(), None
        with self._change_transaction():
            self._insert_outcome(outcome, status="pending" if will_retry else "failed")
            if isinstance(outcome, Evaluation):
                outcome = self._judge(outcome)
            if isinstance(outcome, Evaluation):
                new_history = history.with_finished([outcome])
        self._history = new_history
        return outcome

    def _insert_outcome(self, outcome: Outcome, *, status: str = "failed") -> None:
        """Record the outcome of a pending request. A failure gives it this status."""
        if isinstance(outcome, Failure):
            self._insert_failure(outcome, status=status)
            return
        values = outcome.score, outcome.metric, json.dumps(dict(outcome.metrics)), outcome.seconds, outcome.started_at
        cursor = self._database.execute(
            "UPDATE evaluations SET status = 'finished', score = ?, metric = ?, metrics = ?, seconds = ?,"
            f" started_at = ?, origin = ?, finished_order = {NEXT_ORDER_SQL}"
            " WHERE candidate = ? AND replicate = ? AND status = 'pending'",
            (*values, json.dumps(asdict(outcome.origin)), *outcome.request.key),
        )
        if cursor.rowcount != 1:
            raise StoreError(f"{self._path}: run {outcome.request.name} is not pending and cannot finish.")

    def _insert_failure(self, failure: Failure, *, status: str) -> None:
        """Record a failure with the order of its run if that is finished, and else the next one."""
        columns = {**vars(failure), "origin": json.dumps(asdict(failure.origin))}
        self._database.execute(
            f"INSERT INTO failures (candidate, replicate, {', '.join(FAILURE_FIELDS)}, finished_order)"
            f" SELECT candidate, replicate{', ?' * len(FAILURE_FIELDS)}, IFNULL(finished_order, {NEXT_ORDER_SQL})"
            " FROM evaluations WHERE candidate = ? AND replicate = ?",
            (*(columns[name] for name in FAILURE_FIELDS), *failure.request.key),
        )
        update = "UPDATE evaluations SET status = ? WHERE candidate = ? AND replicate = ?"
        self._database.execute(update, (status, *failure.request.key))

    def release_pending(self, requests: Sequence[Request]) -> None:
        """Forget pending requests that will not be worked on, as when the decision came first. A request that has
        failed before stays as failed, because its failures need its seeds."""
        keys = [request.key for request in requests]
        is_pending = "candidate = ? AND replicate = ? AND status = 'pending'"
        with self._change_transaction():
            self._database.executemany(
                f"UPDATE evaluations SET status = 'failed' WHERE {is_pending}"
                " AND (candidate, replicate) IN (SELECT candidate, replicate FROM failures)",
                keys,
            )
            self._database.executemany(f"DELETE FROM evaluations WHERE {is_pending}", keys)

    @contextmanager
    def _change_transaction(self) -> Iterator[None]:
        """Change the file in a transaction. The history in memory is forgotten, and read again when it is needed."""
        self._history = None
        self.check_ownership()
        with database.transaction(self._database):
            yield

    def num_reserved(self) -> int:
        return int(self._database.execute("SELECT COUNT(*) FROM evaluations").fetchone()[0])

    def next_replicate(self, candidate: str) -> int:
        query = "SELECT MAX(IFNULL(MAX(replicate) + 1, 0), 0) FROM evaluations WHERE candidate = ?"
        return int(self._database.execute(query, (candidate,)).fetchone()[0])
