"""A confirmation on the executor of its selection, whose command is killed and recovered."""

import signal
import subprocess
import sys
from pathlib import Path

from fiesta_allennlp import confirm
from tests.conftest import until
from tests.run_files import num_finished


def check_confirmation_survives_its_command(run: Path) -> None:
    """Kill the command after two fresh runs, and recover it: no run is lost, made twice or failed."""
    command = [sys.executable, "-m", "fiesta_allennlp", "confirm", str(run), "--runs", "4"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    until(lambda: num_finished(run / "confirmation") >= 2 or process.poll() is not None)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    confirmation = confirm(run, recover=True)
    assert confirmation.is_over
    assert [(c.num_evaluations, c.failures) for c in confirmation.result.candidates] == [(4, 0), (4, 0)]
