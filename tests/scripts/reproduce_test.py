import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Callable, Dict, List

import numpy as np
import pytest

from tests.scripts.conftest import cells_of


def test_the_paper_is_reproduced_beside_its_numbers(
    shared_data: Path, tmp_path: Path, run_script: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script, source = import_module("reproduce_paper"), shared_data / "scores" / "fiesta_tdsa_test_f1.json"
    short = tuple(replace(procedure, goals=procedure.goals[-1:]) for procedure in script.PROCEDURES)
    monkeypatch.setattr(script, "PROCEDURES", short)
    printed = run_script("reproduce_paper", source, "--output", tmp_path, "--repetitions", 2)
    text = (tmp_path / "tables.md").read_text()
    rows = cells_of(text)
    assert ["tdlstm", "500", "0.6462", "0.0265", "0.5680", "0.6457", "0.7187"] in rows
    assert ["TTTS", "0.80", "65 (24-274), 97%"] in [row[:3] for row in rows]
    assert ["1", "`tdlstm`, `atae`, `ian`, `lstm`", "2", "2"] in rows and ["2", "`tdlstm`, `lstm`", "4", "4"] in rows
    assert sum(row[0].startswith(("independent", "shared")) for row in rows) == 4
    (starts,) = (row[1:] for row in rows if row[0] == "15")
    assert all(cell.startswith("3, 0.") for cell in starts), "figure 2 begins with 3 runs of each candidate"
    assert text in printed
    for figure in ("figure2.png", "figure3.png", "figure4.png"):
        assert (tmp_path / figure).read_bytes().startswith(b"\x89PNG")

    page = "".join(f"<!-- paper: {title} -->\n<!-- end -->\n" for title in script.MAKERS)
    monkeypatch.setattr(script, "PATH", tmp_path / script.PATH.name)
    monkeypatch.setattr(import_module("common"), "final_rule", lambda: script.rule_id())
    written = script.TABLES.fill(page)
    procedures = [row for row in rows if row[0].startswith(("independent", "shared"))]
    assert procedures and all(row[0] in {cells[0] for cells in cells_of(written)} for row in procedures)
    assert script.TABLES.fill(written) == written
    monkeypatch.setattr(import_module("common"), "final_rule", lambda: "another")
    with pytest.raises(ValueError, match="reproduce_paper.csv .*default, 1, 0.8 "):
        script.TABLES.fill("<!-- paper: default -->\n<!-- end -->\n")


def split(cnn: List[float], lstm: List[float]) -> List[List[Any]]:
    """A split as in the released file. The dev F1 is of no importance."""
    return [[0.5, score, name] for name, scores in (("cnn", cnn), ("lstm", lstm)) for score in scores]


SPLITS = [
    split([0.940, 0.942, 0.944, 0.941, 0.943], [0.945, 0.947, 0.946, 0.944, 0.948]),
    split([0.946, 0.945, 0.948, 0.947, 0.944], [0.943, 0.944, 0.945, 0.942, 0.946]),
    split([0.938, 0.790, 0.940, 0.939, 0.937], [0.941, 0.942, 0.940, 0.943, 0.944]),
    split([0.942, 0.943, 0.941, 0.944, 0.940], [0.944, 0.946, 0.946, 0.944, 0.948]),
]


def test_the_figure_of_a_small_file_and_selections_over_synthetic_ones(
    tmp_path: Path, run_script: Callable[..., str]
) -> None:
    script, path = import_module("reproduce_fiesta_ner"), tmp_path / "scores.json"
    path.write_text(json.dumps(SPLITS))
    printed = run_script("reproduce_fiesta_ner", path, "--output", tmp_path / "out")
    rows = cells_of(printed)
    assert ["0", "0.9420", "0.9460", "+0.0040"] in rows and ["all", "0.9347", "0.9444", "+0.0097"] in rows
    assert "lstm leads on 3 of 4" in printed
    assert "converge: 1 of cnn, 0 of lstm." in printed
    assert (tmp_path / "out" / "figure1.png").read_bytes().startswith(b"\x89PNG")
    printed = run_script("reproduce_fiesta_ner", "--synthetic", 1, "--output", tmp_path, "--repetitions", 2)
    lines = import_module("common").read_rows(tmp_path / "reproduce_fiesta_ner.csv", script.Measured)
    assert [list(line.cells) for line in lines] == cells_of(printed.split("### ")[2])[2:]
    assert {line.scores for line in lines} == set(script.UNCONVERGED_LABELS) and len(lines) == 3


def test_the_synthetic_documents_of_haffari(run_script: Callable[..., str]) -> None:
    pytest.importorskip("statsmodels")
    printed = run_script("reproduce_haffari", "--repetitions", 2, "--problems", "0.05:5")
    headings, _, *rows = cells_of(printed)
    haffari = import_module("reproduce_haffari")
    assert headings == list(haffari.HEADINGS)
    assert [row[2] for row in rows] == ["Baseline2", "BaselineK-1", *haffari.METHODS]
    assert [row[3] for row in rows] == ["120", "185", "513 (100%)", "22 (100%)", "360 (100%)", "19 (100%)"]


def test_the_effect_apart_by_hand() -> None:
    """The means differ by 0.1 and both variances are 0.02: 0.1 / sqrt(0.04)."""
    pytest.importorskip("statsmodels")
    effect_apart = import_module("reproduce_haffari").effect_apart
    assert effect_apart(np.array([0.5, 0.7]), np.array([0.4, 0.6])) == pytest.approx(0.5)


def tables_of(printed: str) -> Dict[str, List[List[str]]]:
    """The cells of the body of each table, by the first two words of its title."""
    sections = printed.split("### ")[1:]
    return {" ".join(section.split()[:2]).rstrip(":"): cells_of(section)[2:] for section in sections}


def test_the_released_runs(shared_data: Path, run_script: Callable[..., str]) -> None:
    path = shared_data / "tables" / "reimers_gurevych" / "hyperparameter_results.csv.gz"
    tables = tables_of(run_script("reproduce_reimers_gurevych", "--data", path))
    assert [row[:6] + row[7:] for row in tables["Table 5"]] == [
        ["chunking", "241", "13.3%", "43.2%", "43.6%", "241", "43.2%", "43.6%"],
        ["entities", "228", "26.8%", "36.0%", "37.3%", "228", "36.0%", "37.7%"],
        ["events", "219", "20.5%", "35.6%", "43.8%", "219", "35.6%", "43.8%"],
    ]
    assert [row[4:] for row in tables["Table 3"]] == [
        ["246", "95.1%", "-0.39"],
        ["244", "86.5%", "-0.90"],
        ["245", "39.6%", "+0.13"],
    ]
    assert [row[5:] for row in tables["Table 2"]] == [
        ["440", "0.17", "0.49", "0.79"],
        ["456", "0.70", "2.05", "8.79"],
        ["421", "0.43", "1.24", "1.73"],
    ]
