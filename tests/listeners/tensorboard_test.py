"""What TensorBoard reads back, and that nothing it does can stop a selection."""

import logging
import struct
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

from fiesta_allennlp.core.records import Decision, Evaluation, Failure, History, Request
from fiesta_allennlp.listeners.tensorboard import Scalars, tensorboard
from tests.strategies.histories import failing

LENGTH, CHECKSUM = 8, 4
"""In bytes. A record is its length, a checksum of that, the event, and a checksum of it."""


def scalars(directory: Path) -> Dict[str, List[Tuple[int, float]]]:
    """Steps and values by tag, in the order of writing."""
    event_type = pytest.importorskip("tensorboardX.proto.event_pb2").Event
    found: Dict[str, List[Tuple[int, float]]] = {}
    for path in sorted(directory.iterdir()):
        content = path.read_bytes()
        while content:
            (size,) = struct.unpack("<Q", content[:LENGTH])
            begin = LENGTH + CHECKSUM
            event = event_type.FromString(content[begin : begin + size])
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, value.simple_value))
            content = content[begin + size + CHECKSUM :]
    return found


def request(candidate: str, replicate: int) -> Request:
    return Request(candidate, replicate, 0, 0, 0, 0)


def advance(listener: Scalars, history: History, outcome: Any, **prob_best: float) -> History:
    """Tell the listener of an outcome and, twice as a selection does, of the state it leads to."""
    listener.on_outcome(outcome)
    history = failing(history, outcome) if isinstance(outcome, Failure) else history.after([outcome])
    for _ in range(2):
        listener.on_state(history, Decision(best=None, prob_best=prob_best))
    return history


def test_every_step_is_written_once(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    start = History(("a", "b"))
    with tensorboard(tmp_path, "f1") as listener:
        listener.on_state(start, Decision(best=None))
        one = advance(listener, start, Evaluation(request("a", 0), 0.25, "f1"))
        failed = advance(listener, one, Failure(request("b", 0), "error", "x"))
        two = advance(listener, failed, Evaluation(request("b", 1), 0.75, "f1"), a=0.125, b=0.875)
        assert scalars(tmp_path)["f1/b"] == [(2, 0.75)], "a step is on the disk as soon as it is made"
    with tensorboard(tmp_path, "f1") as listener:
        advance(listener, two, Evaluation(request("a", 1), 0.5, "f1"), a=0.25, b=0.75)
    assert scalars(tmp_path) == {
        "trainings/a": [(0, 0), (1, 1), (1, 1), (2, 1), (3, 2)],
        "trainings/b": [(0, 0), (1, 0), (1, 0), (2, 1), (3, 1)],
        "failures/a": [(0, 0), (1, 0), (1, 0), (2, 0), (3, 0)],
        "failures/b": [(0, 0), (1, 0), (1, 1), (2, 1), (3, 1)],
        "f1/a": [(1, 0.25), (3, 0.5)],
        "f1/b": [(2, 0.75)],
        "P_best/a": [(2, 0.125), (3, 0.25)],
        "P_best/b": [(2, 0.875), (3, 0.75)],
    }


def test_a_full_disk_stops_no_selection(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("tensorboardX")

    class Full:
        def write_event(self, event: Any) -> None:
            raise OSError(28, "No space left on device")

    with caplog.at_level(logging.WARNING):
        listener = Scalars(Full(), "f1")
        history = advance(listener, History(("a", "b")), Evaluation(request("a", 0), 0.25, "f1"))
        advance(listener, history, Evaluation(request("b", 0), 0.25, "f1"))
    (record,) = [record for record in caplog.records if record.name.startswith("fiesta_allennlp")]
    assert "No space left on device" in record.getMessage()
