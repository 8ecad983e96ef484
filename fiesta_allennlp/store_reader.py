"""What can be read from a store, by the process that writes it and by any other."""

import json
import sqlite3
from contextlib import closing, contextmanager
from typing import Any, Dict, FrozenSet, Iterator, List

from fiesta_allennlp.errors import StoreError
from fiesta_allennlp.records import History
from fiesta_allennlp.run_directory import RunDirectory
from fiesta_allennlp.run_state import read_state
from fiesta_allennlp.store_file import open_to_read


class StoreReader:
    """Reads a store. Changes nothing and holds no lock."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    @property
    def begun(self) -> bool:
        """Whether the checks were passed: before, there is nothing to go on with."""
        return self.get_meta("settings") is not None

    def get_meta(self, key: str) -> Any:
        """The value written with `RunStore.set_meta`, or None."""
        row = self._database.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def removed(self) -> FrozenSet[str]:
        """The candidates that the user took out. Their evaluations stay."""
        return frozenset(self.get_meta("removed") or ())

    def candidates(self) -> List[Dict[str, Any]]:
        """`name`, `source`, `config` and `facts` of every candidate, in the order given."""
        rows = self._database.execute("SELECT * FROM candidates ORDER BY position").fetchall()
        return [
            {
                "name": row["name"],
                "source": row["source"],
                "config": json.loads(row["config"]),
                "facts": json.loads(row["facts"]),
            }
            for row in rows
        ]

    def history(self, *, max_failures: int) -> History:
        """Everything so far; of the metrics beside the score, the counts only: for the others see `rows`.

        A candidate that was removed, or has `max_failures` failures that count, is withdrawn. The latter is not
        written down, so a selection that is resumed with a larger number gives it another chance.
        """
        return read_state(self._database, removed=self.removed()).history(max_failures=max_failures)

    def rows(self) -> List[Dict[str, Any]]:
        """Every outcome in order of finishing, each with all of its columns, and `status` `finished` or `failed`."""
        finished = self._database.execute("SELECT * FROM evaluations WHERE status = 'finished'").fetchall()
        failed = self._database.execute(
            "SELECT f.*, 'failed' AS status, e.split_seed, e.random_seed, e.numpy_seed, e.pytorch_seed FROM failures f"
            " JOIN evaluations e ON e.candidate = f.candidate AND e.replicate = f.replicate"
        ).fetchall()
        return sorted((dict(row) for row in [*finished, *failed]), key=lambda row: row["finished_order"])


@contextmanager
def reading(directory: RunDirectory) -> Iterator[StoreReader]:
    """The store of a directory as it is at this moment, also while a selection is writing it.

    # Raises

    `StoreError` : where there is none, or it is damaged or of another version.
    """
    if not directory.store.is_file():
        raise StoreError(
            f"{directory.root}: there is no selection: '{directory.store.name}' is missing. Give the directory that "
            "fiesta-select was given with -s."
        )
    with closing(open_to_read(directory.store)) as database:
        yield StoreReader(database)
