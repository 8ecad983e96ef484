import json
from importlib import import_module
from pathlib import Path
from typing import Any, Callable, List

import numpy as np
import pytest

from tests.scripts.conftest import cells_of


def split(cnn: List[float], lstm: List[float]) -> List[List[Any]]:
    """A split as in the released file. The dev F1 is of no importance."""
    return [[0.5, score, name] for name, scores in (("cnn", cnn), ("lstm", lstm)) for score in scores]


SPLITS = [
    split([0.940, 0.942, 0.944, 0.941, 0.943], [0.945, 0.947, 0.946, 0.944, 0.948]),
    split([0.946, 0.945, 0.948, 0.947, 0.944], [0.943, 0.944, 0.945, 0.942, 0.946]),
    split([0.938, 0.790, 0.940, 0.939, 0.937], [0.941, 0.942, 0.940, 0.943, 0.944]),
    split([0.942, 0.943, 0.941, 0.944, 0.940], [0.944, 0.946, 0.946, 0.944, 0.948]),
]


def test_the_figure_and_the_replays_of_a_small_file(
    tmp_path: Path, run_script: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script, path = import_module("reproduce_fiesta_ner"), tmp_path / "scores.json"
    procedures = tuple((name, {**options, "max_evaluations": 20}) for name, options in script.PROCEDURES)
    monkeypatch.setattr(script, "PROCEDURES", procedures)  # the file has 20 runs of each
    path.write_text(json.dumps(SPLITS))
    printed = run_script("reproduce_fiesta_ner", path, "--output", tmp_path / "out", "--repetitions", 4)
    rows = cells_of(printed)
    assert ["0", "0.9420", "0.9460", "+0.0040"] in rows and ["all", "0.9347", "0.9444", "+0.0097"] in rows
    assert "lstm leads on 3 of 4 splits by the mean of their runs" in printed
    assert "Runs that did not converge: 1 of cnn, 0 of lstm." in printed
    assert sum(row[0] in ("as released", "unconverged runs replaced") for row in rows) == 8
    assert (tmp_path / "out" / "figure1.png").read_bytes().startswith(b"\x89PNG")


def test_a_run_that_did_not_converge_gets_the_mean_of_the_others_of_its_split() -> None:
    script = import_module("reproduce_fiesta_ner")
    scores = script.scores_of(SPLITS)
    mended = script.mended(scores)
    assert mended["cnn"][2, 1] == pytest.approx((0.938 + 0.940 + 0.939 + 0.937) / 4)
    assert np.delete(mended["cnn"].ravel(), 11).tolist() == np.delete(scores["cnn"].ravel(), 11).tolist()


def test_synthetic_selections(tmp_path: Path, run_script: Callable[..., str]) -> None:
    options = ("--synthetic", 1, "--procedure", "the default", "--output", tmp_path, "--repetitions", 4)
    rows = [row for row in cells_of(run_script("reproduce_fiesta_ner", *options)) if row[1:2] == ["the default"]]
    assert [row[0] for row in rows] == ["all runs converge", "4 of 750 of cnn do not", "4 of 750 of lstm do not"]
    assert all(float(row[3].split()[0]) + float(row[4]) <= 1 for row in rows)
