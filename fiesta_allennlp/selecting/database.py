"""The SQLite file behind a run store: its tables, how it is opened and checked, transactions, and what its rows say."""

import json
import sqlite3
import time
from contextlib import closing, contextmanager
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Iterable, Iterator, Mapping, Tuple, Type, TypeVar, Union

from fiesta_allennlp.core.errors import ConfigError, StoreError, describe
from fiesta_allennlp.core.files import atomic_replacement, check_format, shorten
from fiesta_allennlp.core.origin import Origin
from fiesta_allennlp.core.records import Evaluation, Failure, History, Request
from fiesta_allennlp.core.registry import build_record, convert_value
from fiesta_allennlp.version import __version__

OutcomeRecord = TypeVar("OutcomeRecord", Evaluation, Failure)

FORMAT = 3
"""SQLite's `user_version` of a store. Raise it with every change of the tables and of what they contain."""

REQUEST_FIELDS = [field.name for field in fields(Request)]
FAILURE_FIELDS = [field.name for field in fields(Failure) if field.name != "request"]

DISK_ERRORS = ("disk I/O error", "database or disk is full", "unable to open database file")
"""SQLite's errors about a disk, not about a damaged file."""

LOCK_TIMEOUT_SECONDS = 300.0
"""The time for which another program may hold the write lock, such as one that looks at the store or copies it."""

BUSY_TIMEOUT_SECONDS = 1.0
"""The busy timeout of one attempt. It is short because Ctrl-C has no effect meanwhile."""

PYTHON_ERRORS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
INVALID_STORE_ERRORS = (sqlite3.Error, ConfigError, *PYTHON_ERRORS)
"""The errors of reading a database whose content this package did not write."""

SCHEMA = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('version', '"{__version__}"');
PRAGMA user_version = {FORMAT};
CREATE TABLE candidates (
    name TEXT PRIMARY KEY, position INTEGER NOT NULL, source TEXT NOT NULL, config TEXT NOT NULL,
    facts TEXT NOT NULL
);
CREATE TABLE evaluations (
    candidate TEXT NOT NULL REFERENCES candidates (name), replicate INTEGER NOT NULL,
    split_seed INTEGER NOT NULL, random_seed INTEGER NOT NULL,
    numpy_seed INTEGER NOT NULL, pytorch_seed INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'finished', 'failed', 'missed')),
    reserved_order INTEGER NOT NULL UNIQUE, finished_order INTEGER UNIQUE,
    score REAL, metric TEXT, metrics TEXT, seconds REAL, started_at TEXT, origin TEXT,
    PRIMARY KEY (candidate, replicate)
);
CREATE TABLE failures (
    id INTEGER PRIMARY KEY, candidate TEXT NOT NULL, replicate INTEGER NOT NULL, finished_order INTEGER NOT NULL,
    kind TEXT NOT NULL, error TEXT NOT NULL, seconds REAL NOT NULL, started_at TEXT NOT NULL, log_path TEXT,
    origin TEXT NOT NULL
);
"""


def create_database(path: Path) -> sqlite3.Connection:
    """Create a database with empty tables. Raise a `StoreError` if the file exists, or cannot be written."""
    if path.exists():
        raise StoreError(f"{path} already exists. Use --recover to continue its selection.")
    try:
        for ending in ("-wal", "-shm", "-journal"):  # of a store that was deleted: SQLite would replay it into this one
            path.with_name(path.name + ending).unlink(missing_ok=True)
        for file in path.parent.glob(f".{path.name}.*"):  # of a start that was killed; the directory is locked
            file.unlink(missing_ok=True)
        with atomic_replacement(path) as file, closing(sqlite3.connect(file)) as database:
            database.executescript(SCHEMA)  # so a database that is there has its tables
    except (sqlite3.OperationalError, OSError) as error:
        raise StoreError(f"{path} cannot be created: {error}. Choose another directory with -s.") from error
    return open_database(path)


def connect_read_only(path: Path) -> sqlite3.Connection:
    """Connect to an existing file as it is at this moment, whatever is in it: later changes are not seen, and nothing
    is changed. Raise a `sqlite3.DatabaseError` if it cannot be read."""
    is_closed = not path.with_name(path.name + "-wal").exists()
    mode = "immutable=1" if is_closed else "mode=ro"  # a closed one would get a -wal beside it
    database = sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True, isolation_level=None)
    database.row_factory = sqlite3.Row
    database.execute("BEGIN")
    return database


def open_database(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open an existing database, with `read_only` as `connect_read_only` does. Raise a `StoreError` if it is not a
    store, damaged, or of another version."""
    with translated_store_errors(path):
        database = connect_read_only(path) if read_only else _connect_for_writing(path)
        _check_format(path, database)
        damage = database.execute("PRAGMA integrity_check").fetchone()[0]
    if damage != "ok":
        raise StoreError(f"{path}: the store is damaged: {' '.join(damage.split())}. Restore it from a copy.")
    return database


@contextmanager
def translated_store_errors(path: Path) -> Iterator[None]:
    """Turn each error of reading a store into a `StoreError`: the file is damaged or locked, or somebody else wrote
    another content into it."""
    try:
        yield
    except INVALID_STORE_ERRORS as error:
        if isinstance(error, sqlite3.Error) and (str(error) in DISK_ERRORS or _is_locked(error)):
            raise _unavailable_error(path, error) from error
        reason = shorten(describe(error)).rstrip(".")
        raise StoreError(f"{path} cannot be read as a store: {reason}. Restore it from a copy.") from error


def _check_format(path: Path, database: sqlite3.Connection) -> None:
    """Refuse a store of another format."""
    (number,) = database.execute("PRAGMA user_version").fetchone()
    version_row = database.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
    check_format(path, number, FORMAT, version=version_row and json.loads(version_row["value"]))


def _connect_for_writing(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level=None, timeout=BUSY_TIMEOUT_SECONDS)
    database.row_factory = sqlite3.Row
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    return database


def _is_locked(error: sqlite3.Error) -> bool:
    return "locked" in str(error)


def _unavailable_error(path: Union[str, Path], error: sqlite3.Error) -> StoreError:
    return StoreError(
        f"{path}: the store is unavailable: {error}. Nothing is lost. Free some disk space, or close the program that "
        "holds its lock, such as a database viewer. Then continue with --recover."
    )


@contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[None]:
    """Write everything inside or nothing. Wait up to `LOCK_TIMEOUT_SECONDS` for another program that is writing."""
    try:
        _begin_transaction(database)
        try:
            yield
            database.execute("COMMIT")
        except BaseException:
            if database.in_transaction:  # a full disk has rolled it back already
                database.execute("ROLLBACK")
            raise
    except sqlite3.OperationalError as error:
        raise _unavailable_error(database.execute("PRAGMA database_list").fetchone()[2], error) from error


def _begin_transaction(database: sqlite3.Connection) -> None:
    deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
    while True:
        try:
            database.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            if not _is_locked(error) or time.monotonic() >= deadline:
                raise


# What the rows say.


def read_history(
    database: sqlite3.Connection, *, removed: Iterable[str], sign: int = 1, is_judged: bool = True
) -> History:
    """Return the history in the tables, with nobody withdrawn. Unless `is_judged`, runs that missed `--min-score` are
    finished ones."""
    scored = ("finished",) if is_judged else ("finished", "missed")
    rows = database.execute("SELECT * FROM evaluations ORDER BY reserved_order").fetchall()
    requests = {_request_key(row): build_record(Request, dict(row)) for row in rows}
    finished_rows = sorted((row for row in rows if row["status"] in scored), key=lambda row: row["finished_order"])
    failure_rows = database.execute(
        "SELECT * FROM failures WHERE ? OR kind <> 'score' ORDER BY finished_order", (is_judged,)
    ).fetchall()
    name_rows = database.execute("SELECT name FROM candidates ORDER BY position").fetchall()
    return History(
        candidates=tuple(row["name"] for row in name_rows),
        evaluations=tuple(_read_outcome(Evaluation, row, requests) for row in finished_rows),
        pending=tuple(requests[_request_key(row)] for row in rows if row["status"] == "pending"),
        failures=tuple(_read_outcome(Failure, row, requests) for row in failure_rows),
        removed=frozenset(removed),
        sign=sign,
    )


@lru_cache(maxsize=1000)
def _parse_origin(text: str) -> Origin:
    """Return the origin of runs; most have an equal one."""
    origin: Origin = convert_value(json.loads(text), Origin, "origin")
    return origin


def _request_key(row: sqlite3.Row) -> Tuple[str, int]:
    return row["candidate"], row["replicate"]


def _read_outcome(
    record_class: Type[OutcomeRecord], row: sqlite3.Row, requests: Mapping[Tuple[str, int], Request]
) -> OutcomeRecord:
    """Return a record of a row. Some of its metrics may be infinite or NaN."""
    values = {**dict(row), "request": requests[_request_key(row)], "origin": _parse_origin(row["origin"])}
    metrics = json.loads(values.pop("metrics", None) or "{}")
    outcome: Any = build_record(record_class, values)
    if isinstance(outcome, Evaluation):
        outcome = replace(outcome, metrics=metrics)
    return outcome
