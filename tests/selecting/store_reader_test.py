import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import StoreError
from fiesta_allennlp.core.records import Evaluation
from fiesta_allennlp.selecting.store import RunStore, open_for_reading
from tests.selections import METRIC, write_selection

SCORES = {"a": [0.5, 0.6], "b": [0.4, 0.3]}


def test_it_reads_what_the_writer_knew_and_neither_writes_nor_holds_it_up(tmp_path: Path) -> None:
    root = tmp_path / "50% of #1?"
    store = write_selection(root, SCORES, pending=[("a", 2)], failures=[("b", 2, "no")], meta={"removed": ["b"]})
    with open_for_reading(RunDirectory(root)) as reader:
        known = store.history(max_failures=3), store.candidates(), store.rows()
        assert (reader.history(max_failures=3), reader.candidates(), reader.rows()) == known
        assert (reader.meta().removed, reader.meta().is_started, reader.meta().seed) == (("b",), True, "7")
        store.record(Evaluation(known[0].pending[0], 0.7, METRIC))
        assert reader.rows() == known[2] != store.rows()
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader._database.execute("DELETE FROM evaluations")
    store.close()
    before = sorted(root.iterdir())
    with open_for_reading(RunDirectory(root)) as reader:
        assert len(reader.rows()) == len(known[2]) + 1
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader._database.execute("DELETE FROM evaluations")
    assert sorted(root.iterdir()) == before
    with closing(sqlite3.connect(RunDirectory(root).store)) as database, database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="has format 99"), open_for_reading(RunDirectory(root)):
        pass


def test_a_killed_store_is_read_with_its_log(tmp_path: Path) -> None:
    """A copy made while it is open is what a kill leaves."""
    store = write_selection(tmp_path / "run", SCORES)
    shutil.copytree(tmp_path / "run", tmp_path / "killed", ignore=shutil.ignore_patterns("*-shm"))
    store.close()
    log = RunDirectory(tmp_path / "killed").store_log
    before = log.read_bytes()
    with open_for_reading(RunDirectory(tmp_path / "killed")) as reader:
        assert len(reader.rows()) == 4
    assert log.read_bytes() == before


def test_a_store_that_cannot_be_opened_here_need_not_be_damaged(tmp_path: Path) -> None:
    write_selection(tmp_path, SCORES).close()
    directory = RunDirectory(tmp_path)
    directory.store.with_name(f"{directory.store.name}-wal").mkdir()  # a file that may not be opened
    with pytest.raises(StoreError, match="unavailable: unable to open"), open_for_reading(directory):
        pass


DEEP = "'" + "[" * 100_000 + "]" * 100_000 + "'"


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO failures VALUES (99, 'a', 99, 99, 'error', '', 1.0, '', NULL, '{}')",
        f"INSERT OR REPLACE INTO meta VALUES ('working_seconds', '1{'0' * 400}')",
        f"UPDATE meta SET value = {DEEP} WHERE key = 'settings'",
        *(
            f"UPDATE {table} SET {column} = {value}"
            for table, column, values in [
                ("candidates", "config", ("1", "'[]'", "'{'", DEEP)),
                ("candidates", "facts", ("1", "'[1]'", DEEP)),
                ("evaluations", "score", ("'high'", "x'ff'", "9e999", "NULL")),
                ("evaluations", "split_seed", ("'many'", "1.5")),
                ("evaluations", "seconds", ("'long'",)),
                ("evaluations", "metrics", (DEEP,)),
                ("evaluations", "metric", ("x'ff'",)),
                ("evaluations", "origin", ("'[1]'", """'{"cores": "many"}'""", DEEP, "NULL")),
                ("meta", "value", ("'[1]'", "'many'", "'{}'")),
            ]
            for value in values
        ),
    ],
)
def test_a_store_with_anything_else_in_it_is_refused_in_one_message(tmp_path: Path, change: str) -> None:
    write_selection(tmp_path, SCORES, failures=[("b", 2, "no")]).close()
    directory = RunDirectory(tmp_path)
    with closing(sqlite3.connect(directory.store)) as database:
        database.executescript(change)
    for opened in (open_for_reading, lambda directory: closing(RunStore(directory, create=False))):
        said = "store.sqlite cannot be read as a store: "
        with pytest.raises(StoreError, match=said) as refusal, opened(directory) as store:
            store.meta(), store.candidates(), store.history(max_failures=3)
        assert len(str(refusal.value)) < 500


def test_a_store_with_an_unknown_setting_names_the_version_that_wrote_it(tmp_path: Path) -> None:
    write_selection(tmp_path, SCORES, meta={"version": "0.9.0"}).close()
    with closing(sqlite3.connect(RunDirectory(tmp_path).store)) as database, database:
        database.execute("UPDATE meta SET value = json_set(value, '$.shuffle', 1) WHERE key = 'settings'")
    with open_for_reading(RunDirectory(tmp_path)) as reader, pytest.raises(StoreError, match=r"'shuffle'.*0\.9\.0"):
        reader.meta().to_settings(Settings)
