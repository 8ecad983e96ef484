"""Says once how many more runs would fit on a GPU."""

import re
from collections import Counter
from typing import Callable, Optional, Sequence, Set

from fiesta_allennlp.records import Decision, Evaluation, History, Outcome
from fiesta_allennlp.selection.environment import gpus
from fiesta_allennlp.selection.loop import Listener

PEAK = re.compile(r"peak_gpu_\d+_memory_MB")
"""The metric of AllenNLP's trainer for the peak memory of a run's tensors."""

OVERHEAD_MIB = 600.0
"""The memory of a process on a card before its first tensor: context, kernels and the allocator's rest."""

MIB = 1024.0


def smallest_gpu_mib() -> Optional[float]:
    """Return the memory of the smallest NVIDIA card in MiB; None without one."""
    try:
        return min(map(float, gpus("memory.total")), default=None)
    except ValueError:
        return None


class GpuRoom(Listener):
    """A listener that prints one note when every candidate has a finished run, if at least twice as many runs as now
    would fit into the memory of each GPU.

    Args:
        say: prints a line.
        devices: the devices of the workers, one for each run that may be on it.
        memory: of the smallest card, in MiB.
    """

    def __init__(self, say: Callable[[str], None], devices: Sequence[str], *, memory: float) -> None:
        self._say = say
        self._runs_now = max(Counter(devices).values())
        self._memory = memory
        self._finished: Set[str] = set()
        self._peak = 0.0
        self._is_said = False

    def on_state(self, history: History, decision: Decision) -> None:
        if not self._is_said and self._peak and self._finished.issuperset(history.active):
            self._is_said = True
            self._note()

    def on_outcome(self, outcome: Outcome) -> None:
        if isinstance(outcome, Evaluation):
            peaks = [float(value) for name, value in outcome.metrics.items() if PEAK.fullmatch(name)]
            self._peak = max([self._peak, *peaks])
            self._finished.add(outcome.request.candidate)

    def _note(self) -> None:
        room = int(self._memory // (self._peak + OVERHEAD_MIB))
        if room < 2 * self._runs_now:
            return
        self._say(
            f"Note: a run takes at most {(self._peak + OVERHEAD_MIB) / MIB:.1f} of the {self._memory / MIB:.0f} GiB of "
            f"its GPU, so about {room} would fit at once. After Ctrl-C, --recover with --runs-per-gpu and more "
            "--workers puts more runs on each GPU. Every run also needs a CPU core."
        )
