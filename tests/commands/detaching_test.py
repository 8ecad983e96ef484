"""`--detach`, with a process that stands for the command in the background: it says and writes what that would."""

import argparse
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any, Callable, List

import pytest

from fiesta_allennlp.commands import add_command, detaching
from fiesta_allennlp.directory import RunDirectory
from tests.conftest import until
from tests.executors.light import is_running

AT_WORK = """
import os, pathlib, sys, time
root = pathlib.Path(sys.argv[1])
print("Checking 2 candidates", flush=True)
(root / "log").write_text(f"INFO at work as process {os.getpid()} on here")
os.replace(root / "log", root / "selection.log")
time.sleep(600)
"""

WRONG = "import sys; print('error: no such metric', file=sys.stderr); sys.exit(2)"

CHECKING = "import pathlib, os, sys, time; (pathlib.Path(sys.argv[1]) / str(os.getpid())).touch(); time.sleep(600)"


@pytest.fixture
def detach(run: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., "int | str | None"]:
    """Calls `fiesta-select --detach` while another program stands for the command. Returns the exit status."""

    def call(program: str, *options: str) -> "int | str | None":
        commands = argparse.ArgumentParser().add_subparsers()
        parser = add_command(commands, "select", called="fiesta-select", program="allennlp")
        args = parser.parse_args(["a.jsonnet", "b.jsonnet", "-s", str(run), "--detach", *options])
        monkeypatch.setattr(detaching, "_command", lambda: [sys.executable, "-S", "-c", program, str(run)])
        with pytest.raises(SystemExit) as ended:
            args.func(args)
        return ended.value.code

    return call


def test_a_command_that_is_at_work_goes_on_by_itself(
    detach: Callable[..., Any], run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert detach(AT_WORK) == 0
    said = capsys.readouterr().out.splitlines()
    pid = int(said[-1].rpartition(" ")[2])
    assert (is_running(pid), os.getsid(pid)) == (True, pid)
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
    assert said[0] == "Checking 2 candidates"
    assert f"allennlp fiesta-status {run} --follow" in said[-2]
    assert RunDirectory(run).detached_log.read_text() == "Checking 2 candidates\n"


def test_a_command_that_is_wrong_says_so_and_leaves_nothing(
    detach: Callable[..., Any], run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert detach(WRONG) == 2
    assert capsys.readouterr().out == "error: no such metric\n"
    assert not run.exists()


def test_an_interrupt_during_the_checks_ends_the_command(
    detach: Callable[..., Any], run: Path, ctrl_c: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    started: List[int] = []

    def interrupt() -> None:
        until(lambda: any(path.name.isdigit() for path in run.glob("*")))
        started.extend(int(path.name) for path in run.glob("*") if path.name.isdigit())
        ctrl_c()

    threading.Thread(target=interrupt).start()
    assert detach(CHECKING) == 130
    assert not is_running(started[0])
    assert "Interrupted" in capsys.readouterr().out


def test_a_dry_run_is_not_detached(detach: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert detach(WRONG, "--dry-run") == 2
    assert "--dry-run" in capsys.readouterr().err


@pytest.mark.parametrize(("prefix", "module"), [("allennlp fiesta-", "allennlp"), ("fiesta ", "fiesta_allennlp")])
def test_the_command_in_the_background_is_the_same(monkeypatch: pytest.MonkeyPatch, prefix: str, module: str) -> None:
    monkeypatch.setattr(sys, "argv", ["somewhere", "fiesta-select", "a.jsonnet", "--detach", "-s", "run"])
    monkeypatch.setattr(detaching, "command", lambda name: prefix + name)
    assert detaching._command() == [sys.executable, "-m", module, "fiesta-select", "a.jsonnet", "-s", "run"]
