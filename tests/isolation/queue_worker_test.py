"""The queue without jobs, and what a job knows of its memory. Jobs run in `tests/executors/slurm_test.py`."""

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import List, Optional
from unittest.mock import Mock

import numpy as np
import pytest

from fiesta_allennlp.core.errors import FiestaError, StoreError
from fiesta_allennlp.core.records import Evaluation, Failure
from fiesta_allennlp.isolation import queue_worker, run_queue
from fiesta_allennlp.isolation.machine import origin_here
from fiesta_allennlp.isolation.queue_worker import as_memory_failure, make_queued_runs, num_out_of_memory_kills
from fiesta_allennlp.isolation.run_queue import Claim, RunQueue, Terms
from fiesta_allennlp.isolation.worker import RunTask, WorkerSettings
from tests.executors.light import PACKAGES, request

TERMS = Terms("/shared/queue", "/shared", num_threads=3, packages=("mine",), time_limit=7.5, device="")


@pytest.fixture
def queue(tmp_path: Path) -> RunQueue:
    made = RunQueue(tmp_path / "fiesta-0")
    made.open(TERMS)
    return made


def put(queue: RunQueue, replicate: int) -> str:
    ticket = queue.new_ticket(request(replicate))
    directory = queue.attempt_directory(ticket)
    queue.put(ticket, RunTask({"type": "light", "what": "score"}, request(replicate), directory, WorkerSettings()))
    return ticket


def test_a_run_goes_from_waiting_to_taken_to_done(queue: RunQueue) -> None:
    ticket = put(queue, 3)
    assert (queue.waiting_tickets(), queue.taken_claims(), queue.done_claims()) == ([ticket], {}, {})
    claim = queue.take("7_2", 1, 0)
    assert claim == Claim(ticket, "7_2", 1, 0)
    assert (queue.waiting_tickets(), queue.taken_claims(), queue.is_wanted(claim), claim.run) == (
        [],
        {ticket: claim},
        True,
        "a-3",
    )
    evaluator, settings = {"type": "light", "what": "score"}, WorkerSettings(3, ("mine",), device="")
    task = RunTask(evaluator, request(3), queue.attempt_directory(ticket), settings, time_limit=7.5)
    assert queue.read_task(claim, TERMS) == task
    outcome = Evaluation(request(3), 0.1 + 0.2, "m", metrics={"n": np.float32(0.5)})
    queue.finish(claim, outcome)
    assert (queue.taken_claims(), queue.done_claims(), queue.is_wanted(claim)) == ({}, {ticket: claim}, False)
    assert queue.read_outcome(claim) == outcome
    queue.move_attempt(ticket, queue.root / "kept")
    queue.delete_outcome(claim)
    assert queue.done_claims() == {} and (queue.root / "kept").is_dir()
    assert put(queue, 3) != ticket


def test_a_run_is_left_to_other_machines_than_those_that_it_failed_on(queue: RunQueue) -> None:
    ticket = queue.new_ticket(request(3))
    task = RunTask({"type": "light", "what": "score"}, request(3), queue.attempt_directory(ticket), WorkerSettings())
    queue.put(ticket, task, failed_on=["node1 (GPU 0)"])
    assert queue.take("7", 0, 0, machine="node1 (GPU 0)") is None
    other = put(queue, 4)
    claim = queue.take("7", 0, 0, machine="node1 (GPU 0)")
    assert claim is not None and claim.ticket == other
    claim = queue.take("8", 0, 0, machine="node1")
    assert claim is not None and claim.ticket == ticket


def test_a_run_that_no_other_machine_takes_is_taken_in_the_end(
    queue: RunQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = RunTask({"type": "light", "what": "score"}, request(3), queue.root, WorkerSettings())
    queue.put(queue.new_ticket(request(3)), task, failed_on=[str(origin_here(TERMS.packages, device="").machine)])
    for seconds, num_runs in ((60.0, 0), (0.0, 1)):
        monkeypatch.setattr(queue_worker, "RELUCTANCE_SECONDS", seconds)
        assert make_queued_runs(queue, replace(TERMS, packages=PACKAGES), "7", seconds_idle=0.1) == num_runs


def test_a_job_that_is_dismissed_ends_with_the_reason(queue: RunQueue) -> None:
    put(queue, 3)
    queue.dismiss("7", "node1 takes no more runs")
    with pytest.raises(FiestaError, match="node1 takes no more runs"):
        make_queued_runs(queue, TERMS, "7", seconds_idle=60)
    assert len(queue.waiting_tickets()) == 1
    queue.close()
    queue.dismiss("8", "the queue is gone")


def test_a_failure_comes_back_as_it_was(queue: RunQueue) -> None:
    put(queue, 3)
    claim = queue.take("7", 0, 0)
    assert claim is not None
    failure = Failure(request(3), "error", "ValueError: \u202e", seconds=1.5, started_at="2026-01-01")
    queue.finish(claim, failure)
    assert queue.read_outcome(claim) == failure


def test_what_another_user_may_have_written_is_not_read(queue: RunQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    put(queue, 3)
    claim = queue.take("7", 0, 0)
    assert claim is not None and queue.root.stat().st_mode & 0o077 == 0
    for path in (queue.directory, queue.root, queue.root / "taken", queue.root / "taken" / claim.file_name):
        mode = path.stat().st_mode
        path.chmod(mode | 0o020)
        with pytest.raises(StoreError, match=f"other users can write to {path}, .*: chmod go-w {path}"):
            queue.read_task(claim, TERMS)
        path.chmod(mode)
    (queue.root / "taken").rename(queue.directory / "taken")
    (queue.root / "taken").symlink_to(queue.directory / "taken")
    with pytest.raises(StoreError, match="taken is a link"):
        queue.read_task(claim, TERMS)
    monkeypatch.setattr(os, "getuid", lambda: os.stat(queue.root).st_uid + 1)
    for read in (lambda: queue.read_task(claim, TERMS), lambda: queue.read_outcome(claim), lambda: queue.terms):
        with pytest.raises(StoreError, match="belongs to user ID"):
            read()


def test_a_queue_is_open_only_once_its_terms_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = RunQueue(tmp_path / "fiesta-0")
    with monkeypatch.context() as patched:
        patched.setattr(run_queue, "write_json_file", Mock(side_effect=OSError("no room")))
        with pytest.raises(OSError, match="no room"):
            queue.open(TERMS)
    assert not queue.is_open
    queue.open(TERMS)
    assert (queue.is_open, queue.terms) == (True, TERMS)


def test_a_file_that_is_not_of_the_queue_is_no_run(queue: RunQueue) -> None:
    ticket = put(queue, 0)
    for state in ("waiting", "taken", "done", "workers"):
        for name in (".nfs000000000012", ".DS_Store", "notes.txt", "x@y", "..x@1.0.0", "a-0.12345678@"):
            (queue.root / state / name).touch()
    assert (queue.waiting_tickets(), queue.taken_claims(), queue.done_claims(), queue.seconds_since_heartbeat()) == (
        [ticket],
        {},
        {},
        {},
    )
    claim = queue.take("1", 0, 0)
    assert claim is not None and (claim.ticket, queue.take("1", 0, 1)) == (ticket, None)


def test_every_run_is_taken_once_by_jobs_that_reach_for_them_at_once(queue: RunQueue) -> None:
    tickets = [put(queue, replicate) for replicate in range(40)]
    taken: List[Optional[Claim]] = []

    def work(job: int) -> None:
        number = 0
        while (claim := queue.take(str(job), 0, number)) is not None:
            taken.append(claim)
            number += 1

    jobs = [threading.Thread(target=work, args=(job,)) for job in range(8)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert sorted(claim.ticket for claim in taken if claim) == sorted(tickets)
    assert len(queue.taken_claims()) == 40


def test_what_waits_longest_is_taken_first_and_half_a_file_is_not(queue: RunQueue) -> None:
    tickets = [put(queue, replicate) for replicate in range(3)]
    for ticket, age in zip(tickets, (5, 3, 9), strict=True):
        os.utime(queue.root / "waiting" / ticket, (age, age))
    (queue.root / "waiting" / "a-9.1.part").write_text("half")
    claims = [queue.take("1", 0, number) for number in range(4)]
    assert [claim.ticket if claim else None for claim in claims] == [tickets[1], tickets[0], tickets[2], None]


def test_what_nobody_wants_any_more_is_neither_waiting_nor_with_a_job(queue: RunQueue) -> None:
    first, second = put(queue, 0), put(queue, 1)
    claim = queue.take("1", 0, 0)
    assert claim is not None
    for ticket in (first, second, "a-7.1"):
        queue.withdraw(ticket)
    assert (queue.is_wanted(claim), queue.waiting_tickets(), queue.is_open) == (False, [], True)
    queue.close()
    assert (queue.is_open, queue.take("1", 0, 0), queue.jobs_directory.is_dir()) == (False, None, True)


def test_kills_for_lack_of_memory_are_counted_in_both_versions_of_control_groups(tmp_path: Path) -> None:
    mine = tmp_path / "cgroup"
    assert num_out_of_memory_kills(tmp_path, mine) == 0
    for content, counter in (
        ("0::/slurm/job_7/step_batch", "slurm/job_7/step_batch/memory.events"),
        ("5:cpuset:/x\n4:memory:/slurm/uid_0/job_7", "memory/slurm/uid_0/job_7/memory.oom_control"),
    ):
        mine.write_text(content + "\n")
        assert num_out_of_memory_kills(tmp_path, mine) == 0
        (tmp_path / counter).parent.mkdir(parents=True)
        (tmp_path / counter).write_text("low 0\nmax 12\noom 3\noom_kill 2\n")
        assert num_out_of_memory_kills(tmp_path, mine) == 2


def test_only_a_process_that_was_killed_ran_out_of_memory() -> None:
    killed, raised = Failure(request(0), "killed", "killed by signal 9"), Failure(request(0), "error", "no such luck")
    told = as_memory_failure(killed, True)
    assert isinstance(told, Failure)
    assert (told.kind, told.error) == ("machine", "the job ran out of memory: killed by signal 9")
    assert as_memory_failure(killed, False) is killed
    assert as_memory_failure(raised, True) is raised
    assert isinstance(as_memory_failure(Evaluation(request(0), 1.0, "m"), True), Evaluation)
