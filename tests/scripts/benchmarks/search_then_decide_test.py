import csv
import gzip
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Dict, List

import numpy as np
import pytest

from fiesta_allennlp.searches.searchers import Points

SAME = {
    "Backend": "theano",
    "Setting": "SingleTask",
    "Dataset": "ace.pkl",
    "Embeddings": "glove",
    "TaggingScheme": "BIO",
    "Decoder": "CRF",
    "Dropout": "[0.25, 0.1]",
    "DropoutType": "Variational",
    "VariationalDropoutType": "drop_both",
    "LSTM-Layers": "2",
    "LSTM-Neurons": "200",
    "Optimizer": "Adam",
    "clipvalue": "0",
    "clipnorm": "5",
    "miniBatchSize": "32",
    "CharEmbeddings": "False",
    "EarlyStopping": "5",
}


@pytest.fixture
def script() -> ModuleType:
    return import_module("search_then_decide")


def write(path: Path, rows: List[Dict[str, str]]) -> Path:
    complete = [{"ID": str(number), **SAME, **row} for number, row in enumerate(rows)]
    with gzip.open(path, "wt", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, complete[0], delimiter="\t")
        writer.writeheader()
        writer.writerows(complete)
    return path


def test_a_config_is_what_is_equal_in_all_but_results(script: ModuleType, tmp_path: Path) -> None:
    rows = [
        {"Test_F1": "0.5", "Decoder": "CRF"},
        {"Test_F1": "0.7", "Decoder": "['CRF']", "Backend": "Theano"},
        {"Test_F1": "0.9", "Dropout": "0.5", "Decoder": "Softmax"},
        {"Test_F1": "0.1", "Setting": "MultiTask"},
        {"Test_F1": "0.2", "Dataset": "tempeval3.pkl"},
    ]
    surface = script.read_surface(write(tmp_path / "runs.csv.gz", rows), "entities")
    assert surface.truth == pytest.approx([0.6, 0.9])
    assert surface.noise_sd == pytest.approx(np.sqrt(0.02))  # (0.1^2 + 0.1^2) / 1
    dropout = surface.points.inputs[:, -2:]
    assert dropout.tolist() == [[0.25, 0.1], [0.5, 0.5]]


def made_up(script: ModuleType, noise_sd: float = 1e-9) -> "object":
    inputs = np.linspace(0, 1, 30)[:, None]
    return script.Surface("line", Points(inputs), inputs[:, 0] ** 2, noise_sd)


def test_halving_by_hand(script: ModuleType) -> None:
    # Two rounds of 8 runs: 2 for each of 4, then 4 for each of the best 2. The noise of the first round puts the second
    # finalist last. The third one ends with the mean of 0.5 twice and 0.7 four times.
    first = np.array([[[0.0, 0.0], [-1.0, -1.0], [0.0, 0.0], [0.0, 0.0]]])
    second = np.repeat(np.array([[[9.0], [9.0], [0.2], [0.0]]]), 4, axis=2)
    noise = iter([first, second])
    truth = np.array([[0.1, 0.9, 0.5, 0.4]])
    means = script.halved(truth, 16, lambda shape: next(noise))
    assert means[0] == pytest.approx([-np.inf, -np.inf, 3.8 / 6, 0.4])
    with pytest.raises(ValueError, match="7 runs are too few for 4 finalists"):
        script.halved(truth, 7, np.zeros)


def test_the_table_names_every_way(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    rng = np.random.default_rng(1)
    rows = [{"LSTM-Neurons": str(n), "Test_F1": f"{rng.random():.3f}"} for n in range(40) for _ in range(2)]
    data = write(tmp_path / "runs.csv.gz", rows)
    options = ["--data", data, "--tasks", "entities", "--runs", 36, "--pool", 40, "--repetitions", 3]
    more = ["--searchers", "random", "gp_ei", "--picture", str(tmp_path / "loss.png")]
    monkeypatch.setattr(sys, "argv", ["x", *map(str, options), "--repeats", "2", "--shares", "20:4", *more])
    script.main()
    random, gp_ei = (part.strip().splitlines() for part in capsys.readouterr().out.split("###")[1:])
    assert random[0] == "random, 36 runs among 40 configs, 1e-4 F1"
    assert gp_ei[0] == "gp_ei, 36 runs among 40 configs, 1e-4 F1"
    ways = [line.split(" | ")[0].strip("| ") for line in random[4:]]
    assert ways == [
        "36 configs once",
        "18 configs 2 times",
        "20 once, 16 on the best 4",
        "29 once, 7 on the best 2, default",
    ]
    assert (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG")
