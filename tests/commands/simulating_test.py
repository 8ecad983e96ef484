"""The commands that simulate selections: replays, plans, and the loop that asks what to run next."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, List

import pytest

from fiesta_allennlp.replays.replay import Repetition, Replayer
from fiesta_allennlp.replays.side_by_side import LARGEST_CHUNK
from tests.commands.conftest import Call
from tests.conftest import REPOSITORY

QUICK = ["--processes", "1", "--repetitions", "4", "--seed", "5"]


@pytest.fixture
def replay(in_process: Callable[[str], Call]) -> Call:
    return in_process("replay")


@pytest.fixture
def plan(in_process: Callable[[str], Call]) -> Call:
    return in_process("plan")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "scores.json"
    path.write_text('{"low": [0.1, 0.2, 0.1, 0.2], "high": [0.8, 0.9, 0.8, 0.9], "mid": [0.5, 0.6, 0.5, 0.6]}')
    return path


def test_a_replay_tells_what_it_took_and_leaves_its_files(table: Path, tmp_path: Path, replay: Call) -> None:
    output, figure = tmp_path / "out.json", tmp_path / "figure.png"
    options = ["--budget", 6, "--batch-size", 2, "--evaluations-per-split", 2, "--candidates", "high, low"]
    text = replay.done(table, *QUICK, *options, "--output", output, "--figure", figure)
    assert "4 repetitions of sequential_halving with" in text
    assert "Runs: mean 6.0, median 6, 5-95% 6 to 6, 6 to 6 in all; 3.0 rounds of at most 2." in text
    assert "Correct: 100.0%" in text
    assert "Warning: this treats 2 splits of each candidate as the truth" in text
    assert "larger. allennlp fiesta-plan accounts for the uncertainty of a small pilot." in text
    summary = json.loads(output.read_text())
    assert (summary["repetitions"], summary["best"], summary["correct"], summary["seed"]) == (4, "high", 1.0, "5")
    assert (summary["evaluations_per_split"], summary["batch_size"], summary["splits"]) == (2, 2, "shared")
    assert summary["strategy"]["budget"] == 6
    assert [candidate["name"] for candidate in summary["candidates"]] == ["high", "low"]
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_every_option_reaches_the_replay(table: Path, replay: Call, tmp_path: Path) -> None:
    options = ["--strategy", "bts", "--belief", "logit_student_t", "--confidence", 0.7, "--max-evaluations", 100]
    output = tmp_path / "out.json"
    text = replay.done("tdsa-12", *QUICK, *options, "--splits", "independent", "--output", output)
    assert "Warning" not in text
    summary = json.loads(output.read_text())
    strategy = {"type": "bts", "confidence": 0.7, "max_evaluations": 100, "belief": {"type": "logit_student_t"}}
    assert summary["strategy"] == strategy
    assert (summary["splits"], len(summary["candidates"])) == ("independent", 12)
    replay.done("tie", *QUICK, "--margin", 0.5, "--belief", "student_t", "--output", output)
    summary = json.loads(output.read_text())
    assert (summary["strategy"]["margin"], summary["correct"]) == (0.5, 1.0)
    text = replay.done(table, *QUICK, "--with-replacement", "--max-evaluations", 30)
    assert "The scores were drawn with replacement." in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.json"], "nowhere.json: no such file"),
        (["tie", "--output", "result.txt"], "--output result.txt: the file's name must end with .json"),
        (["tie", "--output", "nowhere/r.json"], "--output nowhere/r.json: there is no directory nowhere"),
        (["tie", "--figure", "figure.gif"], "--figure figure.gif: the file's name must end with .png or .pdf"),
    ],
)
def test_what_is_wrong_is_said_in_one_message(replay: Call, arguments: List[str], message: str) -> None:
    text = replay.refused(*arguments)
    assert re.search(f"^error: .*{message}", text, re.MULTILINE), text


def test_an_interrupted_replay_prints_what_has_finished(
    replay: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ctrl_c: Callable[[], None]
) -> None:
    def run_all(self: Replayer, repetitions: range) -> List[Repetition]:
        if LARGEST_CHUNK in repetitions:
            ctrl_c()
        return whole(self, repetitions)

    whole = Replayer.run_all
    monkeypatch.setattr(Replayer, "run_all", run_all)
    options = ["--budget", 48, "--processes", 1, "--repetitions", LARGEST_CHUNK + 1]
    status, text = replay("tie", *options, "--output", tmp_path / "out.json")
    assert status == 130, text
    assert f"{LARGEST_CHUNK} repetitions of sequential_halving" in text
    assert "Interrupted: these are the repetitions that finished." in text
    summary = json.loads((tmp_path / "out.json").read_text())
    assert (summary["repetitions"], summary["interrupted"]) == (LARGEST_CHUNK, True)


def test_a_fresh_allennlp_finds_the_command_by_the_plugins_file_alone(table: Path) -> None:
    words = [sys.executable, "-m", "allennlp", "fiesta-replay", str(table), *QUICK, "--budget", "6"]
    fresh = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True)
    assert fresh.returncode == 0, fresh.stderr
    assert "Correct: 100.0%" in fresh.stdout


def test_a_plan_by_numbers_tells_and_leaves_its_file(plan: Call, tmp_path: Path) -> None:
    output = tmp_path / "plan.json"
    numbers = ["--gap", 1, "--sd", 0.01, "--split-sd", 0.02, "--candidates", 2, "--seconds", 3600, "--confidence", 0.8]
    text = plan.done(*numbers, "--repetitions", 2, "--seed", 5, "--output", output)
    # 6 runs of the winner and of a rival are the fewest
    assert "Expect 12 runs" in text and "12 h 0 min with one worker" in text
    assert "2 simulated selections in which all other candidates lie 1 below the best one" in text
    content = json.loads(output.read_text())
    assert [content[kind]["mean_runs"] for kind in ("default", "equal", "halving")] == [12, 12, 12]
    assert (content["seed"], content["strategy"]["confidence"]) == ("5", 0.8)
    assert (content["sd"], content["scale"]) == (0.01, "score")
    assert [entry["margin"] for entry in content["margins"]] == [0.001, 0.002, 0.004]


def test_a_plan_that_cannot_be_made_is_refused(plan: Call) -> None:
    assert "error: --sd must be above 0 but got -1" in plan.refused("--gap", 0.1, "--sd", -1)
    text = plan.refused("--gap", 0.1, "--sd", 1, "--output", "plan.txt")
    assert "error: --output plan.txt: the file's name must end with" in text


def test_an_interrupted_plan_says_so(plan: Call, monkeypatch: pytest.MonkeyPatch, ctrl_c: Callable[[], None]) -> None:
    monkeypatch.setattr("fiesta_allennlp.replays.planning.NestedMargins.run_all", lambda *_: ctrl_c())
    assert plan("--gap", 1, "--sd", 1) == (130, "Interrupted; no repetition has finished.\n")


def test_the_command_answers_a_loop_until_it_has_ended(tmp_path: Path, in_process: Any) -> None:
    path = tmp_path / "s.csv"
    path.write_text("candidate,split,seed,score\n")
    call = in_process("next")
    for count in range(60):
        told = call.done(path, "--candidates", "a,b", "--workers", "2", "--format", "csv")
        if told.startswith("Stop"):  # on the standard error
            break
        with path.open("a") as table:
            for name, split, seed in csv.reader(told.splitlines()):
                table.write(
                    f"{name},{split},{seed},{0.5 + 0.1 * (name == 'b') + 0.001 * ((count * 7 + int(split)) % 5)}\n"
                )
    told = call.done(path)
    assert "b is the best (P(best)" in told and "Stop: it is decided" in told
    told = call.done(path, "--format", "json")
    assert '"stopped_by": "confidence"' in told and '"next": []' in told
