"""What signals do to a command wherever they meet it."""

import signal
import sys

from tests.commands.conftest import started

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


def test_an_interrupt_in_a_destructor_is_not_lost() -> None:
    process = started([sys.executable, "-c", IN_A_DESTRUCTOR])
    # The libraries' warnings may come before it: AllenNLP's own warn of Python 3.10.
    assert process.stdout is not None and "destroying\n" in process.stdout
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=50)
    assert (process.returncode, output) == (130, "ended in order\n")
