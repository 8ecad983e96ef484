"""What signals do to a command wherever they meet it."""

import signal
import time

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
