"""The SQLite file behind a run store: its tables, how it is opened and checked, transactions, and what its rows say."""

import json
import sqlite3
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, Mapping, Optional, Tuple, Type, Union

from fiesta_allennlp.core import files, registry
from fiesta_allennlp.core.choice_settings import ChoiceSettingsType
from fiesta_allennlp.core.errors import ConfigError, StoreError, describe
from fiesta_allennlp.core.metrics import Metric
from fiesta_allennlp.core.records import Evaluation, Failure, History, Origin, Request
from fiesta_allennlp.selecting import provenance
from fiesta_allennlp.version import __version__

FORMAT = 3
"""SQLite's `user_version` of a store. Raise it with every change of the tables and of what they contain."""

FAILURE_FIELDS = [f.name for f in fields(Failure) if f.name != "request"]

DISK_ERRORS = ("disk I/O error", "database or disk is full", "unable to open database file")
"""SQLite's errors about a disk, not about a damaged file."""

LOCK_TIMEOUT_SECONDS = 300.0
"""The time for which another program may hold the write lock, such as one that looks at the store or copies it."""

BUSY_TIMEOUT_SECONDS = 1.0
"""The busy timeout of one attempt. It is short because Ctrl-C has no effect meanwhile."""

INVALID_STORE_ERRORS = (
    *(sqlite3.Error, ConfigError),
    *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError),
)
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
        with files.atomic_replacement(path) as file, closing(sqlite3.connect(file)) as database:
            database.executescript(SCHEMA)  # so a database that is there has its tables
    except (sqlite3.OperationalError, OSError) as error:
        raise StoreError(f"{path} cannot be created: {error}. Choose another directory with -s.") from error
    return open_database(path)


def open_database(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open an existing database, with `read_only` as `connect_read_only` does. Raise a `StoreError` if it is not a
    store, damaged, or of another version."""
    with translated_store_errors(path):
        if read_only:
            database = connect_read_only(path)
        else:
            database = sqlite3.connect(path, isolation_level=None, timeout=BUSY_TIMEOUT_SECONDS)
            database.row_factory = sqlite3.Row
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
        (number,) = database.execute("PRAGMA user_version").fetchone()
        version_row = database.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
        files.check_format(path, number, FORMAT, version=version_row and json.loads(version_row["value"]))
        damage = database.execute("PRAGMA integrity_check").fetchone()[0]
    if damage != "ok":
        raise StoreError(f"{path}: the store is damaged: {' '.join(damage.split())}. Restore it from a copy.")
    return database


def connect_read_only(path: Path) -> sqlite3.Connection:
    """Connect to an existing file as it is at this moment, whatever is in it: later changes are not seen, and nothing
    is changed. Raise a `sqlite3.DatabaseError` if it cannot be read."""
    is_closed = not path.with_name(path.name + "-wal").exists()
    mode = "immutable=1" if is_closed else "mode=ro"  # a closed one would get a -wal beside it
    database = sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True, isolation_level=None)
    database.row_factory = sqlite3.Row
    database.execute("BEGIN")
    return database


@contextmanager
def translated_store_errors(path: Path) -> Iterator[None]:
    """Turn each error of reading a store into a `StoreError`: the file is damaged or locked, or somebody else wrote
    another content into it."""
    try:
        yield
    except INVALID_STORE_ERRORS as error:
        if isinstance(error, sqlite3.Error) and (str(error) in DISK_ERRORS or "locked" in str(error)):
            raise _unavailable_error(path, error) from error
        reason = files.shorten(describe(error)).rstrip(".")
        raise StoreError(f"{path} cannot be read as a store: {reason}. Restore it from a copy.") from error


@contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[None]:
    """Write everything inside or nothing. Wait up to `LOCK_TIMEOUT_SECONDS` for another program that is writing."""
    deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
    try:
        try:
            while not database.in_transaction:
                try:
                    database.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError as error:
                    if "locked" not in str(error) or time.monotonic() >= deadline:
                        raise
            yield
            database.execute("COMMIT")
        except BaseException:
            if database.in_transaction:  # a full disk has rolled it back already
                database.execute("ROLLBACK")
            raise
    except sqlite3.OperationalError as error:
        raise _unavailable_error(database.execute("PRAGMA database_list").fetchone()[2], error) from error


def _unavailable_error(path: Union[str, Path], error: sqlite3.Error) -> StoreError:
    return StoreError(
        f"{path}: the store is unavailable: {error}. Nothing is lost. Free some disk space, or close the program that "
        "holds its lock, such as a database viewer. Then continue with --recover."
    )


# What the rows say.


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
    source: provenance.PackageSource = field(default_factory=provenance.PackageSource)
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
    def metric(self) -> Metric:
        """The metric of the settings; one without a name if they have none."""
        return Metric.parse((self.settings or {}).get("metric") or "")

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


def read_history(
    database: sqlite3.Connection, *, removed: Iterable[str], sign: int = 1, is_judged: bool = True
) -> History:
    """Return the history in the tables, with nobody withdrawn. Unless `is_judged`, runs that missed `--min-score` are
    finished ones."""
    rows = database.execute("SELECT * FROM evaluations ORDER BY reserved_order").fetchall()
    requests = {(row["candidate"], row["replicate"]): registry.build_record(Request, dict(row)) for row in rows}
    scored = ("finished",) if is_judged else ("finished", "missed")
    finished_rows = sorted((row for row in rows if row["status"] in scored), key=lambda row: row["finished_order"])
    failure_rows = database.execute(
        "SELECT * FROM failures WHERE ? OR kind <> 'score' ORDER BY finished_order", (is_judged,)
    ).fetchall()
    name_rows = database.execute("SELECT name FROM candidates ORDER BY position").fetchall()
    return History(
        candidates=tuple(row["name"] for row in name_rows),
        evaluations=tuple(_read_outcome(Evaluation, row, requests) for row in finished_rows),
        pending=tuple(requests[row["candidate"], row["replicate"]] for row in rows if row["status"] == "pending"),
        failures=tuple(_read_outcome(Failure, row, requests) for row in failure_rows),
        removed=frozenset(removed),
        sign=sign,
    )


def _read_outcome(outcome_class: Type[Any], row: sqlite3.Row, requests: Mapping[Tuple[str, int], Request]) -> Any:
    """Return an outcome of this class from its row. Some of its metrics may be infinite or NaN."""
    request = requests[row["candidate"], row["replicate"]]
    values = {**row, "request": request, "origin": _parse_origin(row["origin"])}
    metrics = json.loads(values.pop("metrics", None) or "{}")
    outcome = registry.build_record(outcome_class, values)
    return replace(outcome, metrics=metrics) if outcome_class is Evaluation else outcome


@lru_cache(maxsize=1000)
def _parse_origin(text: str) -> Origin:
    """Return the origin of runs; most have an equal one."""
    origin: Origin = registry.convert_value(json.loads(text), Origin, "origin")
    return origin
