"""Reports decisions, failures and waiting runs to a command of the user, and prints a note about free GPU memory."""

import logging
import os
import re
import subprocess
from collections import Counter
from typing import Callable, Mapping, Optional, Sequence, Set

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.files import not_through_links
from fiesta_allennlp.records import Decision, Evaluation, Failure, History, Outcome, Request
from fiesta_allennlp.selection.environment import gpus
from fiesta_allennlp.selection.loop import Listener

logger = logging.getLogger(__name__)


class Notify:
    """Starts a shell command, with what happened in the environment variables `FIESTA_EVENT`, `FIESTA_MESSAGE` and
    `FIESTA_DIRECTORY`, and does not wait for it. What it prints goes to `notify.log`."""

    def __init__(self, command: str, directory: RunDirectory) -> None:
        self._command = command
        self._directory = directory
        self._is_over = False
        self._num_waiting = 0

    def on_state(self, history: History, decision: Decision) -> None:
        if decision.stopped_by is not None and not self._is_over:
            self._is_over = True
            best = decision.best or "no candidate"
            self._tell("decision", f"{best} after {len(history.evaluations)} runs, stopped by {decision.stopped_by}")

    def on_outcome(self, outcome: Outcome) -> None:
        if isinstance(outcome, Failure):
            self._tell("failure", f"{outcome.request.name} failed ({outcome.kind}): {outcome.error}")

    def on_waiting(self, requests: Sequence[Request]) -> None:
        if requests and not self._num_waiting:
            names = ", ".join(request.name for request in requests)
            self._tell("waiting", f"{names}: a file or memory is unavailable; retrying later")
        self._num_waiting = len(requests)

    def _tell(self, event: str, message: str) -> None:
        root = str(self._directory.root.resolve())
        told = {"FIESTA_EVENT": event, "FIESTA_MESSAGE": message, "FIESTA_DIRECTORY": root}
        try:
            with open(self._directory.notify_log, "ab", opener=not_through_links) as log:
                subprocess.Popen(
                    self._command,
                    shell=True,
                    env={**os.environ, **told},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            logger.warning("--notify: cannot start the command: %s", error)


PEAK_MEMORY = "trial:peak_memory_gib"
"""The metric that a trial adds: the peak memory of a process of the run, in GiB."""

PEAK = re.compile(r"peak_gpu_\d+_memory_MB")
"""The metric of AllenNLP's trainer for the peak memory of a run's tensors."""

OVERHEAD_MIB = 600.0
"""The GPU memory of a process before its first tensor: context, kernels and allocator."""

MIB = 1024.0


def smallest_gpu_mib() -> Optional[float]:
    """Return the memory of the smallest NVIDIA card in MiB; None without one."""
    try:
        return min(map(float, gpus("memory.total")), default=None)
    except ValueError:
        return None


def gpu_peak_mib(metrics: Mapping[str, float]) -> float:
    """Return the peak memory of a run's tensors on a GPU in MiB; 0 if the run reported none."""
    return max((float(value) for name, value in metrics.items() if PEAK.fullmatch(name)), default=0.0)


class GpuRoom(Listener):
    """Prints one note when every candidate has a finished run, if at least twice as many runs as now fit on each GPU.
    `devices` has one entry for each parallel run, and `memory` is of the smallest card, in MiB."""

    def __init__(self, say: Callable[[str], None], devices: Sequence[str], *, memory: float) -> None:
        self._say = say
        self._runs_now = max(Counter(devices).values())
        self._memory = memory
        self._finished: Set[str] = set()
        self._peak = 0.0
        self._is_said = False

    def on_state(self, history: History, decision: Decision) -> None:
        if self._is_said or not self._peak or not self._finished.issuperset(history.active):
            return
        self._is_said = True
        room = int(self._memory // (self._peak + OVERHEAD_MIB))
        if room >= 2 * self._runs_now:
            self._say(
                f"Note: a run uses at most {(self._peak + OVERHEAD_MIB) / MIB:.1f} of the {self._memory / MIB:.0f} GiB "
                f"of its GPU, so about {room} would fit. For more runs on each GPU, press Ctrl-C, then use --recover "
                "with --runs-per-gpu and more --workers. Every run also needs a CPU core."
            )

    def on_outcome(self, outcome: Outcome) -> None:
        if isinstance(outcome, Evaluation):
            self._peak = max(self._peak, gpu_peak_mib(outcome.metrics))
            self._finished.add(outcome.request.candidate)
