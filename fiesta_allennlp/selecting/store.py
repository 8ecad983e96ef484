"""The store of a selection: one SQLite file, read by any process, written by one."""

import json
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Type

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import StoreError, full_command
from fiesta_allennlp.core.origin import PackageSource
from fiesta_allennlp.core.records import Candidate, Evaluation, Failure, History, Outcome, Request
from fiesta_allennlp.core.registry import build_record
from fiesta_allennlp.core.settings.choice_settings import ChoiceSettingsType
from fiesta_allennlp.core.settings.metrics import Metric
from fiesta_allennlp.selecting.database import (
    FAILURE_FIELDS,
    REQUEST_FIELDS,
    create_database,
    open_database,
    read_history,
    transaction,
    translated_store_errors,
)
from fiesta_allennlp.selecting.failures import NO_THRESHOLD, ScoreThreshold
from fiesta_allennlp.selecting.lock import DirectoryLock
from fiesta_allennlp.version import __version__

COMMAND_BY_KIND = {
    "trainings": "select",
    "documents": "documents",
    "confirmation": "confirm",
}
"""The commands, by the kind of selection that they make."""

JUDGED_KINDS = ("trainings", "confirmation")
"""The kinds of selections whose finished runs are judged."""

REQUEST_COLUMNS = ", ".join(REQUEST_FIELDS)

LAST_ORDER_SQL = "IFNULL((SELECT MAX(finished_order) FROM {}), -1)"
NEXT_ORDER_SQL = f"(SELECT 1 + MAX({LAST_ORDER_SQL.format('evaluations')}, {LAST_ORDER_SQL.format('failures')}))"


@dataclass(frozen=True)
class Meta:
    """Facts about a selection, apart from its candidates and runs.

    `version` and `source` are those of the package that wrote the `settings`, which are None until the checks were
    passed. `seed` is the master seed as text. `removed` are the candidates that the user removed; their runs stay.
    `environments` and `working_seconds` are about all sessions. `error` ended the last session. `brought_facts` are the
    `file` that runs were taken from, its `digest`, and its candidates that were `left_out`. `changes` record how the
    choice of runs, or their end, was changed: option, before, now, and the number of runs. The others belong to a
    selection by documents: the fingerprint of the file, its facts, and the name under which answers are paid for.
    """

    version: str = __version__
    source: PackageSource = field(default_factory=PackageSource)
    settings: Optional[Mapping[str, Any]] = None
    kind: str = "trainings"
    seed: Optional[str] = None
    removed: Tuple[str, ...] = ()
    environments: Tuple[Dict[str, Any], ...] = ()
    working_seconds: float = 0.0
    changes: Tuple[Dict[str, Any], ...] = ()
    error: Optional[str] = None
    brought_facts: Optional[Mapping[str, Any]] = None
    documents: Optional[str] = None
    document_facts: Optional[Mapping[str, Any]] = None
    run: Optional[str] = None

    @property
    def is_started(self) -> bool:
        """True once the checks were passed. Before that, there is nothing to resume."""
        return self.settings is not None

    def to_settings(
        self, settings_class: Type[ChoiceSettingsType], new_settings: Mapping[str, Any] = {}, **replaced: Any
    ) -> ChoiceSettingsType:
        """Return the settings as a record, with `new_settings` above those in the store, some of them `replaced`."""
        unknown_names = (self.settings or {}).keys() - {f.name for f in fields(settings_class)}
        for name in sorted(unknown_names):
            raise StoreError(f"the store has the unknown setting '{name}'. Use fiesta_allennlp {self.version}.")
        return settings_class.from_layers({**(self.settings or {}), **replaced}, new_settings)


class StoreReader:
    """Reads a store. Changes nothing and holds no lock."""

    def __init__(self, database: sqlite3.Connection, path: Path) -> None:
        self._database, self._path = database, path
        self._meta: Optional[Meta] = None

    def meta(self) -> Meta:
        """Return the fields that `RunStore.set_meta` wrote, read once until they change."""
        if self._meta is None:
            with translated_store_errors(self._path):
                rows = self._database.execute("SELECT key, value FROM meta").fetchall()
                self._meta = build_record(Meta, {row["key"]: json.loads(row["value"]) for row in rows})
        return self._meta

    def candidates(self) -> List[Candidate]:
        with translated_store_errors(self._path):
            rows = self._database.execute("SELECT * FROM candidates ORDER BY position").fetchall()
            parsed = [{name: json.loads(row[name]) for name in ("config", "facts")} for row in rows]
            return [build_record(Candidate, {**row, **facts}) for row, facts in zip(rows, parsed, strict=True)]

    def history(self, *, max_failures: int, score_threshold: Optional[ScoreThreshold] = None) -> History:
        """Return everything so far, with all metrics of every run. A removed candidate, or one with `max_failures`
        failures that count, is withdrawn. The latter is not stored, so resuming with a larger number gives it another
        chance. A `score_threshold` judges the runs instead of the stored verdicts."""
        history = self._read_history() if score_threshold is None else self._read_rows(is_judged=False)
        judged_history = history if score_threshold is None else score_threshold.apply_to(history)
        return judged_history.with_withdrawn(max_failures=max_failures)

    @property
    def score_threshold(self) -> ScoreThreshold:
        """The score of `--min-score`, which only selections of `JUDGED_KINDS` have."""
        meta = self.meta()
        is_final = meta.kind in JUDGED_KINDS and meta.settings is not None
        return ScoreThreshold.from_settings(meta.settings or {}) if is_final else NO_THRESHOLD

    def _read_history(self) -> History:
        return self._read_rows(is_judged=True)

    def _read_rows(self, *, is_judged: bool) -> History:
        meta = self.meta()
        sign = Metric.parse((meta.settings or {}).get("metric") or "").sign
        with translated_store_errors(self._path):
            return read_history(self._database, removed=meta.removed, sign=sign, is_judged=is_judged)

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
        rows = [dict(row) for row in [*finished_rows, *failed_rows]]
        return sorted(rows, key=lambda row: row["finished_order"])


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
    with closing(open_database(directory.store, read_only=True)) as database:
        yield StoreReader(database, directory.store)


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
        self._history: Optional[History] = None
        self._lock = DirectoryLock(directory)
        try:
            super().__init__(create_database(self._path) if create else open_database(self._path), self._path)
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
            self._database.executemany(
                "UPDATE candidates SET source = ?, config = ? WHERE name = ?",
                [(source, config, name) for name, source, config, _ in rows if name in corrected],
            )
            for name in corrected:
                self._reopen_failures("candidate = ?", name)
            meta = [(key, json.dumps(value)) for key, value in values.items()]
            self._database.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", meta)
            for outcome in brought:
                self._insert_request(outcome.request)
                if isinstance(outcome, Evaluation):
                    self._record_evaluation(outcome)
                else:
                    self._record_failure(outcome)
            if "settings" in values:
                self._judge_again()

    # The way of an evaluation.

    def reserve(self, requests: Sequence[Request]) -> None:
        """Record requests as pending, before any of their work starts."""
        all_history = self._read_history()
        with self._change_transaction():
            for request in requests:
                self._insert_request(request)
            new_history = all_history.with_pending(requests)
        self._history = new_history

    def _insert_request(self, request: Request) -> None:
        values = list(asdict(request).values())
        self._database.execute(
            f"INSERT INTO evaluations ({REQUEST_COLUMNS}, status, reserved_order) VALUES"
            f" ({', '.join('?' * len(values))}, 'pending',"
            " (SELECT IFNULL(MAX(reserved_order) + 1, 0) FROM evaluations))",
            values,
        )

    def record(self, outcome: Outcome, *, will_retry: bool = False) -> Outcome:
        """Record the outcome of a pending request, and return it: a run that missed `--min-score` is a failure. With
        `will_retry`, a failure leaves the request pending."""
        history, new_history, threshold = self._read_history(), None, self.score_threshold
        with self._change_transaction():
            if isinstance(outcome, Evaluation):
                self._record_evaluation(outcome)
                outcome = self._record_verdict(outcome, threshold)
            else:
                self._record_failure(outcome, will_retry=will_retry)
            if isinstance(outcome, Evaluation):
                new_history = history.with_finished([outcome])
        self._history = new_history
        return outcome

    def _record_verdict(self, run: Evaluation, threshold: ScoreThreshold) -> Outcome:
        """Record that a finished run is a failure, if it is."""
        outcome = threshold.to_outcome(run)
        if isinstance(outcome, Failure):
            self._record_failure(outcome, status="missed")
        return outcome

    def _judge_again(self) -> None:
        """Record the verdicts and the metric of the present settings instead of the stored ones."""
        metric = Metric.parse((self.meta().settings or {}).get("metric") or "").name
        self._database.execute("UPDATE evaluations SET metric = ? WHERE replicate < 0", (metric,))
        of_verdict = "FROM failures WHERE kind = 'score'"
        judged_runs = f"(candidate, replicate) IN (SELECT candidate, replicate {of_verdict})"
        self._database.execute(f"UPDATE evaluations SET status = 'finished' WHERE {judged_runs}")
        self._database.execute(f"DELETE {of_verdict}")
        for run in read_history(self._database, removed=()).evaluations:
            self._record_verdict(run, self.score_threshold)

    def _record_evaluation(self, evaluation: Evaluation) -> None:
        metrics = json.dumps(dict(evaluation.metrics))
        values = (evaluation.score, evaluation.metric, metrics, evaluation.seconds, evaluation.started_at)
        origin = json.dumps(asdict(evaluation.origin))
        cursor = self._database.execute(
            "UPDATE evaluations SET status = 'finished', score = ?, metric = ?, metrics = ?, seconds = ?,"
            f" started_at = ?, origin = ?, finished_order = {NEXT_ORDER_SQL}"
            " WHERE candidate = ? AND replicate = ? AND status = 'pending'",
            (*values, origin, *evaluation.request.key),
        )
        if cursor.rowcount != 1:
            raise StoreError(f"{self._path}: run {evaluation.request.name} is not pending and cannot finish.")

    def _record_failure(self, failure: Failure, *, will_retry: bool = False, status: str = "failed") -> None:
        """Record a failure with the order of its run if that is finished, and else the next one."""
        columns = {**vars(failure), "origin": json.dumps(asdict(failure.origin))}
        self._database.execute(
            f"INSERT INTO failures (candidate, replicate, {', '.join(FAILURE_FIELDS)}, finished_order)"
            f" SELECT candidate, replicate{', ?' * len(FAILURE_FIELDS)}, IFNULL(finished_order, {NEXT_ORDER_SQL})"
            " FROM evaluations WHERE candidate = ? AND replicate = ?",
            (*(columns[name] for name in FAILURE_FIELDS), *failure.request.key),
        )
        if not will_retry:
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

    def _reopen_failures(self, condition: str, value: str) -> None:
        failed_runs = f"FROM failures WHERE replicate >= 0 AND {condition}"  # those that were brought are not made here
        update = "UPDATE evaluations SET status = 'pending' WHERE (candidate, replicate) IN"
        self._database.execute(f"{update} (SELECT candidate, replicate {failed_runs})", (value,))
        self._database.execute(f"DELETE {failed_runs}", (value,))

    @contextmanager
    def _change_transaction(self) -> Iterator[None]:
        """Change the file in a transaction. The history in memory is forgotten, and read again when it is needed."""
        self._history = None
        self.check_ownership()
        with transaction(self._database):
            yield

    def _read_history(self) -> History:
        if self._history is None:
            self._history = super()._read_history()
        return self._history

    def num_reserved(self) -> int:
        return int(self._database.execute("SELECT COUNT(*) FROM evaluations").fetchone()[0])

    def next_replicate(self, candidate: str) -> int:
        query = "SELECT MAX(IFNULL(MAX(replicate) + 1, 0), 0) FROM evaluations WHERE candidate = ?"
        return int(self._database.execute(query, (candidate,)).fetchone()[0])
