import itertools
import shutil
import sqlite3
import tempfile
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Iterator
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import StoreError
from fiesta_allennlp.core.records import Candidate, Evaluation, Failure, History
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.selecting.store import RunStore, open_for_reading
from fiesta_allennlp.version import __version__
from tests.selections import METRIC, ORIGIN, write_selection


def request(candidate: str, replicate: int):
    return make_request(7, candidate, replicate, shared_splits=True)


def refused(directory: RunDirectory, message: str, *, create: bool = False) -> None:
    """The directory must not be opened, with this message."""
    with pytest.raises(StoreError, match=message):
        RunStore(directory, create=create)


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path / "run")


@pytest.fixture
def store(directory: RunDirectory) -> Iterator[RunStore]:
    store = RunStore(directory, create=True)
    store.put_candidates([Candidate(n, f"{n}.jsonnet", {"x": 1}, {}) for n in ("b", "a")])
    yield store
    store.close()


def test_a_store_has_what_came_of_every_request_also_when_it_is_opened_again(
    store: RunStore, directory: RunDirectory
) -> None:
    empty = store.history(max_failures=3)
    assert (empty.candidates, empty.evaluations, empty.pending, empty.failures) == (("b", "a"), (), (), ())
    assert store.num_reserved() == store.next_replicate("a") == 0
    store.set_meta(kind="trainings", seed=str(2**127), settings={"metric": "f1"})
    requests = [request("a", 0), request("b", 0), request("a", 1), request("a", 2)]
    store.reserve(requests)
    assert store.history(max_failures=3).pending == tuple(requests)
    store.record(Failure(requests[0], "killed", "signal 9", origin=ORIGIN), will_retry=True)
    metrics = {"loss": 1.5, "count:tp": 7, "count:fp": 0}
    store.record(Evaluation(requests[1], 0.1 + 0.2, "f1", 3.0, "2020-01-01T00:00:00+00:00", metrics, ORIGIN))
    store.record(Failure(requests[2], "error", "nan loss", 2.0, "", "failures/a-1.1.log"))
    store.record(Evaluation(requests[0], 0.6, "f1", metrics={**metrics, "count:tp": 4}))
    with pytest.raises(StoreError, match="a-0 is not pending"):
        store.record(Evaluation(requests[0], 0.7, "f1"))
    store.put_candidates([Candidate("b", "b.jsonnet", {}, {"new": 1})])
    assert [(c.name, c.facts) for c in store.candidates()] == [("b", {"new": 1}), ("a", {})]
    before, rows = store.history(max_failures=3), store.rows()
    store.close()
    with closing(RunStore(directory, create=False)) as again:
        assert (again.history(max_failures=3), again.rows()) == (before, rows)
        assert (again.meta().seed, again.meta().settings, again.meta().run) == (str(2**127), {"metric": "f1"}, None)
        assert (again.next_replicate("a"), again.next_replicate("b"), again.num_reserved()) == (3, 1, 4)
        assert again.history(max_failures=2).withdrawn == frozenset(), "a-0 finished at last"
        assert again.history(max_failures=1).withdrawn == {"a"} and again.history(max_failures=1).active == ("b",)
        again.set_meta(removed=["b"])
        assert (again.history(max_failures=2).active, again.history(max_failures=2).num_finished("b")) == (("a",), 1)
    assert before.pending == (requests[3],)
    evaluations = [(e.request, e.score, e.seconds) for e in before.evaluations]
    assert evaluations == [(requests[1], 0.1 + 0.2, 3.0), (requests[0], 0.6, 0.0)]
    failures = [(f.request.name, f.kind, f.error, f.log_path) for f in before.failures]
    assert failures == [("a-0", "killed", "signal 9", None), ("a-1", "error", "nan loss", "failures/a-1.1.log")]
    assert before.failures[0].origin == before.evaluations[0].origin == ORIGIN
    assert before.evaluations[0].metrics == metrics and before.counts("b").values.tolist() == [[0, 7]]
    ended = [f"{row['candidate']} {row['status']}" for row in rows]
    assert ended == ["a failed", "b finished", "a failed", "a finished"]
    assert [row["split_seed"] for row in rows] == [requests[k].split_seed for k in (0, 1, 2, 0)]


def test_a_refused_change_changes_nothing(store: RunStore, directory: RunDirectory) -> None:
    store.reserve([request("a", 0)])
    with pytest.raises(sqlite3.IntegrityError):
        store.reserve([request("a", 1), request("a", 0)])
    store._database.execute("PRAGMA max_page_count = 1")
    with pytest.raises(StoreError, match="full.*--recover"):
        store.reserve([request("a", k) for k in range(1, 2000)])
    store._database.execute("PRAGMA max_page_count = 100000")
    assert store.history(max_failures=3).pending == (request("a", 0),)
    refused(directory, "another selection is running")
    store.close()
    refused(directory, "already exists", create=True)
    directory.lock.touch()  # as a kill leaves it, held by nobody
    RunStore(directory, create=False).close()


def test_released_requests_are_forgotten_unless_they_finished_or_failed(
    store: RunStore, directory: RunDirectory
) -> None:
    requests = [request("a", k) for k in range(3)]
    store.reserve(requests)
    store.record(Evaluation(requests[0], 0.5, "f1"))
    store.record(Failure(requests[1], "killed", "signal 9"), will_retry=True)
    store.release_pending(requests)
    history = store.history(max_failures=3)
    assert ([e.request for e in history.evaluations], history.pending) == ([requests[0]], ())
    assert [f.request for f in history.failures] == [requests[1]]
    store.close()
    with closing(RunStore(directory, create=False)) as again:
        assert again.history(max_failures=3) == history
        assert [row["split_seed"] for row in again.rows()] == [made.split_seed for made in requests[:2]]
        assert again.next_replicate("a") == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("PRAGMA user_version = 99", f"has format 99, .* format 3\\. .*: {__version__}"),
        ("PRAGMA user_version = 0; DELETE FROM meta", "has format 0, .*: unknown"),
        ("DROP TABLE meta", "cannot be read as a store: .*no such table: meta"),
    ],
)
def test_a_store_of_another_version_or_kind_is_an_error(
    store: RunStore, directory: RunDirectory, change: str, message: str
) -> None:
    store.reserve([request("a", 0)])
    store.close()
    with closing(sqlite3.connect(directory.store)) as database:
        database.executescript(change)
        database.commit()
    for _ in range(2):  # the refusal leaves no lock behind
        refused(directory, f"store.sqlite .*{message}")


@pytest.mark.parametrize("part", [0.05, 0.6, 0.99, "overwritten", "empty", "of another kind"])
def test_a_damaged_store_is_an_error(store: RunStore, directory: RunDirectory, part: Any) -> None:
    store.reserve([request("a", replicate) for replicate in range(400)])
    store.close()
    content = directory.store.read_bytes()
    overwritten = content[:8192] + b"\xff" * 12288 + content[20480:]
    damaged = {"overwritten": overwritten, "empty": b"", "of another kind": b"x" * 4000}
    directory.store.write_bytes(damaged[part] if part in damaged else content[: int(len(content) * part)])
    refused(directory, r"store.sqlite(: the store is damaged| cannot be read as a store)")


def test_what_cannot_hold_a_store_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    refused(RunDirectory(tmp_path / "taken"), "taken .*it is a file", create=True)
    refused(RunDirectory(tmp_path / "nowhere"), "nowhere: nothing to recover")
    assert not (tmp_path / "nowhere").exists()


@settings(max_examples=40, deadline=None)
@given(data=some.data())
def test_the_history_in_memory_is_always_that_of_the_file(data: some.DataObject) -> None:
    """After any changes, refused ones included."""
    with tempfile.TemporaryDirectory() as scratch:
        store = RunStore(RunDirectory(Path(scratch)), create=True)
        store.put_candidates([Candidate(n, n, {}, {}) for n in ("b", "a")])
        some_requests = some.builds(request, some.sampled_from(["a", "b"]), some.integers(0, 3))
        for _ in range(data.draw(some.integers(1, 12))):
            wanted = data.draw(some.lists(some_requests, min_size=1, max_size=3))
            what = data.draw(some.sampled_from(["reserve", "score", "failure", "again", "release", "remove"]))
            with suppress(StoreError, sqlite3.IntegrityError):
                if what == "reserve":
                    store.reserve(wanted)
                elif what == "score":
                    store.record(Evaluation(wanted[0], data.draw(some.floats(-1, 1)), "f1", metrics={"loss": 1.0}))
                elif what == "release":
                    store.release_pending(wanted)
                elif what == "remove":
                    store.put_candidates([], removed=[wanted[0].candidate])
                elif wanted[0] in store.history(max_failures=2).pending:
                    store.record(Failure(wanted[0], "killed", "signal 9"), will_retry=what == "again")
            kept, store._history = store.history(max_failures=2), None
            assert store.history(max_failures=2) == kept
        store.close()


def test_a_change_that_is_interrupted_leaves_file_and_memory_alike(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C between the file and the memory: the file counts."""
    store.reserve([request("a", 0)])
    with monkeypatch.context() as patched:
        patched.setattr(History, "with_finished", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            store.record(Evaluation(request("a", 0), 0.5, "f1"))
    assert store.history(max_failures=3).pending == (request("a", 0),)
    store.record(Evaluation(request("a", 0), 0.5, "f1"))
    assert [e.score for e in store.history(max_failures=3).evaluations] == [0.5]


@pytest.fixture
def another(store: RunStore, directory: RunDirectory) -> Iterator[sqlite3.Connection]:
    """Another program's connection to the file, which holds the write lock. SQLite itself hardly waits for it."""
    store._database.execute("PRAGMA busy_timeout = 1")
    with closing(sqlite3.connect(directory.store, isolation_level=None, check_same_thread=False)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection


def test_another_program_that_writes_for_a_while_is_waited_for(
    store: RunStore, another: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lets the lock go when a minute has passed, by the clock that the store looks at."""
    seconds = itertools.count(0, 10)

    def monotonic() -> float:
        now = next(seconds)
        if now == 60:
            another.execute("COMMIT")
        return now

    monkeypatch.setattr("fiesta_allennlp.selecting.database.time", SimpleNamespace(monotonic=monotonic))
    store.reserve([request("a", 0)])
    assert next(seconds) > 60
    assert store.history(max_failures=3).pending == (request("a", 0),)


def test_a_lock_that_another_program_keeps_is_told_and_nothing_is_lost(
    store: RunStore, another: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fiesta_allennlp.selecting.database.LOCK_TIMEOUT_SECONDS", 0.0)
    with pytest.raises(StoreError, match="locked.* close the program .*--recover"):
        store.reserve([request("a", 0)])
    another.execute("COMMIT")
    assert store.history(max_failures=3).pending == ()
    store.reserve([request("a", 0)])


def test_a_lock_that_another_program_keeps_on_opening_is_no_damage(
    store: RunStore, directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fiesta_allennlp.selecting.database.BUSY_TIMEOUT_SECONDS", 0.01)
    store.close()
    with closing(sqlite3.connect(directory.store, isolation_level=None)) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        refused(directory, "unavailable: database is locked")
        connection.execute("COMMIT")


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


DEEP = "'" + "[" * 100_000 + "]" * 100_000 + "'"


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO failures VALUES (99, 'a', 99, 99, 'error', '', 1.0, '', NULL, '{}')",
        f"INSERT OR REPLACE INTO meta VALUES ('working_seconds', '1{'0' * 400}')",
        f"UPDATE meta SET value = {DEEP} WHERE key = 'settings'",
        """UPDATE meta SET value = '{"metric": 5}' WHERE key = 'settings'""",
        *(
            f"UPDATE {table} SET {column} = {value}"
            for table, column, values in [
                ("candidates", "config", ("1", "'[]'", "'{'", DEEP)),
                ("candidates", "facts", ("1", "'[1]'", DEEP)),
                ("evaluations", "score", ("'high'", "x'ff'", "9e999", "NULL")),
                ("evaluations", "split_seed", ("'many'", "1.5")),
                ("evaluations", "metrics", (DEEP,)),
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
        said = "store.sqlite cannot be read"
        with pytest.raises(StoreError, match=said) as refusal, opened(directory) as store:
            store.meta(), store.candidates(), store.history(max_failures=3)
        assert len(str(refusal.value)) < 500


def test_a_store_with_an_unknown_setting_names_the_version_that_wrote_it(tmp_path: Path) -> None:
    write_selection(tmp_path, SCORES, meta={"version": "0.9.0"}).close()
    with closing(sqlite3.connect(RunDirectory(tmp_path).store)) as database, database:
        database.execute("UPDATE meta SET value = json_set(value, '$.shuffle', 1) WHERE key = 'settings'")
    with open_for_reading(RunDirectory(tmp_path)) as reader, pytest.raises(StoreError, match=r"'shuffle'.*0\.9\.0"):
        reader.meta().to_settings(Settings)
