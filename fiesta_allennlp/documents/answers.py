"""All answers in one SQLite file, so that no question is asked and paid for twice."""

import hashlib
import json
import sqlite3
import threading
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, Optional, Tuple

from fiesta_allennlp.core.errors import StoreError
from fiesta_allennlp.selecting.database import connect_read_only

Charge = Tuple[int, float]
"""The number of questions asked and their cost."""

VERSION = 1
DATABASE_TIMEOUT_SECONDS = 60.0
"""How long to wait for another selection that writes to the same file."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (
    system TEXT NOT NULL, question TEXT NOT NULL, run TEXT NOT NULL, asker TEXT NOT NULL, answer TEXT NOT NULL,
    cost REAL NOT NULL, seconds REAL NOT NULL, asked_at TEXT NOT NULL,
    PRIMARY KEY (system, question, run, asker)
);
CREATE INDEX IF NOT EXISTS charges ON answers (run, asker);
"""


@dataclass(frozen=True)
class Answer:
    """An answer to a question, as plain data; `seconds` is its duration, `asked_at` ISO 8601 in UTC."""

    value: Any
    seconds: float
    asked_at: str


class AnswerStore:
    """Answers by system and question, written by any thread, and by several selections at once. `run` names the
    selection that pays for new answers."""

    def __init__(self, path: Path, *, run: str) -> None:
        self._path = path
        self._run = run
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=DATABASE_TIMEOUT_SECONDS
            )
            self._create_tables()
        except (OSError, sqlite3.Error) as error:
            raise self._store_error(error) from error

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def find_answer(self, system: str, question: Any) -> Optional[Answer]:
        """Return the first answer of a system to a question, whoever paid for it."""
        with self._locked_database() as database:
            row = database.execute(
                "SELECT answer, seconds, asked_at FROM answers WHERE system = ? AND question = ? ORDER BY asked_at",
                (system, sha256_key(question)),
            ).fetchone()
        return None if row is None else Answer(json.loads(row[0]), row[1], row[2])

    def record(self, system: str, question: Any, answer: Answer, *, asker: str, cost: float) -> None:
        """Record an answer and its cost; `asker` is the selection's name for the system."""
        value = json.dumps(answer.value)
        row = (system, sha256_key(question), self._run, asker, value, cost, answer.seconds, answer.asked_at)
        with self._locked_database() as database:
            database.execute("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def count_answers(self, system: str) -> int:
        with self._locked_database() as database:
            query = "SELECT COUNT(DISTINCT question) FROM answers WHERE system = ?"
            return int(database.execute(query, (system,)).fetchone()[0])

    def _create_tables(self) -> None:
        """Create the tables in a new file; refuse any other file."""
        version = self._database.execute("PRAGMA user_version").fetchone()[0]
        tables = self._database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
        if version != VERSION and (version or tables):
            raise StoreError(f"{self._path} is not an answers file of this version. Pass another with --answers.")
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.executescript(SCHEMA)
        self._database.execute(f"PRAGMA user_version = {VERSION}")

    @contextmanager
    def _locked_database(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._database
            except sqlite3.Error as error:
                raise self._store_error(error) from error

    def _store_error(self, error: Exception) -> StoreError:
        return StoreError(f"cannot use the answers file {self._path}: {error}. Fix it, or pass another with --answers.")


def read_charges(path: Path, *, run: str) -> Optional[Dict[str, Charge]]:
    """Return how many questions a selection, finished or running, asked and their cost, by asker, without changing the
    file; None if it cannot be read. Kept answers do not count."""
    if not path.is_file():
        return None
    try:
        with closing(connect_read_only(path)) as database:
            query = "SELECT asker, COUNT(*), SUM(cost) FROM answers WHERE run = ? GROUP BY asker"
            return {asker: (number, cost) for asker, number, cost in database.execute(query, (run,))}
    except sqlite3.Error:
        return None


def sha256_key(identity_or_question: Any) -> str:
    text = json.dumps(identity_or_question, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
