import shutil
import sqlite3
from pathlib import Path
from typing import List

import pytest

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import StoreError
from fiesta_allennlp.records import Evaluation
from fiesta_allennlp.selection.store import reading
from tests.selections import METRIC, write_selection

SCORES = {"a": [0.5, 0.6], "b": [0.4, 0.3]}


def names(root: Path) -> List[str]:
    return sorted(path.name for path in root.iterdir())


def test_it_reads_what_the_writer_knows(tmp_path: Path) -> None:
    store = write_selection(tmp_path, SCORES, pending=[("a", 2)], failures=[("b", 2, "no")], meta={"removed": ["b"]})
    with reading(RunDirectory(tmp_path)) as reader:
        assert reader.history(max_failures=3) == store.history(max_failures=3)
        assert reader.candidates() == store.candidates()
        assert reader.rows() == store.rows()
        assert (reader.meta().removed, reader.meta().begun, reader.meta().seed) == (("b",), True, "7")
    store.close()


def test_what_is_written_meanwhile_is_not_seen_and_not_held_up(tmp_path: Path) -> None:
    store = write_selection(tmp_path, SCORES, pending=[("a", 2)])
    with reading(RunDirectory(tmp_path)) as reader:
        (request,) = store.history(max_failures=3).pending
        store.record(Evaluation(request, 0.7, METRIC))
        assert len(reader.history(max_failures=3).evaluations) == len(reader.rows()) == 4
    with reading(RunDirectory(tmp_path)) as reader:
        assert len(reader.rows()) == 5
    store.close()


def test_nothing_can_be_written(tmp_path: Path) -> None:
    store = write_selection(tmp_path, SCORES)
    for _ in ("open", "closed"):
        with reading(RunDirectory(tmp_path)) as reader, pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader._database.execute("DELETE FROM evaluations")
        store.close()


def test_a_closed_store_gets_no_files_beside_it(tmp_path: Path) -> None:
    write_selection(tmp_path, SCORES).close()
    before = names(tmp_path)
    with reading(RunDirectory(tmp_path)) as reader:
        assert len(reader.rows()) == 4
    assert names(tmp_path) == before


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


def test_a_name_with_special_characters_is_a_path(tmp_path: Path) -> None:
    write_selection(tmp_path / "50% of #1?", SCORES).close()
    with reading(RunDirectory(tmp_path / "50% of #1?")) as reader:
        assert len(reader.rows()) == 4


def test_another_version_is_refused(tmp_path: Path) -> None:
    write_selection(tmp_path, SCORES).close()
    with sqlite3.connect(RunDirectory(tmp_path).store) as database:
        database.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'")
    database.close()
    with pytest.raises(StoreError, match="version 99"), reading(RunDirectory(tmp_path)):
        pass


def test_a_store_that_cannot_be_opened_here_need_not_be_damaged(tmp_path: Path) -> None:
    write_selection(tmp_path, SCORES).close()
    directory = RunDirectory(tmp_path)
    directory.store.with_name(f"{directory.store.name}-wal").mkdir()  # a file that may not be opened
    with (
        pytest.raises(StoreError, match=r"you cannot read it now: unable to open .* as the user and on the machine"),
        reading(directory),
    ):
        pass
