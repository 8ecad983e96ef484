import itertools
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import StoreError
from fiesta_allennlp.records import Candidate, Evaluation, Failure, History
from fiesta_allennlp.seeding import make_request
from fiesta_allennlp.selection.store import RunStore
from tests.conftest import REPOSITORY


def request(candidate: str, replicate: int):
    return make_request(7, candidate, replicate, shared_splits=True)


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path / "run")


@pytest.fixture
def store(directory: RunDirectory) -> Iterator[RunStore]:
    store = RunStore(directory, create=True)
    store.put_candidates([Candidate(n, f"{n}.jsonnet", {"x": 1}, {}) for n in ("b", "a")])
    yield store
    store.close()


def test_a_new_store_is_empty(store: RunStore) -> None:
    history = store.history(max_failures=3)
    assert history.candidates == ("b", "a")
    assert history.evaluations == history.pending == history.failures == ()
    assert store.num_reserved() == store.next_replicate("a") == 0


def test_a_request_is_pending_then_finished(store: RunStore) -> None:
    store.reserve([request("a", 0), request("b", 0)])
    assert store.history(max_failures=3).pending == (request("a", 0), request("b", 0))
    store.record(Evaluation(request("b", 0), 0.5, "f1", 3.0, "2020-01-01T00:00:00+00:00", {"loss": 1.5}))
    history = store.history(max_failures=3)
    assert history.pending == (request("a", 0),)
    assert [(e.request, e.score, e.seconds) for e in history.evaluations] == [(request("b", 0), 0.5, 3.0)]
    assert (store.next_replicate("a"), store.next_replicate("b"), store.num_reserved()) == (1, 1, 2)


def test_evaluations_are_in_order_of_finishing(store: RunStore) -> None:
    store.reserve([request("a", 0), request("a", 1), request("b", 0)])
    for done in (request("b", 0), request("a", 1), request("a", 0)):
        store.record(Evaluation(done, 0.1, "f1"))
    assert [e.request.name for e in store.history(max_failures=3).evaluations] == ["b-0", "a-1", "a-0"]


def test_an_evaluation_cannot_finish_twice(store: RunStore) -> None:
    store.reserve([request("a", 0)])
    store.record(Evaluation(request("a", 0), 0.5, "f1"))
    with pytest.raises(StoreError, match="a-0 is not pending"):
        store.record(Evaluation(request("a", 0), 0.6, "f1"))
    assert [e.score for e in store.history(max_failures=3).evaluations] == [0.5]


def test_nothing_is_reserved_twice_and_a_failed_transaction_leaves_nothing(store: RunStore) -> None:
    store.reserve([request("a", 0)])
    with pytest.raises(sqlite3.IntegrityError):
        store.reserve([request("a", 1), request("a", 0)])
    assert store.history(max_failures=3).pending == (request("a", 0),)


def test_a_failure_ends_a_request_or_leaves_it_pending(store: RunStore) -> None:
    store.reserve([request("a", 0), request("a", 1)])
    store.record(Failure(request("a", 0), "killed", "signal 9"), try_again=True)
    store.record(Failure(request("a", 1), "error", "nan loss", 2.0, "", "failures/a-1.1.log"))
    history = store.history(max_failures=3)
    assert history.pending == (request("a", 0),)
    assert [(f.request.name, f.kind, f.error, f.log_path) for f in history.failures] == [
        ("a-0", "killed", "signal 9", None),
        ("a-1", "error", "nan loss", "failures/a-1.1.log"),
    ]
    assert store.next_replicate("a") == 2


def test_released_requests_are_forgotten_and_finished_ones_are_not(store: RunStore) -> None:
    store.reserve([request("a", 0), request("a", 1)])
    store.record(Evaluation(request("a", 0), 0.5, "f1"))
    store.release([request("a", 0), request("a", 1)])
    history = store.history(max_failures=3)
    assert history.pending == ()
    assert [e.request.name for e in history.evaluations] == ["a-0"]
    assert store.next_replicate("a") == 1


def test_a_released_request_that_failed_before_keeps_its_failure(store: RunStore, directory: RunDirectory) -> None:
    store.reserve([request("a", 0), request("a", 1)])
    store.record(Failure(request("a", 0), "killed", "signal 9"), try_again=True)
    store.release([request("a", 0), request("a", 1)])
    store.close()
    reopened = RunStore(directory, create=False)
    history = reopened.history(max_failures=3)
    assert ([f.request for f in history.failures], history.pending) == ([request("a", 0)], ())
    assert [row["split_seed"] for row in reopened.rows()] == [request("a", 0).split_seed]
    assert reopened.next_replicate("a") == 1
    reopened.close()


def test_rows_have_every_outcome_in_order_of_finishing(store: RunStore) -> None:
    store.reserve([request("a", 0), request("b", 0)])
    store.record(Failure(request("a", 0), "killed", "signal 9"), try_again=True)
    store.record(Evaluation(request("b", 0), 0.5, "f1", metrics={"loss": 1.5}))
    store.record(Evaluation(request("a", 0), 0.6, "f1"))
    rows = store.rows()
    assert [(row["candidate"], row["status"]) for row in rows] == [
        ("a", "failed"),
        ("b", "finished"),
        ("a", "finished"),
    ]
    assert rows[0]["split_seed"] == rows[1]["split_seed"] == request("a", 0).split_seed
    assert rows[1]["metrics"] == '{"loss": 1.5}'


def test_all_metrics_are_in_the_history(store: RunStore, directory: RunDirectory) -> None:
    store.reserve([request("a", 0), request("b", 0)])
    for name, number in (("a", 4), ("b", 7)):
        metrics = {"loss": 1.5, "count:tp": number, "count:fp": 0}
        store.record(Evaluation(request(name, 0), 0.5, "f1", metrics=metrics))
    in_memory = store.history(max_failures=3)
    store.close()
    reopened = RunStore(directory, create=False)
    read = reopened.history(max_failures=3)
    reopened.close()
    for history in (in_memory, read):
        assert [e.metrics for e in history.evaluations] == [
            {"loss": 1.5, "count:tp": 4, "count:fp": 0},
            {"loss": 1.5, "count:tp": 7, "count:fp": 0},
        ]
        assert history.counts("b").kinds == ("fp", "tp")
        assert history.counts("b").values.tolist() == [[0, 7]]


def test_a_candidate_with_enough_failures_is_withdrawn_until_more_are_allowed(store: RunStore) -> None:
    store.reserve([request("a", k) for k in range(4)])
    for k in range(3):
        store.record(Failure(request("a", k), "error", "nan loss"))
    store.record(Evaluation(request("a", 3), 0.5, "f1"))
    history = store.history(max_failures=3)
    assert history.withdrawn == {"a"}
    assert history.active == ("b",)
    assert history.num_finished("a") == 1
    assert store.history(max_failures=4).withdrawn == frozenset()


def test_facts_of_a_known_candidate_are_written_anew(store: RunStore) -> None:
    store.put_candidates([Candidate("b", "b.jsonnet", {}, {"new": 1})])
    assert [(c.name, c.facts) for c in store.candidates()] == [("b", {"new": 1}), ("a", {})]


def test_a_full_disk_is_told_as_such_and_loses_nothing(store: RunStore) -> None:
    store.reserve([request("a", 0)])
    store._database.execute("PRAGMA max_page_count = 1")
    with pytest.raises(StoreError, match="full.*Nothing recorded so far is lost"):
        store.reserve([request("a", k) for k in range(1, 2000)])
    store._database.execute("PRAGMA max_page_count = 100000")
    assert store.history(max_failures=3).pending == (request("a", 0),)


def test_everything_is_there_after_closing_and_opening(store: RunStore, directory: RunDirectory) -> None:
    store.set_meta(kind="trainings", seed=str(2**127), settings={"metric": "f1"})
    store.reserve([request("a", 0), request("b", 0)])
    store.record(Evaluation(request("a", 0), 0.1 + 0.2, "f1"))
    before = store.history(max_failures=3)
    store.close()
    reopened = RunStore(directory, create=False)
    assert reopened.history(max_failures=3) == before
    assert reopened.meta().seed == str(2**127)
    assert reopened.meta().settings == {"metric": "f1"}
    assert reopened.meta().run is None
    reopened.close()


def test_a_second_process_is_kept_out(store: RunStore, directory: RunDirectory) -> None:
    with pytest.raises(StoreError, match="another selection is running in this directory"):
        RunStore(directory, create=False)


def test_a_file_in_place_of_the_directory_is_told(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    with pytest.raises(StoreError, match="taken: cannot be written to: it is a file. Give another directory with -s"):
        RunStore(RunDirectory(tmp_path / "taken"), create=True)


def test_the_lock_of_a_process_that_was_killed_is_not_heeded(store: RunStore, directory: RunDirectory) -> None:
    """A kill leaves the file of the lock, which is held by nobody."""
    store.close()
    directory.lock.touch()
    RunStore(directory, create=False).close()


def test_nothing_to_recover_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no selection to recover"):
        RunStore(RunDirectory(tmp_path / "nowhere"), create=False)
    assert not (tmp_path / "nowhere").exists()


def test_a_store_that_is_there_is_not_made_anew(store: RunStore, directory: RunDirectory) -> None:
    store.close()
    with pytest.raises(StoreError, match="there is a selection already"):
        RunStore(directory, create=True)


@pytest.mark.parametrize("content", [b"", b"this is no database, however long it is " * 100])
def test_a_file_that_is_no_store_is_an_error(directory: RunDirectory, content: bytes) -> None:
    directory.root.mkdir()
    directory.store.write_bytes(content)
    with pytest.raises(StoreError, match=r"store.sqlite: cannot be read as a store"):
        RunStore(directory, create=False)


def test_a_damaged_store_is_an_error(store: RunStore, directory: RunDirectory) -> None:
    for replicate in range(200):
        store.reserve([request("a", replicate)])
    store.close()
    content = bytearray(directory.store.read_bytes())
    content[4096 * 2 : 4096 * 5] = b"\xff" * (4096 * 3)
    directory.store.write_bytes(bytes(content))
    with pytest.raises(StoreError, match="damaged|cannot be read"):
        RunStore(directory, create=False)


@pytest.mark.parametrize(
    ("version", "remedy"),
    [(99, "Install the newer fiesta_allennlp that made it"), (0, "Use the fiesta_allennlp that made it")],
)
def test_a_store_of_another_version_is_an_error(
    store: RunStore, directory: RunDirectory, version: int, remedy: str
) -> None:
    store.set_meta(schema_version=version)
    store.close()
    with pytest.raises(StoreError, match=f"has version {version} but this fiesta_allennlp reads version 1. {remedy}"):
        RunStore(directory, create=False)
    with pytest.raises(StoreError, match=f"has version {version}"):  # the refusal left no lock behind
        RunStore(directory, create=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("DROP TABLE failures", "the table failures is missing"),
        ("ALTER TABLE evaluations RENAME COLUMN score TO points", "columns score of evaluations are missing"),
        ("DELETE FROM candidates WHERE name = 'a'", "it has evaluations belonging to no candidate"),
        ("DELETE FROM meta", "has version None"),
        ("DROP TABLE meta", "cannot be read as a store: no such table: meta"),
    ],
)
def test_a_store_with_a_part_missing_is_an_error(
    store: RunStore, directory: RunDirectory, change: str, message: str
) -> None:
    store.reserve([request("a", 0)])
    store.close()
    with closing(sqlite3.connect(directory.store)) as database:
        database.execute(change)
        database.commit()
    with pytest.raises(StoreError, match=f"store.sqlite: .*{message}"):
        RunStore(directory, create=False)


@pytest.mark.parametrize("part", [0.05, 0.3, 0.6, 0.9, 0.99])
def test_a_truncated_store_is_an_error(store: RunStore, directory: RunDirectory, part: float) -> None:
    store.reserve([request("a", replicate) for replicate in range(400)])
    store.close()
    content = directory.store.read_bytes()
    directory.store.write_bytes(content[: int(len(content) * part)])
    with pytest.raises(StoreError, match=r"store.sqlite: (cannot be read as a store|the store is damaged).*from a"):
        RunStore(directory, create=False)


@settings(max_examples=60, deadline=None)
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
                    store.release(wanted)
                elif what == "remove":
                    store.put_candidates([], removed=[wanted[0].candidate])
                elif wanted[0] in store.history(max_failures=2).pending:
                    store.record(Failure(wanted[0], "killed", "signal 9"), try_again=what == "again")
            kept, store._history = store.history(max_failures=2), None
            assert store.history(max_failures=2) == kept
        store.close()


def test_a_change_that_is_interrupted_leaves_file_and_memory_alike(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C between the file and the memory: the file counts."""

    def interrupted(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    store.reserve([request("a", 0)])
    with monkeypatch.context() as patched:
        patched.setattr(History, "after", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.record(Evaluation(request("a", 0), 0.5, "f1"))
    assert store.history(max_failures=3).pending == (request("a", 0),)
    store.record(Evaluation(request("a", 0), 0.5, "f1"))
    assert [e.score for e in store.history(max_failures=3).evaluations] == [0.5]


def test_a_removed_candidate_is_withdrawn_and_keeps_its_evaluations(store: RunStore, directory: RunDirectory) -> None:
    store.reserve([request("a", 0)])
    store.record(Evaluation(request("a", 0), 0.5, "f1"))
    store.set_meta(removed=["a"])
    history = store.history(max_failures=3)
    assert (history.active, history.num_finished("a"), set(store.meta().removed)) == (("b",), 1, {"a"})
    store.set_meta(removed=[])
    assert store.history(max_failures=3).active == ("b", "a")


FULL = """
import resource, sys
from pathlib import Path
from fiesta_allennlp.errors import StoreError
from fiesta_allennlp.records import Evaluation
from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.selection.store import RunStore
from fiesta_allennlp.seeding import make_request

store = RunStore(RunDirectory(Path(sys.argv[1])), create=False)
size = 1_000_000
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
number = 0
try:
    for number in range(10_000):
        request = make_request(7, "a", number, shared_splits=True)
        store.reserve([request])
        store.record(Evaluation(request, 0.5, "f1"))
except StoreError as error:
    print(number, error)
"""


def test_a_file_that_may_not_grow_is_told_and_loses_nothing(store: RunStore, directory: RunDirectory) -> None:
    """The operating system refuses to write on: what the process recorded before is there."""
    store.close()
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(directory.root)], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    number, _, message = done.stdout.partition(" ")
    assert "store.sqlite: the store cannot be written to" in message
    assert "Nothing recorded so far is lost: free some disk space, then continue with --recover." in message
    reopened = RunStore(directory, create=False)
    finished = reopened.history(max_failures=3).evaluations
    reopened.close()
    assert len(finished) == int(number) > 10


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

    monkeypatch.setattr("fiesta_allennlp.selection.database.time", SimpleNamespace(monotonic=monotonic))
    store.reserve([request("a", 0)])
    assert next(seconds) > 60
    assert store.history(max_failures=3).pending == (request("a", 0),)


def test_a_lock_that_another_program_keeps_is_told_and_nothing_is_lost(
    store: RunStore, another: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fiesta_allennlp.selection.database.SECONDS_TO_WAIT", 0.0)
    with pytest.raises(StoreError, match="another program holds its lock .*end that program.*continue with --recover"):
        store.reserve([request("a", 0)])
    another.execute("COMMIT")
    assert store.history(max_failures=3).pending == ()
    store.reserve([request("a", 0)])


def test_a_lock_that_another_program_keeps_on_opening_is_no_damage(
    store: RunStore, directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fiesta_allennlp.selection.database.SECONDS_PER_TRY", 0.01)
    store.close()
    with closing(sqlite3.connect(directory.store, isolation_level=None)) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match="another program holds its lock"):
            RunStore(directory, create=False)
        connection.execute("COMMIT")


def test_an_interrupt_ends_the_waiting_for_another_program(
    store: RunStore, another: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, ctrl_c: Callable[[], None]
) -> None:
    seconds = itertools.count()
    stub = SimpleNamespace(monotonic=lambda: (next(seconds), ctrl_c())[0])
    monkeypatch.setattr("fiesta_allennlp.selection.database.time", stub)
    with pytest.raises(KeyboardInterrupt):
        store.reserve([request("a", 0)])
    another.execute("COMMIT")
    assert store.history(max_failures=3).pending == ()
