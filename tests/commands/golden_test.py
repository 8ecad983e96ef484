"""Run directories made before the package was rearranged: each is reported on, and each can still be recovered.

`tests/fixtures/runs` has four of them, the project they were run in, and in `expected` what the same code said of them.
"""

import csv
import json
import re
import shutil
from pathlib import Path
from typing import Any, Dict, List

import pytest
from rich.console import Console

import fiesta_allennlp
from fiesta_allennlp.documents.select import select_system

RUNS = Path(__file__).parent.parent / "fixtures" / "runs"
EXPECTED = RUNS / "expected"

SELECTIONS = ("finished", "withdrawn", "interrupted", "documents")
REPLAY = {"confidence": 0.9, "repetitions": 20, "processes": 1, "seed": 11, "evaluations_per_split": 2}


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of all runs. The current directory is that of the project."""
    copied = tmp_path / "runs"
    shutil.copytree(RUNS, copied)
    monkeypatch.chdir(copied / "project")
    return copied


def without_pictures(page: str) -> str:
    """Pictures differ between versions of matplotlib."""
    return re.sub(r"base64,[A-Za-z0-9+/=]+", "base64,", page)


def about(value: Any) -> Any:
    """Plain data whose numbers need not agree in the last digits, which differ between versions of SciPy."""
    if isinstance(value, dict):
        return {key: about(child) for key, child in value.items()}
    if isinstance(value, list):
        return [about(child) for child in value]
    return pytest.approx(value, rel=1e-9) if isinstance(value, float) else value


def summary_of(path: Path) -> Any:
    """A `selection.json`. The default strategy was called `ttts` when it was made."""
    return json.loads(path.read_text().replace('"ttts"', '"top_two"'))


def rows_of(path: Path) -> List[Dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as rows:
        return list(csv.DictReader(rows))


def recovered(runs: Path, name: str) -> Path:
    directory = Path("..") / name
    if name == "documents":
        select_system({}, directory, console=Console(quiet=True), recover=True)
    else:
        fiesta_allennlp.select(directory=directory, recover=True)
    return directory


@pytest.mark.parametrize("name", SELECTIONS)
def test_a_report_says_what_it_said(runs: Path, name: str) -> None:
    fiesta_allennlp.report(f"../{name}", output="report")
    for file in ("report.md", "table.tex", "scores.csv"):
        assert Path("report", file).read_text() == (EXPECTED / name / file).read_text()
    page = without_pictures(Path("report", "report.html").read_text())
    assert page == (EXPECTED / name / "report.html").read_text()


@pytest.mark.parametrize("name", ["finished", "withdrawn", "documents"])
def test_a_selection_that_has_ended_is_recovered_as_it_was(runs: Path, name: str) -> None:
    directory = recovered(runs, name)
    before = summary_of(RUNS / name / "selection.json")
    before["seed"] = before.pop("entropy")
    before["lacking"] = {}  # the old version did not write it down
    if name != "documents":
        before["score"] = "test"  # nor this
    if before["stop"] == {"type": "bayesian"} and "budget" not in before:  # written down, because it is not the default
        before["strategy"]["stop"] = {"type": "bayesian"}
    now = summary_of(directory / "selection.json")
    if name == "finished":  # the old version told of a rival only where its mean is better
        ahead = {"of": "slow", "has_better_mean": False, "num_splits": 5, "difference": pytest.approx(0.22)}
        assert now.pop("ahead_on_shared_splits") == ahead and before.pop("ahead_on_shared_splits") is None
    assert now == about(before)
    assert (directory / "evaluations.csv").read_bytes() == (RUNS / name / "evaluations.csv").read_bytes()


def test_an_interrupted_selection_goes_on_with_the_same_seeds(runs: Path) -> None:
    directory = recovered(runs, "interrupted")
    before, after = rows_of(RUNS / "interrupted" / "evaluations.csv"), rows_of(directory / "evaluations.csv")
    assert after[: len(before)] == before
    identity = ("candidate", "replicate", "split_seed", "random_seed", "numpy_seed", "pytorch_seed")
    found = sorted(tuple(row[key] for key in identity) for row in after)
    expected = rows_of(EXPECTED / "interrupted" / "evaluations.csv")
    assert found == sorted(tuple(row[key] for key in identity) for row in expected)
    assert json.loads((directory / "selection.json").read_text())["stopped_by"] == "budget"


def test_a_replay_gives_what_it_gave(runs: Path) -> None:
    summary = dict(fiesta_allennlp.replay("scores.json", **REPLAY).summary)
    expected = summary_of(EXPECTED / "replay.json")
    del summary["seconds"], expected["seconds"]
    assert json.loads(json.dumps(summary)) == about(expected)
