"""The scalars of a running selection, for TensorBoard, by the writer library that AllenNLP uses.

Its `SummaryWriter` hands everything to a thread: a kill loses what the thread has not written, and where the disk is
full the thread dies and the selection would wait for it. So this uses the library's plain `EventsWriter`.
"""

import logging
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Dict, Iterator

from fiesta_allennlp.core.records import Decision, Evaluation, History, Outcome
from fiesta_allennlp.selection.loop import Listener

logger = logging.getLogger(__name__)


class Scalars(Listener):
    """Writes ``P_best/<candidate>``, ``trainings/<candidate>``, ``failures/<candidate>`` and ``<metric>/<candidate>``
    by the number of finished evaluations. If a step cannot be written, `selection.log` records it and the selection
    continues."""

    def __init__(self, writer: Any, metric: str) -> None:
        self._writer = writer
        self._metric = metric
        self._scored: Dict[str, float] = {}
        self._written_counts = (-1, -1)

    def on_state(self, history: History, decision: Decision) -> None:
        counts = (len(history.evaluations), len(history.failures))
        if counts == self._written_counts or self._writer is None:
            return
        self._written_counts = counts
        try:
            self._write(self._values(history, decision), step=counts[0])
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
        for name in history.candidates:
            values[f"trainings/{name}"] = history.num_finished(name)
            values[f"failures/{name}"] = sum(failure.request.candidate == name for failure in history.failures)
        values.update({f"P_best/{name}": probability for name, probability in decision.prob_best.items()})
        return {**values, **{f"{self._metric}/{name}": score for name, score in self._scored.items()}}

    def _write(self, values: Dict[str, float], step: int) -> None:
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.proto.summary_pb2 import Summary

        scalars = [Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        self._writer.write_event(Event(summary=Summary(value=scalars), step=step, wall_time=time.time()))
        self._writer.flush()


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
