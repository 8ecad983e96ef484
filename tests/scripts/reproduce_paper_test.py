import json
import sys
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Callable

import pytest

from fiesta_allennlp.reports.results import CandidateResult, SelectionResult

CANDIDATE_KEYS = [f.name for f in fields(CandidateResult) if f.name not in ("name", "failure_reasons")]
SELECTION_KEYS = [f.name for f in fields(SelectionResult)]


@pytest.fixture
def reproduce(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Path]:
    """Runs the script on a source. Returns the directory of its output."""
    script = import_module("reproduce_paper")
    monkeypatch.setattr(script, "BUDGETS", (48, 96))
    monkeypatch.setattr(script, "CONFIDENCES", (0.8,))
    monkeypatch.setattr(script, "PAPER", {key: texts[-1:] for key, texts in script.PAPER.items()})

    def run(source: Path) -> Path:
        options = ["--output", str(tmp_path / "out"), "--repetitions", "2", "--processes", "1"]
        monkeypatch.setattr(sys, "argv", ["reproduce_paper.py", str(source), *options])
        script.main()
        return tmp_path / "out"

    return run


def test_the_paper_is_reproduced_beside_its_numbers(
    shared_data: Path, reproduce: Callable[..., Path], capsys: pytest.CaptureFixture
) -> None:
    out = reproduce(shared_data / "scores" / "fiesta_tdsa_test_f1.json")
    text = (out / "tables.md").read_text()
    assert "| tdlstm | 500 | 0.6462 | 0.0265 | 0.5680 | 0.6457 | 0.7187 |" in text
    assert "| table 2 | TTTS | 0.8 | 24 / 65 / 274, 97 % | " in text
    assert "| table 3 | BTS, batches of 8 | 0.8 | 32 / 106 / 352, 99 % | " in text
    assert text.count("| the default, batches of ") == 3
    assert sum(line.startswith(("| independent |", "| shared |")) for line in text.splitlines()) == 4
    assert text in capsys.readouterr().out
    for figure in ("figure3.png", "figure4.png"):
        assert (out / figure).read_bytes().startswith(b"\x89PNG")


def test_figure_3_of_a_selection(tmp_path: Path, reproduce: Callable[..., Path]) -> None:
    entries = [{"name": name, "failure_reasons": [], **dict.fromkeys(CANDIDATE_KEYS, 0)} for name in ("a", "b", "c")]
    summary = {**dict.fromkeys(SELECTION_KEYS), "metric": "f1", "candidates": entries}
    (tmp_path / "selection.json").write_text(json.dumps(summary))
    rows = [
        "candidate,status,score",
        "a,finished,0.5",
        "b,finished,0.75",
        "b,failed,",
        "b,finished,0.25",
        "b,finished,1",
    ]
    (tmp_path / "evaluations.csv").write_text("\n".join(rows))
    out = reproduce(tmp_path)
    table = [line for line in (out / "tables.md").read_text().splitlines() if line.startswith(("| a", "| b", "| c "))]
    assert table == [
        "| b | 3 | 0.6667 | 0.3819 | 0.2500 | 0.7500 | 1.0000 |",
        "| a | 1 | 0.5000 | nan | 0.5000 | 0.5000 | 0.5000 |",
    ]
    assert (out / "figure3.png").is_file()
    assert not (out / "figure4.png").exists()
