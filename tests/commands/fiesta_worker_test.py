"""Workers as processes of their own: they are killed, paused and late, and their command is killed."""

import errno
import json
import os
import platform
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Set
from unittest.mock import Mock

import psutil
import pytest

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import FiestaError
from fiesta_allennlp.isolation import queue_worker
from fiesta_allennlp.isolation.run_queue import RunQueue, Terms, Worker
from fiesta_allennlp.trainings.fiesta_worker import QueueWorkerSettings, run_worker
from tests.commands.conftest import Call
from tests.conftest import still_runs, until
from tests.executors.light import start_selection, wanted_scores, write_programs
from tests.isolation.queue_worker_test import put
from tests.run_files import rows_of, scores_of, summary_of

IMPATIENT = json.dumps({"type": "workers", "seconds_of_silence": 2})

Process = subprocess.Popen
Start = Callable[..., "Process[str]"]


def write_waiting_programs(directory: Path) -> List[str]:
    """Two candidates whose runs note their start, and wait until there is a file `go`."""
    paths = [directory / f"{name}.json" for name in ("one", "two")]
    (directory / "started").touch()
    for path in paths:
        script = (
            f"echo {path.stem}-$1 >> {directory}/started; until [ -e {directory}/go ]; do sleep 0.05; done; "
            "echo accuracy 0.$(($1 % 1000))$(($2 % 1000))"
        )
        command = ["sh", "-c", script, "sh", "{seed}", "{split_seed}"]
        path.write_text(json.dumps({"type": "program", "command": command, "metrics": "stdout"}))
    return [str(path) for path in paths]


@pytest.fixture
def work(run: Path) -> Iterator[Start]:
    """Starts workers, and ends those that a test left."""
    started: List["Process[str]"] = []

    def start(*options: str) -> "Process[str]":
        words = [sys.executable, "-m", "fiesta_allennlp", "worker", str(run), *options]
        started.append(Process(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.communicate()


def queue_of(run: Path) -> RunQueue:
    until(lambda: bool(RunQueue.open_queues(RunDirectory(run).queue)))
    return RunQueue.open_queues(RunDirectory(run).queue)[0]


def workers_of(queue: RunQueue) -> Set[int]:
    """The processes of the workers that have a run."""
    return {int(claim.job.split("+")[1]) for claim in queue.taken_claims().values()}


def test_nothing_is_lost_or_counted_twice_whoever_is_killed(
    in_process: Callable[[str], Call], work: Start, run: Path, tmp_path: Path
) -> None:
    candidates = write_waiting_programs(tmp_path)
    command = start_selection(run, candidates, "--executor", IMPATIENT, "--workers", "3")
    queue = queue_of(run)
    killed, paused = work(), work()
    until(lambda: workers_of(queue) == {killed.pid, paused.pid})
    until(lambda: len((tmp_path / "started").read_text().split()) == 2)
    below = [child for worker in (killed, paused) for child in psutil.Process(worker.pid).children(recursive=True)]
    killed.kill()
    paused.send_signal(signal.SIGSTOP)
    until(lambda: queue.taken_claims() == {} and len(queue.waiting_tickets()) == 3)
    late = work()
    until(lambda: workers_of(queue) == {late.pid})
    paused.send_signal(signal.SIGCONT)
    until(lambda: workers_of(queue) == {late.pid, paused.pid})
    assert f"(process {late.pid}): " in in_process("status").done(run)
    command.kill()
    assert command.wait() == -signal.SIGKILL
    until(lambda: len((tmp_path / "started").read_text().split()) == 4)

    words = [sys.executable, "-m", "fiesta_allennlp", "select", "-s", str(run), "--recover"]
    command = Process(words, stdout=subprocess.DEVNULL)
    log = run / "selection.log"
    until(lambda: log.read_text().count("is already under way") == 2 and workers_of(queue) != set())
    (tmp_path / "go").touch()
    assert command.wait() == 0

    assert scores_of(run) == wanted_scores()
    assert {(row["host"], row["python"]) for row in rows_of(run)} == {(platform.node(), platform.python_version())}
    assert (summary_of(run)["num_evaluations"], summary_of(run)["num_failures"]) == (8, 0)
    started = (tmp_path / "started").read_text().split()
    assert len(started) == 10  # 8 runs, of which those of the killed and the paused worker began twice
    assert [worker.wait(timeout=60) for worker in (paused, late)] == [0, 0]
    assert "stopped because it is no longer needed" in paused.communicate()[0]
    until(lambda: not any(map(still_runs, below)))
    assert not (run / "queue").exists()


def test_a_worker_without_what_programs_need_leaves_and_costs_no_candidate(
    work: Start, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All runs fail on the bad host, at once. It is there first, and alone until it has left."""
    candidates = write_programs(tmp_path)
    for path in map(Path, candidates):
        config = json.loads(path.read_text())
        config["command"][2] = "[ -z $BROKEN ] || { echo no such library; exit 1; }; " + config["command"][2]
        path.write_text(json.dumps(config))
    command = start_selection(run, candidates, "--executor", "workers", "--workers", "3")
    queue_of(run)
    monkeypatch.setenv("BROKEN", "1")
    monkeypatch.setenv("SLURMD_NODENAME", "bad")
    bad = work()
    output = bad.communicate()[0]
    assert bad.returncode == 2 and "error: bad takes no more runs" in output and "no such library" in output
    monkeypatch.delenv("BROKEN")
    monkeypatch.setenv("SLURMD_NODENAME", "good")
    good = work()
    assert (command.wait(), good.wait()) == (0, 0)
    assert scores_of(run) == wanted_scores()
    hosts = [(row["status"], row["host"]) for row in rows_of(run)]
    assert set(hosts) == {("failed", "bad"), ("finished", "good")} and hosts.count(("failed", "bad")) >= 3
    assert {entry["state"] for entry in summary_of(run)["candidates"]} == {"taking part"}


def test_a_worker_that_is_interrupted_gives_its_run_back(work: Start, run: Path, tmp_path: Path) -> None:
    command = start_selection(run, write_waiting_programs(tmp_path), "--executor", "workers")
    queue, worker = queue_of(run), work()
    until(lambda: workers_of(queue) == {worker.pid})
    worker.send_signal(signal.SIGTERM)
    output = worker.communicate()[0]
    assert "given back; another worker starts it again\nInterrupted.\n" in output and worker.returncode == 130
    until(lambda: len(queue.waiting_tickets()) == 1)  # at once, although the time of silence is two minutes
    command.kill()
    command.wait()


def test_a_worker_ends_without_runs(run: Path, in_process: Callable[[str], Call]) -> None:
    write_queue(run)
    assert "0 run(s) made; this worker has ended" in in_process("worker").done(run, "--idle", 0.001)
    assert "0 run(s) made" in in_process("worker").done(run, "--max-hours", 1e-9)


def write_queue(run: Path, **terms: Any) -> RunQueue:
    """A queue as a selection would leave it."""
    queue = RunQueue(run / "queue" / "fiesta-0")
    usual = Terms(str(run / "queue"), os.getcwd(), num_threads=1, jobs={"seconds_between_signs": 1})
    queue.open(replace(usual, **terms))
    (run / "store.sqlite").touch()
    return queue


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ({"version": "0.0.1"}, "by fiesta_allennlp 0.0.1"),
        ({"format": 4}, "queue format 4.*queue format 6"),
        ({"place": "/elsewhere/queue"}, "/elsewhere/queue.*same path.*--recover"),
        ({"current_directory": "/no/such/directory"}, "/no/such/directory.*unavailable here"),
    ],
)
def test_a_worker_that_cannot_make_the_runs_says_why(
    in_process: Callable[[str], Call], run: Path, terms: Dict[str, Any], said: str
) -> None:
    write_queue(run, **terms)
    assert len(in_process("worker").refused(run, said=said).splitlines()) == 1


def test_a_worker_of_no_selection_or_of_another_user_is_refused(
    in_process: Callable[[str], Call], run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = in_process("worker")
    worker.refused(run, said="contains no selection")
    queue = write_queue(run)
    with monkeypatch.context() as patched:
        patched.setattr(os, "getuid", lambda: os.stat(run).st_uid + 1)
        worker.refused(run, said="belongs to user ID")
    worker.refused(run, "--cuda-device", 99, said="--cuda-device: no GPU '99'")
    worker.refused(run, "--idle", 0, said="--idle must be above 0")
    worker.refused(run / ("x" * 300), said="File name too long")
    queue.close()
    for stopped_by in (None, "interrupted"):
        (run / "selection.json").write_text(json.dumps({"stopped_by": stopped_by}))
        worker.refused(run, said="no selection in .* waits for workers")


@pytest.mark.parametrize("stopped_by", ["confidence", "max_evaluations", "failures"])
def test_a_worker_that_comes_after_the_end_has_nothing_to_do(
    in_process: Callable[[str], Call], run: Path, stopped_by: str
) -> None:
    write_queue(run).close()
    (run / "selection.json").write_text(json.dumps({"stopped_by": stopped_by}))
    assert in_process("worker").done(run) == f"The selection in {run} has ended and has no runs to make.\n"


def test_a_worker_of_a_selection_serves_its_confirmation(in_process: Callable[[str], Call], run: Path) -> None:
    write_queue(run).close()
    queue = write_queue(run / "confirmation")
    assert "0 run(s) made; this worker has ended" in in_process("worker").done(run, "--idle", 0.001)
    queue.close()


def test_a_worker_that_is_interrupted_without_a_run_says_so(work: Start, run: Path) -> None:
    queue, worker = write_queue(run), work()
    until(lambda: queue.seconds_since_heartbeat() != {})
    (beat,) = (queue.root / "workers").iterdir()
    first_time = beat.stat().st_mtime_ns
    until(lambda: beat.stat().st_mtime_ns > first_time)  # by then it waits for a run
    worker.send_signal(signal.SIGTERM)
    output = worker.communicate()[0]
    assert output.endswith("No run was under way.\nInterrupted.\n") and worker.returncode == 130


def test_a_worker_whose_directory_is_moved_does_not_take_that_for_the_end(
    in_process: Callable[[str], Call], run: Path, tmp_path: Path
) -> None:
    write_queue(run)
    moved = tmp_path / "moved"
    with pytest.raises(FiestaError, match=f"{run} was moved or deleted"):
        run_worker(QueueWorkerSettings(run), lambda text: os.rename(run, moved))
    in_process("worker").refused(moved, said="continue it first with --recover")


def test_a_worker_on_a_full_disk_gives_its_run_back_and_says_why(
    in_process: Callable[[str], Call], run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = write_queue(run)
    put(queue, 0)
    monkeypatch.setattr(queue_worker, "make_run", Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))
    in_process("worker").refused(run, said=f"{run}: .*No space left on device. Another worker takes its run")
    assert queue.taken_claims() == queue.done_claims() == queue.seconds_since_heartbeat() == {}


def test_a_trial_is_made_on_this_machine_alone(in_process: Callable[[str], Call], tmp_path: Path) -> None:
    typed = (*write_waiting_programs(tmp_path), "--metric", "accuracy", "--trial", "--executor", "workers")
    in_process("select").refused(*typed, said="--trial runs only on this machine. Remove --executor")


def test_two_workers_never_have_one_name() -> None:
    workers = [Worker.current("MIG-7.1/x") for _ in range(20)]
    names = {worker.name for worker in workers}
    assert len(names) == 20 and [Worker.from_name(worker.name) for worker in workers] == workers
    assert all((worker.pid, worker.device) == (str(os.getpid()), "MIG-7-1-x") for worker in workers)
