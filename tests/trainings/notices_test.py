"""What a user and a user's command are told, and that a bad command does no harm."""

import json
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.records import Decision, Evaluation, Failure, History
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.reports.words import trial_table
from fiesta_allennlp.selection.progress import PEAK_MEMORY
from fiesta_allennlp.trainings.progress_setup import Notify
from tests.conftest import until

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
