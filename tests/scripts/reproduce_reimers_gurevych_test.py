import csv
from pathlib import Path
from typing import Callable, Dict, List

from tests.scripts.conftest import cells_of

BASE = {
    "ID": "1", "Backend": "theano", "Setting": "SingleTask", "Dataset": "ace.pkl", "Embeddings": "levy_dep",
    "AuxData": "[]", "LabelKey": "Entities_BIO", "TaggingScheme": "BIO", "Decoder": "CRF", "Dropout": "[0.1, 0.5]",
    "LSTM-Size": "[75]", "Optimizer": "Nadam", "CharEmbeddings": "False", "CharEmbeddingsSize": "0",
    "CharFilterSize": "0", "CharFilterLength": "0", "CharLSTMSize": "0", "Epochs": "31", "OptimalEpoch": "17",
    "EarlyStopping": "5",
    "Dev_F1": "0.8", "Test_F1": "0.8", "Max_Test_F1": "0.8",
}  # fmt: skip


def tables_of(printed: str) -> Dict[str, List[List[str]]]:
    """The cells of the body of each table, by the first two words of its title."""
    sections = printed.split("### ")[1:]
    return {" ".join(section.split()[:2]).rstrip(":"): cells_of(section)[2:] for section in sections}


def test_the_tables_of_a_small_file(tmp_path: Path, run_script: Callable[..., str]) -> None:
    rows = [
        {"Test_F1": "0.80", "Dev_F1": "0.50"},
        {"Test_F1": "0.83", "Dev_F1": "0.51", "Backend": "tensorflow", "Epochs": "9"},  # the same, 3 points apart
        {"Test_F1": "0.80", "Decoder": "['Softmax']", "Dev_F1": "0.52"},  # the CRF has .815 on average
        {"Test_F1": "0.90", "Optimizer": "Adam", "Dev_F1": "0.80"},
        {"Test_F1": "0.91", "Optimizer": "Adam", "Dev_F1": "0.79"},  # 1 point apart
        {"Test_F1": "0.10", "EarlyStopping": "0", "Setting": "MultiTask"},
    ]
    path = tmp_path / "runs.csv"
    with path.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, BASE, delimiter="\t")
        writer.writeheader()
        writer.writerows({**BASE, "ID": str(number), **row} for number, row in enumerate(rows))
    tables = tables_of(run_script("reproduce_reimers_gurevych", "--data", path))
    assert tables["Table 2"] == [["entities", "405", "0.72", "2.10", "8.23", "2", "2.00", "2.90", "3.00"]]
    assert tables["Table 3"] == [["entities", "210", "86.7 %", "-0.84", "1", "100.0 %", "-1.50"]]
    # The runs minus the means of their configuration, development and test: -.5 -1.5, .5 1.5, .5 -.5 and -.5 .5.
    assert [row[3:] for row in tables["Spearman's correlation"]] == [["4", "0.447"]]


def test_the_released_runs(shared_data: Path, run_script: Callable[..., str]) -> None:
    path = shared_data / "tables" / "reimers_gurevych" / "hyperparameter_results.csv.gz"
    tables = tables_of(run_script("reproduce_reimers_gurevych", "--data", path))
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
