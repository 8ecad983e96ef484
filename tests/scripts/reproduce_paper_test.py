import json
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Callable

import pytest

from fiesta_allennlp.reports.results import CandidateResult, SelectionResult
from tests.scripts.conftest import cells_of

CANDIDATE_KEYS = [f.name for f in fields(CandidateResult) if f.name not in ("name", "failure_reasons")]
SELECTION_KEYS = [f.name for f in fields(SelectionResult)]


def test_the_paper_is_reproduced_beside_its_numbers(
    shared_data: Path, tmp_path: Path, run_script: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script, source = import_module("reproduce_paper"), shared_data / "scores" / "fiesta_tdsa_test_f1.json"
    paper = {key: texts[-1:] for key, texts in script.PAPER.items()}
    for name, value in (("BUDGETS", (48, 96)), ("CONFIDENCES", (0.8,)), ("PAPER", paper)):
        monkeypatch.setattr(script, name, value)
    printed = run_script("reproduce_paper", source, "--output", tmp_path, "--repetitions", 2, "--processes", 1)
    text = (tmp_path / "tables.md").read_text()
    rows = cells_of(text)
    assert ["tdlstm", "500", "0.6462", "0.0265", "0.5680", "0.6457", "0.7187"] in rows
    assert ["table 2", "TTTS", "0.8", "24 / 65 / 274, 97 %"] in [row[:4] for row in rows]
    assert text.count("| the default, batches of ") == 3
    assert sum(row[0] in ("independent", "shared") for row in rows) == 4
    assert text in printed
    for figure in ("figure3.png", "figure4.png"):
        assert (tmp_path / figure).read_bytes().startswith(b"\x89PNG")


def test_figure_3_of_a_selection(tmp_path: Path, run_script: Callable[..., str]) -> None:
    entries = [{"name": name, "failure_reasons": [], **dict.fromkeys(CANDIDATE_KEYS, 0)} for name in ("a", "b", "c")]
    summary = {**dict.fromkeys(SELECTION_KEYS), "metric": "f1", "candidates": entries}
    (tmp_path / "selection.json").write_text(json.dumps(summary))
    scores = ("a,finished,0.5", "b,finished,0.75", "b,failed,", "b,finished,0.25", "b,finished,1")
    (tmp_path / "evaluations.csv").write_text("\n".join(["candidate,status,score", *scores]))
    printed = run_script("reproduce_paper", tmp_path, "--output", tmp_path / "out")
    assert cells_of(printed)[2:] == [
        ["b", "3", "0.6667", "0.3819", "0.2500", "0.7500", "1.0000"],
        ["a", "1", "0.5000", "nan", "0.5000", "0.5000", "0.5000"],
    ]
    assert [path.name for path in (tmp_path / "out").glob("*.png")] == ["figure3.png"]
