import errno
import fcntl
import os
import threading
from pathlib import Path
from typing import Callable

import pytest

from fiesta_allennlp.core.directory import DirectoryLock, RunDirectory, is_locked
from fiesta_allennlp.core.errors import StoreError
from fiesta_allennlp.core.records import Candidate
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.selecting.store import RunStore


def test_a_reader_sees_the_lock_and_a_writer_that_starts_waits_for_the_reader(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    lock = DirectoryLock(directory)
    assert is_locked(directory)
    with pytest.raises(StoreError, match="another selection is running"):
        DirectoryLock(directory)
    lock.release()
    assert not is_locked(directory)
    reader = os.open(directory.lock, os.O_RDONLY)
    fcntl.flock(reader, fcntl.LOCK_SH)
    threading.Timer(0.05, os.close, [reader]).start()
    DirectoryLock(directory).release()


def test_a_file_system_without_locks_is_refused_and_keeps_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(file: int, operation: int) -> None:
        opened.append(file)
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    opened: "list[int]" = []
    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(StoreError, match="not writable: .*No locks"):
        DirectoryLock(RunDirectory(tmp_path))
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened[0])


def test_a_file_that_another_machine_deleted_is_no_longer_the_one_that_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stat(path: Path) -> os.stat_result:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    directory = RunDirectory(tmp_path)
    lock = DirectoryLock(directory)
    with monkeypatch.context() as network:
        network.setattr(Path, "stat", stat)
        with pytest.raises(StoreError, match=f"'{directory.lock.name}' was deleted"):
            lock.check_files()
    lock.release()


REPLACED: "list[Callable[[RunDirectory], object]]" = [
    lambda directory: directory.root.rename(directory.root.with_name("moved")),
    lambda directory: directory.lock.unlink(),
    lambda directory: directory.store.unlink(),
    lambda directory: os.replace(directory.log, directory.store),
]


@pytest.mark.parametrize("replace", REPLACED)
def test_nothing_is_written_once_a_file_is_no_longer_the_one_that_was_opened(
    tmp_path: Path, replace: Callable[[RunDirectory], object]
) -> None:
    directory = RunDirectory(tmp_path / "run")
    store = RunStore(directory, create=True)
    store.put_candidates([Candidate("a", "a.jsonnet", {}, {})])
    store.reserve([make_request(1, "a", 0, shared_splits=True)])
    directory.log.touch()
    replace(directory)
    left = sorted(tmp_path.rglob("*"))
    with pytest.raises(StoreError, match="was deleted"):
        store.reserve([make_request(1, "a", 1, shared_splits=True)])
    assert store.num_reserved() == 1
    store.close(keep=False)
    assert sorted(tmp_path.rglob("*")) in (left, [path for path in left if not path.name.startswith("store.sqlite-")])


def test_the_files_of_the_next_selection_survive_the_end_of_the_one_before(tmp_path: Path) -> None:
    """SQLite deletes its log by name at the end."""
    directory = RunDirectory(tmp_path / "run")
    first = RunStore(directory, create=True)
    directory.root.rename(tmp_path / "moved")
    second = RunStore(directory, create=True)
    second.set_meta(seed="2")
    first.close(keep=False)
    second.check_ownership()
    second.close()
    assert RunStore(directory, create=False).meta().seed == "2"
