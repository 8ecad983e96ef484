"""What signals do to a command wherever they meet it."""

import signal
import time

import pytest

from tests.warm import Command

IN_A_DESTRUCTOR = """
import time
from fiesta_allennlp.commands.running import run_and_exit

class Slow:
    def __del__(self):
        print("destroying", flush=True)
        time.sleep(60)

def work(console):
    Slow()
    time.sleep(60)
    return 0

run_and_exit(work, debug=False, interrupted=lambda: "ended in order")
"""


def destroying() -> Command:
    """A command that is in a destructor."""
    process = Command(["-c", IN_A_DESTRUCTOR])
    # The libraries' warnings may come before it: AllenNLP's own warn of Python 3.10.
    assert "destroying\n" in process.stdout
    return process


def test_an_interrupt_in_a_destructor_is_not_lost() -> None:
    process = destroying()
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=50)
    assert (process.returncode, output) == (130, "ended in order\n")


def test_interrupts_without_end_that_begin_in_a_destructor_leave_no_traceback() -> None:
    process = destroying()
    begin = time.monotonic()
    while process.poll() is None and time.monotonic() < begin + 50:
        process.send_signal(signal.SIGINT)
        time.sleep(0.0003)
    output, _ = process.communicate(timeout=50)
    assert (process.returncode, output) in [(130, ""), (130, "ended in order\n")]


IN_ANOTHERS_ERROR = """
import signal
import sys
import time
from fiesta_allennlp.commands.running import run_and_exit

class Closing:
    def __init__(self, interrupt):
        self.interrupt = interrupt

    def __del__(self):
        try:
            if self.interrupt:
                signal.raise_signal(signal.SIGINT)
        finally:
            raise ValueError("cannot be closed")

def print_error(unraisable):
    print("error:", unraisable.exc_value, flush=True)
    if INTERRUPTS_PRINTING:
        signal.raise_signal(signal.SIGINT)

def work(console):
    Closing(interrupt=not INTERRUPTS_PRINTING)
    time.sleep(60)
    return 0

def interrupted():
    global INTERRUPTS_PRINTING
    INTERRUPTS_PRINTING = False
    Closing(interrupt=False)  # its error is raised while the interrupt is handled, which is not lost
    time.sleep(0.1)
    return "ended in order"

sys.unraisablehook = print_error
run_and_exit(work, debug=False, interrupted=interrupted)
"""


@pytest.mark.parametrize("interrupts_printing", [False, True])
def test_an_interrupt_is_not_lost_in_an_error_of_a_destructor(interrupts_printing: bool) -> None:
    process = Command(["-c", f"INTERRUPTS_PRINTING = {interrupts_printing}\n{IN_ANOTHERS_ERROR}"])
    output, _ = process.communicate(timeout=50)
    said = [line for line in output.splitlines() if line in ("error: cannot be closed", "ended in order")]
    errors = ["error: cannot be closed"] * (2 if interrupts_printing else 1)
    assert (process.returncode, said) == (130, [*errors, "ended in order"])
