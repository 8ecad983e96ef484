"""What a user's command is told, and that a bad one does no harm."""

import json
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.listeners.notify import Notify
from fiesta_allennlp.records import Decision, Evaluation, Failure, History
from fiesta_allennlp.seeding import make_request
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
    decided = told(directory, 3)[2]
    assert (decided["EVENT"], decided["MESSAGE"]) == ("decision", "a after 1 runs, stopped by confidence")


@pytest.mark.parametrize("gone", [False, True])
def test_a_command_that_fails_or_cannot_start_does_no_harm(tmp_path: Path, gone: bool) -> None:
    directory = RunDirectory(tmp_path / "gone" if gone else tmp_path)
    Notify("no-such-program-here", directory).on_outcome(Failure(REQUEST, "error", "x"))
    if not gone:
        until(lambda: "not found" in directory.notify_log.read_text())
