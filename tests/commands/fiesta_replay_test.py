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
from tests.warm import Command

QUICK = ["--processes", "1", "--repetitions", "4", "--seed", "5"]


@pytest.fixture
def call(in_process: Callable[..., Call]) -> Call:
    return in_process("replay")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "scores.json"
    path.write_text('{"low": [0.1, 0.2, 0.1, 0.2], "high": [0.8, 0.9, 0.8, 0.9], "mid": [0.5, 0.6, 0.5, 0.6]}')
    return path


def test_a_replay_tells_what_it_took_and_leaves_its_files(table: Path, tmp_path: Path, call: Any) -> None:
    output, figure = tmp_path / "out.json", tmp_path / "figure.png"
    options = ["--budget", 6, "--batch-size", 2, "--evaluations-per-split", 2, "--candidates", "high, low"]
    status, text = call(table, *QUICK, *options, "--output", output, "--figure", figure)
    assert status == 0, text
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


def test_every_option_reaches_the_replay(call: Any, tmp_path: Path) -> None:
    options = ["--strategy", "bts", "--belief", "logit_student_t", "--confidence", 0.7, "--max-evaluations", 100]
    output = tmp_path / "out.json"
    status, text = call("tdsa-12", *QUICK, *options, "--splits", "independent", "--output", output)
    assert status == 0, text
    assert "Warning" not in text
    summary = json.loads(output.read_text())
    assert summary["strategy"] == {
        "type": "bts",
        "confidence": 0.7,
        "max_evaluations": 100,
        "belief": {"type": "logit_student_t"},
    }
    assert (summary["splits"], len(summary["candidates"])) == ("independent", 12)
    status, text = call("tie", *QUICK, "--margin", 0.5, "--belief", "student_t", "--output", output)
    assert status == 0, text
    summary = json.loads(output.read_text())
    assert (summary["strategy"]["margin"], summary["correct"]) == (0.5, 1.0)


def test_equal_seeds_repeats_a_replay(call: Any, tmp_path: Path) -> None:
    def numbers(*options: Any) -> Any:
        few = ["--processes", 1, "--repetitions", 2, "--confidence", 0.6]
        assert call("tie", *few, "--output", tmp_path / "o.json", *options)[0] == 0
        return json.loads((tmp_path / "o.json").read_text())["evaluations"]

    assert numbers("--seed", 5) == numbers("--seed", 5) != numbers("--seed", 6)


def test_a_table_that_runs_out_names_the_option_that_helps(table: Path, call: Any) -> None:
    options = ["--candidates", "low,mid", "--confidence", 0.9999999999, *QUICK]
    options += ["--belief", "student_t", "--stop", "bayesian"]
    status, text = call(table, *options)
    assert status == 2
    assert re.search("error: .*scores.json: candidate '(low|mid)' has run out: all of its 4 .*--with-replacement", text)
    status, text = call(table, *options, "--with-replacement", "--max-evaluations", 20)
    assert status == 0, text
    assert "The scores were drawn with replacement." in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.json"], "nowhere.json: there is no such file"),
        (["tdsa-9"], "'tdsa-9' is neither a file .* Did you mean 'tdsa-8'"),
        (["tie", "--candidates", "first,secnd"], "--candidates: tie has no candidate 'secnd'. Did you mean 'second'"),
        (["tie", "--repetitions", "0"], "--repetitions must be at least 1 but got 0"),
        (["tie", "--output", "result.txt"], "--output result.txt: the file's name must end with .json"),
        (["tie", "--output", "nowhere/r.json"], "--output nowhere/r.json: there is no directory nowhere"),
        (["tie", "--figure", "figure.gif"], "--figure figure.gif: the file's name must end with .png or .pdf"),
    ],
)
def test_what_is_wrong_is_said_in_one_message(call: Any, arguments: List[str], message: str) -> None:
    status, text = call(*arguments)
    assert status == 2, text
    assert re.search(f"^error: .*{message}", text, re.MULTILINE), text
    assert "Traceback" not in text
    assert len(text.splitlines()) < 12


def test_an_interrupted_replay_prints_what_has_finished(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ctrl_c: Callable[[], None]
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


def test_both_ways_to_call_it(table: Path) -> None:
    """The second in a fresh interpreter, which finds the command by the plugins file alone."""
    options = [str(table), *QUICK, "--budget", "6"]
    command = Command(["-m", "fiesta_allennlp", "replay", *options])
    output, _ = command.communicate()
    assert command.returncode == 0, output
    words = [sys.executable, "-m", "allennlp", "fiesta-replay", *options]
    fresh = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True)
    assert fresh.returncode == 0, fresh.stderr
    assert "Correct: 100.0%" in output and "Correct: 100.0%" in fresh.stdout
