"""`--detach`, with a process that stands for the command in the background: it says and writes what that would."""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any, Callable, List, Tuple

import pytest

from fiesta_allennlp.commands import selecting
from fiesta_allennlp.core.directory import RunDirectory
from tests.commands.conftest import Call
from tests.conftest import until
from tests.executors.light import is_running

AT_WORK = """
import os, pathlib, sys, time
root = pathlib.Path(sys.argv[1])
print("Checking 2 candidates", flush=True)
(root / "store.lock").write_text(str(os.getpid()))
time.sleep(600)
"""

WRONG = "import sys; print('error: no such metric', file=sys.stderr); sys.exit(2)"

CHECKING = "import pathlib, os, sys, time; (pathlib.Path(sys.argv[1]) / str(os.getpid())).touch(); time.sleep(600)"


@pytest.fixture
def detach(call: Call, run: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Tuple[int, str]]:
    """Calls `fiesta-select --detach` while another program stands for the command."""

    def started(program: str, *options: str) -> Tuple[int, str]:
        monkeypatch.setattr(selecting, "_foreground_command", lambda: [sys.executable, "-S", "-c", program, str(run)])
        return call("a.jsonnet", "b.jsonnet", "-s", run, "--detach", *options)

    return started


def test_a_command_that_is_at_work_goes_on_by_itself(detach: Callable[..., Any], run: Path) -> None:
    status, output = detach(AT_WORK)
    said = output.splitlines()
    pid = int(said[-1].rpartition(" ")[2])
    assert (status, is_running(pid), os.getsid(pid)) == (0, True, pid)
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
    assert said[0] == "Checking 2 candidates"
    assert f"allennlp fiesta-status {run} --follow" in said[-2]
    assert RunDirectory(run).detached_log.read_text() == "Checking 2 candidates\n"


def test_a_command_that_is_wrong_says_so_and_leaves_nothing(detach: Callable[..., Any], run: Path) -> None:
    assert detach(WRONG) == (2, "error: no such metric\n")
    assert not run.exists()
    status, said = detach(WRONG, "--dry-run")
    assert status == 2 and "--dry-run" in said
    run.touch()
    status, said = detach(WRONG)
    assert status == 2 and f"{run} is a file" in said


def test_an_interrupt_during_the_checks_ends_the_command(
    detach: Callable[..., Any], run: Path, ctrl_c: Callable[[], None]
) -> None:
    started: List[int] = []

    def interrupt() -> None:
        until(lambda: any(path.name.isdigit() for path in run.glob("*")))
        started.extend(int(path.name) for path in run.glob("*") if path.name.isdigit())
        ctrl_c()

    threading.Thread(target=interrupt).start()
    status, said = detach(CHECKING)
    assert status == 130 and "Interrupted" in said
    assert not is_running(started[0])


@pytest.mark.parametrize(
    ("script", "start"),
    [
        ("/bin/fiesta", ["/bin/fiesta"]),
        ("/lib/allennlp/__main__.py", ["-m", "allennlp"]),
        ("/lib/fiesta_allennlp/__main__.py", ["-m", "fiesta_allennlp"]),
    ],
)
def test_the_command_in_the_background_is_the_same(
    monkeypatch: pytest.MonkeyPatch, script: str, start: List[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [script, "select", "a.jsonnet", "--detach", "-s", "run"])
    assert selecting._foreground_command() == [sys.executable, *start, "select", "a.jsonnet", "-s", "run"]
