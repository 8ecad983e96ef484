import json
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import asdict, fields
from typing import Any, Dict, Iterator, List, Mapping, Sequence

from filelock import FileLock, Timeout

from fiesta_allennlp.errors import StoreError
from fiesta_allennlp.records import Evaluation, Failure, History, Outcome, Request
from fiesta_allennlp.run_directory import RunDirectory

SCHEMA_VERSION = 1

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE candidates (
    name TEXT PRIMARY KEY, position INTEGER NOT NULL, source TEXT NOT NULL, config TEXT NOT NULL,
    facts TEXT NOT NULL, withdrawn INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE evaluations (
    candidate TEXT NOT NULL REFERENCES candidates (name), replicate INTEGER NOT NULL,
    split_seed INTEGER NOT NULL, random_seed INTEGER NOT NULL,
    numpy_seed INTEGER NOT NULL, pytorch_seed INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'finished', 'failed')),
    reserved_order INTEGER NOT NULL UNIQUE, finished_order INTEGER UNIQUE,
    score REAL, metric TEXT, metrics TEXT, seconds REAL, started_at TEXT,
    PRIMARY KEY (candidate, replicate)
);
CREATE TABLE failures (
    id INTEGER PRIMARY KEY, candidate TEXT NOT NULL, replicate INTEGER NOT NULL, finished_order INTEGER NOT NULL,
    kind TEXT NOT NULL, error TEXT NOT NULL, seconds REAL NOT NULL, started_at TEXT NOT NULL, log_path TEXT
);
"""

REQUEST_COLUMNS = ", ".join(f.name for f in fields(Request))


class RunStore:
    """All that a run knows, in one SQLite file: every request is written down before its work starts, and every
    outcome in one transaction when it is there. One process writes; others may read.

    # Parameters

    directory : the run directory. It is locked until `close`, by a lock that ends with the process, however it ends.
    create : make a new store; else open the one that is there.

    # Raises

    `StoreError` : where another selection holds the directory, or the store is missing, damaged, there already, or of
        another version of this package.
    """

    def __init__(self, directory: RunDirectory, *, create: bool) -> None:
        self._path = directory.store
        self._lock = FileLock(str(directory.lock))
        try:
            if create:
                directory.root.mkdir(parents=True, exist_ok=True)
            elif not self._path.is_file():
                raise StoreError(
                    f"{directory.root}: there is no selection to recover: '{self._path.name}' is missing. Check -s, "
                    "or leave out --recover to start a new selection."
                )
            self._lock.acquire(timeout=0)
        except Timeout:
            raise StoreError(
                f"{directory.root}: another selection is running in this directory. Wait for it, stop it, or give "
                "another directory with -s."
            ) from None
        except OSError as error:
            raise StoreError(
                f"{directory.root}: cannot be written to: {error}. Give another directory with -s."
            ) from error
        try:
            self._database = self._create() if create else self._open()
        except BaseException:
            self._lock.release()
            raise

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, isolation_level=None)
        database.row_factory = sqlite3.Row
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        return database

    def _create(self) -> sqlite3.Connection:
        if self._path.exists():
            raise StoreError(f"{self._path}: there is a selection already. Use --recover to go on with it.")
        database = self._connect()
        with _transaction(database):
            for statement in SCHEMA.split(";"):
                database.execute(statement)
            database.execute("INSERT INTO meta VALUES ('schema_version', ?)", (str(SCHEMA_VERSION),))
        return database

    def _open(self) -> sqlite3.Connection:
        try:
            database = self._connect()
            damage = database.execute("PRAGMA integrity_check").fetchone()[0]
            row = database.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{self._path}: cannot be read as a store: {error}. Restore it from a copy.") from error
        if damage != "ok":
            raise StoreError(f"{self._path}: the store is damaged: {damage}. Restore it from a copy.")
        if row is None or row[0] != str(SCHEMA_VERSION):
            raise StoreError(
                f"{self._path}: the store has version {row and row[0]} but this fiesta_allennlp reads version "
                f"{SCHEMA_VERSION}. Use the fiesta_allennlp that made it."
            )
        return database

    def close(self) -> None:
        self._database.close()
        self._lock.release()

    # What the selection is about.

    def get_meta(self, key: str) -> Any:
        """The value written with `set_meta`, or None."""
        row = self._database.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def set_meta(self, **values: Any) -> None:
        with _transaction(self._database):
            rows = [(key, json.dumps(value)) for key, value in values.items()]
            self._database.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)

    def put_candidate(self, name: str, *, source: str, config: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        """Write down a candidate, with its config and what building it told; the facts of a known one anew."""
        with _transaction(self._database):
            self._database.execute(
                "INSERT INTO candidates (name, position, source, config, facts)"
                " VALUES (?, (SELECT COUNT(*) FROM candidates), ?, ?, ?)"
                " ON CONFLICT (name) DO UPDATE SET facts = excluded.facts",
                (name, source, json.dumps(config), json.dumps(facts)),
            )

    def candidates(self) -> List[Dict[str, Any]]:
        """`name`, `source`, `config`, `facts` and `withdrawn` of every candidate, in the order given."""
        rows = self._database.execute("SELECT * FROM candidates ORDER BY position").fetchall()
        return [
            {
                "name": row["name"],
                "source": row["source"],
                "config": json.loads(row["config"]),
                "facts": json.loads(row["facts"]),
                "withdrawn": bool(row["withdrawn"]),
            }
            for row in rows
        ]

    def withdraw(self, name: str) -> None:
        """Take a candidate out of the running. Its evaluations stay, and pending ones may still finish."""
        with _transaction(self._database):
            self._database.execute("UPDATE candidates SET withdrawn = 1 WHERE name = ?", (name,))

    # The way of an evaluation.

    def reserve(self, requests: Sequence[Request]) -> None:
        """Write requests down as pending, before any of their work starts."""
        with _transaction(self._database):
            for request in requests:
                values = list(asdict(request).values())
                self._database.execute(
                    f"INSERT INTO evaluations ({REQUEST_COLUMNS}, status, reserved_order) VALUES"
                    f" ({', '.join('?' * len(values))}, 'pending',"
                    " (SELECT IFNULL(MAX(reserved_order) + 1, 0) FROM evaluations))",
                    values,
                )

    def record(self, outcome: Outcome, *, try_again: bool = False) -> None:
        """Write down what came of a pending request. With `try_again`, a failure leaves it pending."""
        with _transaction(self._database):
            if isinstance(outcome, Failure):
                self._record_failure(outcome, try_again=try_again)
            else:
                self._record_evaluation(outcome)

    def _record_evaluation(self, evaluation: Evaluation) -> None:
        updated = self._database.execute(
            "UPDATE evaluations SET status = 'finished', score = ?, metric = ?, metrics = ?, seconds = ?,"
            f" started_at = ?, finished_order = {NEXT_ORDER}"
            " WHERE candidate = ? AND replicate = ? AND status = 'pending'",
            (
                evaluation.score,
                evaluation.metric,
                json.dumps(dict(evaluation.metrics)),
                evaluation.seconds,
                evaluation.started_at,
                *evaluation.request.key,
            ),
        )
        if updated.rowcount != 1:
            raise StoreError(f"{self._path}: evaluation {evaluation.request.name} is not pending, so it cannot finish.")

    def _record_failure(self, failure: Failure, *, try_again: bool) -> None:
        self._database.execute(
            "INSERT INTO failures (candidate, replicate, finished_order, kind, error, seconds, started_at, log_path)"
            f" VALUES (?, ?, {NEXT_ORDER}, ?, ?, ?, ?, ?)",
            (
                *failure.request.key,
                failure.kind,
                failure.error,
                failure.seconds,
                failure.started_at,
                failure.log_path,
            ),
        )
        if not try_again:
            self._database.execute(
                "UPDATE evaluations SET status = 'failed' WHERE candidate = ? AND replicate = ?",
                failure.request.key,
            )

    def release(self, requests: Sequence[Request]) -> None:
        """Forget pending requests that will not be worked on, as when the decision came before they finished."""
        with _transaction(self._database):
            self._database.executemany(
                "DELETE FROM evaluations WHERE candidate = ? AND replicate = ? AND status = 'pending'",
                [request.key for request in requests],
            )

    # What is known.

    def num_reserved(self) -> int:
        """How many evaluations were ever reserved and not released."""
        return int(self._database.execute("SELECT COUNT(*) FROM evaluations").fetchone()[0])

    def next_replicate(self, candidate: str) -> int:
        """The least replicate of a candidate that was never reserved."""
        row = self._database.execute(
            "SELECT IFNULL(MAX(replicate) + 1, 0) FROM evaluations WHERE candidate = ?", (candidate,)
        ).fetchone()
        return int(row[0])

    def history(self) -> History:
        """Everything so far, from the file, without the metrics beside the score: for these see `rows`."""
        rows = self._database.execute("SELECT * FROM evaluations ORDER BY reserved_order").fetchall()
        requests = {(row["candidate"], row["replicate"]): _request(row) for row in rows}
        finished = sorted((row for row in rows if row["status"] == "finished"), key=lambda row: row["finished_order"])
        failures = self._database.execute("SELECT * FROM failures ORDER BY finished_order").fetchall()
        candidates = self._database.execute("SELECT name, withdrawn FROM candidates ORDER BY position").fetchall()
        return History(
            candidates=tuple(row["name"] for row in candidates),
            evaluations=tuple(_evaluation(row, requests) for row in finished),
            pending=tuple(_request(row) for row in rows if row["status"] == "pending"),
            failures=tuple(_failure(row, requests) for row in failures),
            withdrawn=frozenset(row["name"] for row in candidates if row["withdrawn"]),
        )

    def rows(self) -> List[Dict[str, Any]]:
        """Every outcome in order of finishing, each with all of its columns, and `status` `finished` or `failed`."""
        finished = self._database.execute("SELECT * FROM evaluations WHERE status = 'finished'").fetchall()
        failed = self._database.execute(
            "SELECT f.*, 'failed' AS status, e.split_seed, e.random_seed, e.numpy_seed, e.pytorch_seed FROM failures f"
            " JOIN evaluations e ON e.candidate = f.candidate AND e.replicate = f.replicate"
        ).fetchall()
        return sorted((dict(row) for row in [*finished, *failed]), key=lambda row: row["finished_order"])


NEXT_ORDER = (
    "(SELECT 1 + MAX(IFNULL((SELECT MAX(finished_order) FROM evaluations), -1),"
    " IFNULL((SELECT MAX(finished_order) FROM failures), -1)))"
)


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    try:
        with closing(database.cursor()) as cursor:
            cursor.execute("BEGIN IMMEDIATE")
            try:
                yield
                cursor.execute("COMMIT")
            except BaseException:
                cursor.execute("ROLLBACK")
                raise
    except sqlite3.OperationalError as error:
        raise StoreError(
            f"the store cannot be written to: {error}. Nothing recorded so far is lost: make room, then --recover."
        ) from error


def _request(row: sqlite3.Row) -> Request:
    return Request(**{f.name: row[f.name] for f in fields(Request)})


def _evaluation(row: sqlite3.Row, requests: Mapping[Any, Request]) -> Evaluation:
    return Evaluation(
        request=requests[row["candidate"], row["replicate"]],
        score=row["score"],
        metric=row["metric"],
        seconds=row["seconds"],
        started_at=row["started_at"],
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
