import csv
import gzip
import sys
from importlib import import_module
from pathlib import Path
from typing import Callable, Dict, List

import pytest

BASE = {
    "ID": "1", "Backend": "theano", "Setting": "SingleTask", "Dataset": "ace.pkl", "Embeddings": "levy_dep",
    "AuxData": "[]", "LabelKey": "Entities_BIO", "TaggingScheme": "BIO", "Decoder": "CRF", "Dropout": "[0.1, 0.5]",
    "LSTM-Size": "[75]", "Optimizer": "Nadam", "CharEmbeddings": "False", "CharEmbeddingsSize": "0",
    "CharFilterSize": "0", "CharFilterLength": "0", "CharLSTMSize": "0", "Epochs": "31", "OptimalEpoch": "17",
    "EarlyStopping": "5",
    "Dev_F1": "0.8", "Test_F1": "0.8", "Max_Test_F1": "0.8",
}  # fmt: skip

CNN = {"CharEmbeddings": "CNN", "CharEmbeddingsSize": "30", "CharFilterSize": "30", "CharFilterLength": "3"}
LSTM = {"CharEmbeddings": "LSTM", "CharEmbeddingsSize": "30", "CharLSTMSize": "25"}


@pytest.fixture
def reproduce(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture
) -> Callable[..., Dict[str, List[List[str]]]]:
    """Runs the script on rows. Returns the cells of the body of each table, by the first word of its title."""
    script = import_module("reproduce_reimers_gurevych")

    def run(rows: List[Dict[str, str]]) -> Dict[str, List[List[str]]]:
        path = tmp_path / "runs.csv.gz"
        with gzip.open(path, "wt", encoding="utf-8", newline="") as out:
            writer = csv.DictWriter(out, BASE, delimiter="\t")
            writer.writeheader()
            writer.writerows({**BASE, "ID": str(number), **row} for number, row in enumerate(rows))
        return printed(path)

    def printed(path: Path) -> Dict[str, List[List[str]]]:
        monkeypatch.setattr(sys, "argv", ["x", "--data", str(path)])
        script.main()
        tables = {}
        for section in capsys.readouterr().out.split("### ")[1:]:
            lines = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")]
            tables[" ".join(section.split()[:2]).rstrip(":")] = lines[2:]
        return tables

    run.printed = printed  # type: ignore[attr-defined]
    return run


def test_runs_of_one_configuration_are_told_from_others(reproduce: Callable) -> None:
    rows = [
        {"Test_F1": "0.80"},
        {"Test_F1": "0.83", "Backend": "tensorflow", "Epochs": "9"},  # the same configuration, 3 points apart
        {"Test_F1": "0.90", "Optimizer": "Adam"},
        {"Test_F1": "0.91", "Optimizer": "Adam"},  # 1 point apart
        {"Test_F1": "0.10", "EarlyStopping": "0"},
        {"Test_F1": "0.50", "Setting": "MultiTask"},  # once each
    ]
    (cells,) = reproduce(rows)["Table 2"]
    assert cells == ["entities", "405", "0.72", "2.10", "8.23", "2", "2.00", "2.90", "3.00"]


def test_the_crf_wins_where_its_mean_is_higher(reproduce: Callable) -> None:
    rows = [
        {"Test_F1": "0.80", "Decoder": "Softmax"},
        {"Test_F1": "0.79", "Decoder": "['CRF']"},
        {"Test_F1": "0.83", "Decoder": "CRF"},  # .81 on average
        {"Test_F1": "0.70", "Decoder": "CRF", "Optimizer": "Adam"},
        {"Test_F1": "0.75", "Decoder": "['Softmax']", "Optimizer": "Adam"},
        {"Test_F1": "0.99", "Decoder": "CRF", "Optimizer": "SGD"},  # without a softmax
        {"Test_F1": "0.99", "Decoder": "Softmax", "Setting": "MultiTask", "Optimizer": "SGD"},
    ]
    tables = reproduce(rows)
    assert tables["Table 3"] == [["entities", "210", "86.7 %", "-0.84", "2", "50.0 %", "+2.00"]]
    assert tables["Tests of"] == [["entities", "3.54", "7.78", "-", "-", "-"]]


def test_development_scores_between_runs_and_between_seeds_alone(reproduce: Callable) -> None:
    rows = [
        {"Optimizer": optimizer, "Dev_F1": dev, "Test_F1": test}
        for optimizer, dev, test in (
            ("Adam", "0.50", "0.62"), ("Adam", "0.51", "0.61"), ("Adam", "0.52", "0.60"), ("SGD", "0.80", "0.90"),
        )
    ]  # fmt: skip
    # Over all runs the ranks are 1 2 3 4 and 3 2 1 4: 1 - 6 * 8 / 60. Between the seeds of Adam the order is reversed.
    assert reproduce(rows)["Spearman's correlation"] == [["entities", "4", "0.200", "3", "-1.000"]]


def test_the_released_runs(shared_data: Path, reproduce: Callable) -> None:
    tables = reproduce.printed(shared_data / "tables" / "reimers_gurevych" / "hyperparameter_results.csv.gz")  # type: ignore[attr-defined]
    assert [row[:6] + row[7:] for row in tables["Table 5"]] == [
        ["chunking", "241", "13.3 %", "43.2 %", "43.6 %", "241", "43.2 %", "43.6 %"],
        ["entities", "228", "26.8 %", "36.0 %", "37.3 %", "228", "36.0 %", "37.7 %"],
        ["events", "219", "20.5 %", "35.6 %", "43.8 %", "219", "35.6 %", "43.8 %"],
    ]
    assert [row[4:] for row in tables["Table 3"]] == [
        ["246", "95.1 %", "-0.39"],
        ["244", "86.5 %", "-0.90"],
        ["245", "39.6 %", "+0.13"],
    ]
    assert [row[5:] for row in tables["Table 2"]] == [
        ["440", "0.17", "0.49", "0.79"],
        ["456", "0.70", "2.05", "8.79"],
        ["421", "0.43", "1.24", "1.73"],
    ]
