import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import StoreError
from fiesta_allennlp.records import Evaluation
from fiesta_allennlp.selection.store import reading
from tests.selections import METRIC, write_selection

SCORES = {"a": [0.5, 0.6], "b": [0.4, 0.3]}


def test_it_reads_what_the_writer_knew_and_neither_writes_nor_holds_it_up(tmp_path: Path) -> None:
    root = tmp_path / "50% of #1?"
    store = write_selection(root, SCORES, pending=[("a", 2)], failures=[("b", 2, "no")], meta={"removed": ["b"]})
    with reading(RunDirectory(root)) as reader:
        known = store.history(max_failures=3), store.candidates(), store.rows()
        assert (reader.history(max_failures=3), reader.candidates(), reader.rows()) == known
        assert (reader.meta().removed, reader.meta().begun, reader.meta().seed) == (("b",), True, "7")
        store.record(Evaluation(known[0].pending[0], 0.7, METRIC))
        assert reader.rows() == known[2] != store.rows()
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader._database.execute("DELETE FROM evaluations")
    store.close()
    before = sorted(root.iterdir())
    with reading(RunDirectory(root)) as reader:
        assert len(reader.rows()) == len(known[2]) + 1
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader._database.execute("DELETE FROM evaluations")
    assert sorted(root.iterdir()) == before
    with closing(sqlite3.connect(RunDirectory(root).store)) as database, database:
        database.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'")
    with pytest.raises(StoreError, match="version 99"), reading(RunDirectory(root)):
        pass


def test_a_killed_store_is_read_with_its_log(tmp_path: Path) -> None:
    """A copy made while it is open is what a kill leaves."""
    store = write_selection(tmp_path / "run", SCORES)
    shutil.copytree(tmp_path / "run", tmp_path / "killed", ignore=shutil.ignore_patterns("*-shm"))
    store.close()
    log = RunDirectory(tmp_path / "killed").store_log
    before = log.read_bytes()
    with reading(RunDirectory(tmp_path / "killed")) as reader:
        assert len(reader.rows()) == 4
    assert log.read_bytes() == before


def test_a_store_that_cannot_be_opened_here_need_not_be_damaged(tmp_path: Path) -> None:
    write_selection(tmp_path, SCORES).close()
    directory = RunDirectory(tmp_path)
    directory.store.with_name(f"{directory.store.name}-wal").mkdir()  # a file that may not be opened
    with pytest.raises(StoreError, match="unavailable: unable to open"), reading(directory):
        pass
