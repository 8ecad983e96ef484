"""What signals do to a command."""

import errno
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fiesta_allennlp.commands.command import run_and_exit
from tests.conftest import REPOSITORY
from tests.warm import Command

WORK = """
import time
from fiesta_allennlp.commands.command import run_and_exit

def work(console):
    try:
        print("at work", flush=True)
        for _ in range(600):  # Python heeds a signal that comes right before a call when the call ends
            time.sleep(0.1)
    finally:
        print("ending", flush=True)
        time.sleep(SECONDS_TO_END)
    return 0

run_and_exit(work, debug=False, interrupt_text=lambda: "ended in order")
"""


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_ends_a_command_in_order(ending: signal.Signals) -> None:
    process = Command(["-c", f"SECONDS_TO_END = 0\n{WORK}"])
    assert "at work\n" in process.stdout
    process.send_signal(ending)
    output, _ = process.communicate(timeout=50)
    assert (process.returncode, output) == (130, "ending\nended in order\n")


def test_the_second_signal_ends_it_at_once() -> None:
    process = Command(["-c", f"SECONDS_TO_END = 600\n{WORK}"])
    for said in ("at work\n", "ending\n"):
        assert said in process.stdout
        process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=50)
    assert (process.returncode, output) == (130, "")


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS, errno.EMFILE])
def test_an_error_of_the_machine_is_one_line(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    def work(console: object) -> int:
        raise OSError(number, os.strerror(number), "runs/first")

    with pytest.raises(SystemExit) as stopped:
        run_and_exit(work, debug=False, interrupt_text=lambda: "")
    said = capsys.readouterr().err
    assert stopped.value.code == 2
    assert said.startswith(f"error: runs/first: {os.strerror(number)}. ") and said.count("\n") == 1


SLOW_IMPORT = """
import sys, time

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "fiesta_allennlp.commands":
            print("importing", flush=True)
            time.sleep(600)

sys.meta_path.insert(0, Slow())
"""


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_during_the_imports_ends_a_command_with_one_line(tmp_path: Path, ending: signal.Signals) -> None:
    (tmp_path / "sitecustomize.py").write_text(SLOW_IMPORT)
    process = subprocess.Popen(
        [sys.executable, "-c", "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
         "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"  # nohup may run the tests
         "import runpy; runpy.run_module('fiesta_allennlp', run_name='__main__')", "--version"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(REPOSITORY)])},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == "importing\n"
    process.send_signal(ending)
    output, _ = process.communicate(timeout=50)
    assert process.returncode == 130 and re.fullmatch("Interrupted before .*\n", output)
