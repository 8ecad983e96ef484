import csv
import gzip
from pathlib import Path
from typing import Callable, Dict, List

import numpy as np
import pytest
import search_then_decide

from tests.scripts.conftest import cells_of

SAME = dict.fromkeys(
    [*search_then_decide.CATEGORIES, *search_then_decide.OTHER_CATEGORIES, "Backend", "LSTM-Layers", "miniBatchSize"],
    "1",
)
SAME |= {"Setting": "SingleTask", "Dataset": "ace.pkl", "Decoder": "CRF", "Dropout": "[0.25, 0.1]"}
SAME |= {"LSTM-Neurons": "200", "miniBatchSize": "32", "EarlyStopping": "5"}


def write(path: Path, rows: List[Dict[str, str]]) -> Path:
    complete = [{"ID": str(number), **SAME, **row} for number, row in enumerate(rows)]
    with gzip.open(path, "wt", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, complete[0], delimiter="\t")
        writer.writeheader()
        writer.writerows(complete)
    return path


def test_a_config_is_what_is_equal_in_all_but_results(tmp_path: Path) -> None:
    rows = [
        {"Test_F1": "0.5", "Decoder": "CRF"},
        {"Test_F1": "0.7", "Decoder": "['CRF']", "Backend": "Theano"},
        {"Test_F1": "0.9", "Dropout": "0.5", "Decoder": "Softmax"},
        {"Test_F1": "0.1", "Setting": "MultiTask"},
        {"Test_F1": "0.2", "Dataset": "tempeval3.pkl"},
    ]
    surface = search_then_decide.read_surface(write(tmp_path / "runs.csv.gz", rows), "entities")
    assert surface.truth == pytest.approx([0.6, 0.9])
    assert surface.noise_sd == pytest.approx(np.sqrt(0.02))  # (0.1^2 + 0.1^2) / 1
    dropout = surface.points.inputs[:, -2:]
    assert dropout.tolist() == [[0.25, 0.1], [0.5, 0.5]]


def test_halving_by_hand() -> None:
    # Two rounds of 8 runs: 2 for each of 4, then 4 for each of the best 2. The noise of the first round puts the second
    # finalist last. The third one ends with the mean of 0.5 twice and 0.7 four times.
    first = np.array([[[0.0, 0.0], [-1.0, -1.0], [0.0, 0.0], [0.0, 0.0]]])
    second = np.repeat(np.array([[[9.0], [9.0], [0.2], [0.0]]]), 4, axis=2)
    noise = iter([first, second])
    truth = np.array([[0.1, 0.9, 0.5, 0.4]])
    means = search_then_decide.halved(truth, 16, lambda shape: next(noise))
    assert means[0] == pytest.approx([-np.inf, -np.inf, 3.8 / 6, 0.4])


def test_the_table_names_every_way(tmp_path: Path, run_script: Callable[..., str]) -> None:
    rng = np.random.default_rng(1)
    rows = [{"LSTM-Neurons": str(n), "Test_F1": f"{rng.random():.3f}"} for n in range(40) for _ in range(2)]
    data = write(tmp_path / "runs.csv.gz", rows)
    options = ("--data", data, "--tasks", "entities", "--runs", 36, "--pool", 40, "--repetitions", 3, "--repeats", 2)
    more = ("--shares", "20:4", "--searchers", "random", "gp_ei", "--picture", tmp_path / "loss.png")
    random, gp_ei = run_script("search_then_decide", *options, *more).split("###")[1:]
    assert gp_ei.startswith(" gp_ei, 36 runs among 40 configs, 1e-4 F1\n")
    assert [row[0] for row in cells_of(random)[2:]] == [
        "36 configs once",
        "18 configs 2 times",
        "20 once, 16 on the best 4",
        "29 once, 7 on the best 2, default",
    ]
    assert (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG")
