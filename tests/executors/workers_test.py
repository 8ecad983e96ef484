"""The executor of workers, with the test as the worker. `tests/commands/fiesta_worker_test.py` has real ones."""

import os
import time
from functools import partial
from pathlib import Path
from typing import Callable, List, Set

import pytest

from fiesta_allennlp.core.blame import MachineFacts
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, FiestaError
from fiesta_allennlp.core.origin import Machine, Origin
from fiesta_allennlp.core.records import Evaluation, Failure
from fiesta_allennlp.executors.shared_queue import end_earlier_queues
from fiesta_allennlp.executors.workers import WorkersExecutor
from fiesta_allennlp.isolation.run_queue import Claim, RunQueue
from tests.executors.conftest import Build, begun, given, only_failure, scores
from tests.executors.light import request

Make = Callable[..., WorkersExecutor]
LONG_AGO = (1, 1)
ONE, TWO = "here+1++a", "here+2+0+b"


@pytest.fixture
def make(build: Build) -> Make:
    return partial(build, WorkersExecutor, seconds_of_silence=60)


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fiesta_allennlp.executors.workers.HEARTBEAT_SECONDS", 0.0)


def taken(executor: WorkersExecutor, worker: str = ONE) -> Claim:
    """The run that a living worker has taken."""
    queue = executor.queue
    queue.write_heartbeat(worker)
    claim = queue.take(worker, 0, 0)
    assert claim is not None
    return claim


def finish(queue: RunQueue, claim: Claim, score: float = 0.5) -> bool:
    return queue.finish(claim, Evaluation(request(0), score, "m"))


def silence(executor: WorkersExecutor, worker: str) -> None:
    os.utime(executor.queue.root / "workers" / worker, LONG_AGO)


def waiting(executor: WorkersExecutor) -> List[str]:
    return [ticket.rpartition(".")[0] for ticket in executor.queue.waiting_tickets()]


def test_a_run_of_a_silent_worker_starts_again_and_its_outcome_counts_no_more(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = begun(make(workers=2), "score", "score")
    queue, lost, other = executor.queue, taken(executor), taken(executor, TWO)
    with monkeypatch.context() as patched:  # only the clock of the file system counts
        patched.setattr(time, "time", lambda: 1e12)
        assert list(executor.completed(timeout=0)) == []
    assert waiting(executor) == []
    silence(executor, ONE)
    assert list(executor.completed(timeout=0)) == []
    assert (waiting(executor), queue.is_wanted(lost), queue.is_wanted(other)) == ([lost.run], False, True)
    queue.write_heartbeat(ONE)  # it comes back
    assert not finish(queue, lost, 0.9)
    assert queue.done_claims() == {}
    again = taken(executor)
    assert again.run == lost.run and again.ticket != lost.ticket
    assert finish(queue, again, 0.25) and finish(queue, other)
    assert scores(executor.completed()) == [0.25, 0.5]


def test_a_worker_that_leaves_gives_its_run_back_at_once(make: Make) -> None:
    executor = begun(make(), "score")
    claim = taken(executor)
    executor.queue.remove_worker(ONE)
    assert list(executor.completed(timeout=0)) == []
    assert waiting(executor) == [claim.run]


def test_what_ends_while_it_is_given_up_counts(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = begun(make(), "score")
    claim, drop = taken(executor), RunQueue.withdraw
    silence(executor, ONE)

    def end_then_drop(queue: RunQueue, ticket: str) -> None:
        assert finish(queue, claim)
        drop(queue, ticket)

    monkeypatch.setattr(RunQueue, "withdraw", end_then_drop)
    assert scores(executor.completed(timeout=0)) == [0.5]


def test_a_run_that_is_lost_time_and_again_fails_in_the_end(make: Make) -> None:
    executor = begun(make(), "score")
    for _ in range(9):
        taken(executor)
        silence(executor, ONE)
        assert list(executor.completed(timeout=0)) == []
    taken(executor)
    silence(executor, ONE)
    failure = only_failure(executor)
    assert failure.kind == "killed" and f"lost 10 times: worker {ONE} gave no" in failure.error


def test_as_many_runs_as_living_workers(make: Make) -> None:
    executor = given(make(workers="auto"), *["score"] * 3)
    assert (executor.slots, len(waiting(executor))) == (1, 1)
    for worker in (ONE, TWO):
        executor.queue.write_heartbeat(worker)
    assert list(executor.completed(timeout=0)) == []
    assert (executor.slots, len(waiting(executor))) == (2, 2)
    silence(executor, TWO)
    assert list(executor.completed(timeout=0)) == []
    assert executor.slots == 1


def test_workers_on_a_broken_machine_are_dismissed_and_others_stay(make: Make) -> None:
    executor = begun(make(workers=2), "score", "score")
    bad, good = Origin("bad", is_only_machine=False), Origin("good", is_only_machine=False)
    for worker, origin in ((ONE, bad), (TWO, good)):
        claim = taken(executor, worker)
        executor.queue.finish(claim, Failure(request(0), "error", "no luck", origin=origin))
    list(executor.completed(timeout=0))
    executor.use_machines(MachineFacts(broken={bad.machine: "no such library"}))
    assert "The last error: no such library" in executor.queue.reason_of_dismissal(ONE)
    assert executor.queue.reason_of_dismissal(TWO) is None


def test_a_run_that_waits_for_another_machine_takes_no_slot(make: Make) -> None:
    executor = make(workers=2)
    executor.use_machines(MachineFacts(failed_on={("a", 0): frozenset([Machine("bad")])}))
    begun(executor, "score", "score", "score")
    executor.queue.write_heartbeat(ONE)
    assert list(executor.completed(timeout=0)) == [] and executor.slots == 3
    assert len(executor.queue.waiting_tickets()) == 3
    assert executor.queue.take(ONE, 0, 0, machine="good").run == "a-0"
    assert list(executor.completed(timeout=0)) == [] and executor.slots == 2


def test_an_interrupted_command_leaves_what_workers_have_and_the_next_takes_it_over(
    make: Make, directory: RunDirectory
) -> None:
    executor = begun(make(workers=3), *["score"] * 3)
    queue, first, second = executor.queue, taken(executor), taken(executor, TWO)
    executor.close()
    assert executor.last_words.startswith("Workers continue 2 run(s)")
    assert (queue.waiting_tickets(), len(queue.taken_claims())) == ([], 2)
    (queue.attempt_directory(first.ticket) / "outcome.json").write_text("3.0")
    assert finish(queue, first)
    resumed = make(workers=3)
    assert resumed.resume() == ""
    assert (directory.evaluation(first.run) / "outcome.json").exists()  # from where the selection takes it over
    begun(resumed, "score", first=int(second.run[-1]))
    assert (queue.taken_claims(), queue.waiting_tickets()) == ({second.ticket: second}, [])
    assert finish(queue, second)
    assert scores(resumed.completed()) == [0.5]
    resumed.close()
    assert not queue.is_open and not directory.queue.exists()


def test_a_run_that_ends_during_the_take_over_is_under_way_no_more(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = begun(make(), "score")
    claim, take_in = taken(executor), RunQueue.collect_finished
    executor.close()

    def end_then_take_in(queue: RunQueue, directory: RunDirectory) -> Set[str]:
        assert finish(queue, claim)
        return take_in(queue, directory)

    monkeypatch.setattr(RunQueue, "collect_finished", end_then_take_in)
    assert waiting(given(make(), "score")) == [claim.run]


def test_on_other_terms_the_old_queue_ends(make: Make, directory: RunDirectory) -> None:
    executor = begun(make(), "score")
    claim = taken(executor)
    other = make(time_limit=5)
    assert end_earlier_queues(directory, kept_queue=executor.queue_name) == "" and executor.queue.is_wanted(claim)
    assert end_earlier_queues(directory, kept_queue=other.queue_name) == ""
    begun(other, "score")
    assert not executor.queue.is_wanted(claim) and len(RunQueue.open_queues(directory.queue)) == 1


def test_what_lies_in_the_place_of_a_run_is_replaced(make: Make, directory: RunDirectory, tmp_path: Path) -> None:
    executor = begun(make(workers=2), "score", "score")
    (victim := tmp_path / "victim").mkdir()
    (victim / "mine").touch()
    (directory.root / "evaluations").mkdir()
    directory.evaluation("a-0").symlink_to(victim)
    directory.evaluation("a-1").touch()
    assert all(finish(executor.queue, taken(executor)) for _ in range(2))
    assert scores(executor.completed()) == [0.5, 0.5]
    assert all(directory.evaluation(f"a-{k}").is_dir() for k in range(2)) and (victim / "mine").exists()


def test_a_deleted_queue_ends_the_selection(make: Make) -> None:
    executor = begun(make(), "score")
    executor.queue.close()
    with pytest.raises(FiestaError, match="was moved or deleted"):
        list(executor.completed())


def test_no_time_is_no_silence(make: Make) -> None:
    with pytest.raises(ConfigError, match="seconds_of_silence must be above 0"):
        make(seconds_of_silence=0)
