"""The server of fresh processes on a node, without Ray."""

import os
import pickle
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Iterator, List

import psutil
import pytest

from fiesta_allennlp.isolation.ray_server import ServerLost, ask, connected
from fiesta_allennlp.isolation.worker import Work, WorkerSettings
from fiesta_allennlp.records import Evaluation, Failure
from tests.conftest import REPOSITORY, still_runs, until
from tests.executors.light import Light
from tests.executors.processes_test import is_running, request


@pytest.fixture
def root() -> Iterator[Path]:
    """A short path: that of a socket has at most 107 characters."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def servers(root: Path) -> List[psutil.Process]:
    """The servers that listen below a directory."""
    found = [process for process in psutil.process_iter() if f"serve('{root}/" in " ".join(_command(process))]
    return list(filter(still_runs, found))


def _command(process: psutil.Process) -> List[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def work(root: Path, what: str, replicate: int, time_limit: "float | None" = None) -> Work:
    directory = root / str(replicate)
    return Work(
        evaluator=pickle.dumps(Light(what)),
        places={},
        request=request(replicate),
        directory=directory,
        log=directory / "log",
        settings=WorkerSettings(device=""),
        time_limit=time_limit,
    )


def pid_of(root: Path, replicate: int) -> int:
    path = root / str(replicate) / "pid"
    until(lambda: path.exists() and path.read_text() != "", seconds=120)
    return int(path.read_text())


def test_one_server_for_all_and_what_ends_a_training(root: Path) -> None:
    """With one that has AllenNLP loaded, in `tests/executors/ray_test.py`."""
    outcomes: List[object] = []
    asked = [
        threading.Thread(target=lambda number=number: outcomes.append(ask(work(root, "score", number), root, "a")))
        for number in range(3)
    ]
    for thread in asked:
        thread.start()
    for thread in asked:
        thread.join()
    assert sorted(outcome.score for outcome in outcomes if isinstance(outcome, Evaluation)) == [0, 1, 2]
    (server,) = servers(root)

    died = ask(work(root, "die", 3), root, "a")
    assert isinstance(died, Failure) and (died.kind, "killed by signal 9" in died.error) == ("killed", True)
    late = ask(work(root, "hang", 4, time_limit=5), root, "a")
    assert isinstance(late, Failure) and late.kind == "timeout"
    until(lambda: not is_running(pid_of(root, 4)) and not is_running(int((root / "4" / "child").read_text())))

    (address,) = [path for path in root.glob("*") if path.is_socket()]
    connection = connected(address, WorkerSettings())  # a client that hangs up
    connection.send(work(root, "hang", 5))
    training = pid_of(root, 5)
    connection.close()
    until(lambda: not is_running(training))

    def kill() -> None:
        pid_of(root, 6)
        server.kill()

    threading.Thread(target=kill).start()
    with pytest.raises(ServerLost, match="ended under a-6"):
        ask(work(root, "hang", 6), root, "a")
    until(lambda: not is_running(pid_of(root, 6)))


def test_a_server_ends_when_nobody_asks(root: Path) -> None:
    address = root / "socket"
    code = f"from fiesta_allennlp.isolation.ray_server import serve; serve({str(address)!r}, 1, seconds_idle=3)"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, check=True)
    assert address.is_socket()
    connected(address, WorkerSettings()).close()
    until(lambda: not address.exists() and not servers(root))
