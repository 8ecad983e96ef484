import csv
import gzip
from pathlib import Path
from typing import Dict, List

import numpy as np
import pytest
import search_then_decide

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
    means = search_then_decide.halve(truth, 16, lambda shape: next(noise))
    assert means[0] == pytest.approx([-np.inf, -np.inf, 3.8 / 6, 0.4])
