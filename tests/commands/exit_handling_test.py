"""What signals do to a command."""

import signal

import pytest

from tests.warm import Command

WORK = """
import time
from fiesta_allennlp.commands.command import run_and_exit

def work(console):
    try:
        print("at work", flush=True)
        time.sleep(60)
    finally:
        print("ending", flush=True)
        time.sleep(SECONDS_TO_END)
    return 0

run_and_exit(work, debug=False, interrupted=lambda: "ended in order")
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
