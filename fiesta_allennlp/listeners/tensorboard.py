"""The scalars of a running selection, for TensorBoard, by the writer library that AllenNLP uses.

Its `SummaryWriter` hands everything to a thread: a kill loses what the thread has not written, and where the disk is
full the thread dies and the selection would wait for it. So this uses the library's plain `EventsWriter`.
"""

import logging
import re
import time
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Dict, Iterator, Sequence

from fiesta_allennlp.records import Decision, Evaluation, History, Outcome
from fiesta_allennlp.selection.loop import Listener

logger = logging.getLogger(__name__)

UNSAFE = re.compile(r"[^\w.-]", re.ASCII)


class Scalars(Listener):
    """Writes ``P_best/<candidate>``, ``trainings/<candidate>``, ``failures/<candidate>`` and ``<metric>/<candidate>``
    by the number of finished evaluations. If a step cannot be written, `selection.log` records it and the selection
    continues."""

    def __init__(self, writer: Any, metric: str) -> None:
        self._writer = writer
        self._metric = UNSAFE.sub("_", metric)
        self._scored: Dict[str, float] = {}
        self._told = (-1, -1)

    def on_state(self, history: History, decision: Decision) -> None:
        now = (len(history.evaluations), len(history.failures))
        if now == self._told or self._writer is None:
            return
        self._told = now
        try:
            self._write(self._values(history, decision), len(history.evaluations))
        except OSError as error:
            logger.warning("stopped writing scalars for TensorBoard: %s", error)
            self._writer = None
        self._scored.clear()

    def on_outcome(self, outcome: Outcome) -> None:
        """Keep a score until the next state, which has its step."""
        if isinstance(outcome, Evaluation):
            self._scored[outcome.request.candidate] = outcome.score

    def _values(self, history: History, decision: Decision) -> Dict[str, float]:
        values: Dict[str, float] = {}
        for name, tag in tag_names(history.candidates).items():
            failures = [failure for failure in history.failures if failure.request.candidate == name]
            values[f"trainings/{tag}"] = history.num_finished(name)
            values[f"failures/{tag}"] = len(failures)
            if name in decision.prob_best:
                values[f"P_best/{tag}"] = decision.prob_best[name]
            if name in self._scored:
                values[f"{self._metric}/{tag}"] = self._scored[name]
        return values

    def _write(self, values: Dict[str, float], step: int) -> None:
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.summary import scalar

        for tag, value in values.items():
            self._writer.write_event(Event(summary=scalar(tag, value), step=step, wall_time=time.time()))
        self._writer.flush()


def tag_names(candidates: Sequence[str]) -> Dict[str, str]:
    """Return the candidates as TensorBoard tags. Equal tags get numbers, in the order of the candidates."""
    tags: Dict[str, str] = {}
    for name in candidates:
        safe = UNSAFE.sub("_", name)
        numbered = (safe if number == 1 else f"{safe}_{number}" for number in count(1))
        tags[name] = next(tag for tag in numbered if tag not in tags.values())
    return tags


@contextmanager
def tensorboard(directory: Path, metric: str) -> Iterator[Scalars]:
    """Yield scalars that are written into this directory, in a file of this session."""
    from tensorboardX.event_file_writer import EventsWriter

    directory.mkdir(parents=True, exist_ok=True)
    writer = EventsWriter(str(directory / "events"), f".{time.time_ns()}")
    try:
        yield Scalars(writer, metric)
    finally:
        with suppress(OSError):
            writer.close()
