"""What a user and a user's command are told, and that a bad command does no harm."""

import json
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional

import pytest

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.listeners.notify import PEAK_MEMORY, GpuRoom, Notify, smallest_gpu_mib
from fiesta_allennlp.records import Decision, Evaluation, Failure, History
from fiesta_allennlp.reports.tables import trial_table
from fiesta_allennlp.seeding import make_request
from tests.conftest import until


def notes(devices: List[str], peaks: Dict[str, Optional[float]], *, memory: float) -> List[str]:
    """What is said when every candidate has reported such a peak, and one of them twice."""
    said: List[str] = []
    room = GpuRoom(said.append, devices, memory=memory)
    history = History(tuple(peaks))
    for name, peak in [*peaks.items(), *peaks.items()]:
        metrics: Dict[str, Any] = {} if peak is None else {"peak_gpu_0_memory_MB": peak}
        outcome = Evaluation(make_request(1, name, 0, shared_splits=True), 0.5, "f1", 1.0, metrics=metrics)
        room.on_outcome(outcome)
        room.on_state(history, Decision(best=None))
    return said


def test_the_note_counts_the_largest_run_and_what_a_process_takes() -> None:
    # (424 + 600) MiB = 1 GiB of 16 GiB: 16 runs fit.
    small, memory = {"a": 424.0, "b": 100.0}, 16 * 1024.0
    (said,) = notes(["0", "1"], small, memory=memory)
    assert "at most 1.0 of the 16 GiB" in said and "about 16 would fit" in said and "--runs-per-gpu" in said
    # Nothing is said without room for twice as many: where one fits, nine are there, or none trained on a GPU.
    assert notes(["0"], {"a": 8000.0, "b": 100.0}, memory=memory) == []
    assert notes(["0"] * 9, small, memory=memory) == notes(["0"], {"a": None, "b": None}, memory=memory) == []


@pytest.mark.parametrize(("printed", "smallest"), [(["81559", "16384"], 16384.0), ([], None), (["none"], None)])
def test_the_driver_reports_the_smallest_card(monkeypatch: pytest.MonkeyPatch, printed: Any, smallest: Any) -> None:
    monkeypatch.setattr("fiesta_allennlp.listeners.notify.gpus", lambda field: printed)
    assert smallest_gpu_mib() == smallest


REQUEST = make_request(0, "a", 1, shared_splits=True)
COMMAND = f"""{sys.executable} -c '
import json, os
names = "EVENT", "MESSAGE", "DIRECTORY"
print(json.dumps(dict((name, os.environ["FIESTA_" + name]) for name in names)))'"""


def told(directory: RunDirectory, number: int) -> List[Dict[str, Any]]:
    until(lambda: directory.notify_log.read_text().count("\n") == number)
    return [json.loads(line) for line in directory.notify_log.read_text().splitlines()]


def test_a_command_is_told_of_failures_waiting_and_the_decision(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    notify = Notify(COMMAND, directory)
    history = History(("a", "b"), evaluations=(Evaluation(REQUEST, 0.5, "m"),))
    notify.on_outcome(history.evaluations[0])
    notify.on_state(history, Decision(best="a"))
    notify.on_waiting([])
    notify.on_outcome(Failure(REQUEST, "error", "ValueError: no"))
    (failed,) = told(directory, 1)
    assert failed == {"EVENT": "failure", "MESSAGE": "a-1 failed (error): ValueError: no", "DIRECTORY": str(tmp_path)}
    for _ in range(2):  # the same pause is told once
        notify.on_waiting([REQUEST])
    assert told(directory, 2)[1]["EVENT"] == "waiting"
    for _ in range(2):
        notify.on_state(history, Decision(best="a", stopped_by="confidence"))
    assert told(directory, 3)[2]["EVENT"] == "decision"


@pytest.mark.parametrize("gone", [False, True])
def test_a_command_that_fails_or_cannot_start_does_no_harm(tmp_path: Path, gone: bool) -> None:
    directory = RunDirectory(tmp_path / "gone" if gone else tmp_path)
    Notify("no-such-program-here", directory).on_outcome(Failure(REQUEST, "error", "x"))
    if not gone:
        until(lambda: "not found" in directory.notify_log.read_text())


def test_the_table_of_a_trial_has_the_memory_of_a_gpu_where_a_run_used_one() -> None:
    def made(name: str, peaks: Dict[str, float]) -> Evaluation:
        request = make_request(1, name, 0, shared_splits=True)
        return Evaluation(request, 0.5, "f1", 1.0, metrics={PEAK_MEMORY: 1.25, **peaks})

    on_gpu, on_cpu = made("a", {"peak_gpu_0_memory_MB": 1536.0, "peak_gpu_1_memory_MB": 512.0}), made("b", {})
    failed = Failure(make_request(1, "c", 0, shared_splits=True), "error", "no such luck")
    *_, memory, gpu = trial_table([on_gpu, on_cpu, failed], "f1").columns
    assert (memory.header, gpu.header) == ("memory (GiB)", "GPU memory (GiB)")
    assert list(memory.cells)[:2] == ["1.25", "1.25"] and list(gpu.cells) == ["1.50", "-", "-"]
    assert len(trial_table([on_cpu, failed], "f1").columns) == 4
