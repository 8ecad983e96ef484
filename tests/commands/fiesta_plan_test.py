import json
from pathlib import Path
from typing import Callable

import pytest

from tests.commands.conftest import Call


@pytest.fixture
def call(in_process: Callable[[str], Call]) -> Call:
    return in_process("plan")


def test_a_plan_by_numbers_tells_and_leaves_its_file(call: Call, tmp_path: Path) -> None:
    output = tmp_path / "plan.json"
    numbers = ["--gap", 1, "--sd", 0.01, "--split-sd", 0.02, "--candidates", 2, "--seconds", 3600, "--confidence", 0.8]
    text = call.done(*numbers, "--repetitions", 2, "--seed", 5, "--output", output)
    # 6 runs of the winner and of a rival are the fewest
    assert "Expect 12 runs" in text and "12 h 0 min with one worker" in text
    assert "2 simulated selections in which all other candidates lie 1 below the best one" in text
    content = json.loads(output.read_text())
    assert [content[kind]["mean_runs"] for kind in ("default", "equal", "halving")] == [12, 12, 12]
    assert (content["seed"], content["strategy"]["confidence"]) == ("5", 0.8)
    assert (content["sd"], content["scale"]) == (0.01, "score")
    assert [entry["margin"] for entry in content["margins"]] == [0.001, 0.002, 0.004]


def test_what_is_wrong_is_said_in_one_message(call: Call) -> None:
    assert "error: --sd must be above 0 but got -1" in call.refused("--gap", 0.1, "--sd", -1)
    text = call.refused("--gap", 0.1, "--sd", 1, "--output", "plan.txt")
    assert "error: --output plan.txt: the file's name must end with" in text


def test_an_interrupted_plan_says_so(call: Call, monkeypatch: pytest.MonkeyPatch, ctrl_c: Callable[[], None]) -> None:
    monkeypatch.setattr("fiesta_allennlp.replays.planning.NestedMargins.run_all", lambda *_: ctrl_c())
    assert call("--gap", 1, "--sd", 1) == (130, "Interrupted; no repetition has finished.\n")
