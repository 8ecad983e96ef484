import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Callable, List

import pytest

from fiesta_allennlp.replays.replay import LARGEST_CHUNK, Repetition, Replayer
from tests.commands.conftest import Call
from tests.conftest import REPOSITORY

QUICK = ["--processes", "1", "--repetitions", "4", "--seed", "5"]


@pytest.fixture
def call(in_process: Callable[[str], Call]) -> Call:
    return in_process("replay")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "scores.json"
    path.write_text('{"low": [0.1, 0.2, 0.1, 0.2], "high": [0.8, 0.9, 0.8, 0.9], "mid": [0.5, 0.6, 0.5, 0.6]}')
    return path


def test_a_replay_tells_what_it_took_and_leaves_its_files(table: Path, tmp_path: Path, call: Call) -> None:
    output, figure = tmp_path / "out.json", tmp_path / "figure.png"
    options = ["--budget", 6, "--batch-size", 2, "--evaluations-per-split", 2, "--candidates", "high, low"]
    text = call.done(table, *QUICK, *options, "--output", output, "--figure", figure)
    assert "4 repetitions of sequential_halving with" in text
    assert "Runs: mean 6.0, median 6, 5-95% 6 to 6, 6 to 6 in all; 3.0 rounds of at most 2." in text
    assert "Correct: 100.0%" in text
    assert "Warning: this takes 2 splits of each candidate as the truth" in text
    assert "larger. allennlp fiesta-plan includes the uncertainty of a small pilot." in text
    summary = json.loads(output.read_text())
    assert (summary["repetitions"], summary["best"], summary["correct"], summary["seed"]) == (4, "high", 1.0, "5")
    assert (summary["evaluations_per_split"], summary["batch_size"], summary["splits"]) == (2, 2, "shared")
    assert summary["strategy"]["budget"] == 6
    assert [candidate["name"] for candidate in summary["candidates"]] == ["high", "low"]
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_every_option_reaches_the_replay(table: Path, call: Call, tmp_path: Path) -> None:
    options = ["--strategy", "bts", "--belief", "logit_student_t", "--confidence", 0.7, "--max-evaluations", 100]
    output = tmp_path / "out.json"
    text = call.done("tdsa-12", *QUICK, *options, "--splits", "independent", "--output", output)
    assert "Warning" not in text
    summary = json.loads(output.read_text())
    strategy = {"type": "bts", "confidence": 0.7, "max_evaluations": 100, "belief": {"type": "logit_student_t"}}
    assert summary["strategy"] == strategy
    assert (summary["splits"], len(summary["candidates"])) == ("independent", 12)
    call.done("tie", *QUICK, "--margin", 0.5, "--belief", "student_t", "--output", output)
    summary = json.loads(output.read_text())
    assert (summary["strategy"]["margin"], summary["correct"]) == (0.5, 1.0)
    text = call.done(table, *QUICK, "--with-replacement", "--max-evaluations", 30)
    assert "The scores were drawn with replacement." in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.json"], "nowhere.json: there is no such file"),
        (["tie", "--output", "result.txt"], "--output result.txt: the file's name must end with .json"),
        (["tie", "--output", "nowhere/r.json"], "--output nowhere/r.json: there is no directory nowhere"),
        (["tie", "--figure", "figure.gif"], "--figure figure.gif: the file's name must end with .png or .pdf"),
    ],
)
def test_what_is_wrong_is_said_in_one_message(call: Call, arguments: List[str], message: str) -> None:
    text = call.refused(*arguments)
    assert re.search(f"^error: .*{message}", text, re.MULTILINE), text


def test_an_interrupted_replay_prints_what_has_finished(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ctrl_c: Callable[[], None]
) -> None:
    def run_all(self: Replayer, repetitions: range) -> List[Repetition]:
        if LARGEST_CHUNK in repetitions:
            ctrl_c()
        return whole(self, repetitions)

    whole = Replayer.run_all
    monkeypatch.setattr(Replayer, "run_all", run_all)
    options = ["--budget", 48, "--processes", 1, "--repetitions", LARGEST_CHUNK + 1]
    status, text = call("tie", *options, "--output", tmp_path / "out.json")
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
