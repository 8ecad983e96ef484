from pathlib import Path
from typing import Callable

import numpy as np
import pytest

from fiesta_allennlp.errors import ConfigError, DataError
from fiesta_allennlp.searches.tables import Columns, open_tables, read_csv, read_files

FRONT = ("dev_bleu", "-dev_gpu_time")

Write = Callable[[str], Path]


def test_the_files_of_a_table(write_files: Write) -> None:
    table = read_files(write_files("xx-yy"), FRONT)
    assert (table.name, table.points.inputs.shape, table.objectives) == ("xx-yy", (24, 3), FRONT)
    assert table.scores[0].tolist() == [12.9, -100]
    assert table.scores[23].tolist() == [13.0, -400]
    assert table.front.tolist() == [0, 23]


def test_memory_of_zero_is_unknown(write_files: Write) -> None:
    table = read_files(write_files("xx-yy"), ("dev_bleu", "-gpu_memory"))
    assert np.flatnonzero(~table.succeeded).tolist() == [3]
    assert 3 not in table.front


def test_a_directory_has_all_its_tables(write_files: Write) -> None:
    stem = write_files("zz")
    write_files("aa.v2")
    assert [table.name for table in open_tables(stem.parent, Columns())] == ["aa.v2", "zz"]
    assert [table.name for table in open_tables(stem, Columns())] == ["zz"]


@pytest.mark.parametrize(
    ("ending", "old", "new", "said"),
    [
        (".evals", "12.9", "twelve", r"\.evals, line 1: could not convert string to float: 'twelve'"),
        (".evals", "12.9", "nan", r"\.evals, line 1: must have 6 finite numbers: nan"),
        (".evals", "12.9\t", "", r"\.evals, line 2: must have 5 finite numbers"),
        (".fronts", "1\n", "0\n", r"\.fronts: is not the front of dev_bleu and dev_gpu_time"),
        (".hyps_scaled", "0\t0\t0\n", "", r"\.hyps_scaled has 23 rows and \.evals has 24"),
        (".hyps_scaled", "0\t0\t0\n", "1\t0\t0\n", r"line 2: has the inputs of .*\.hyps_scaled, line 1"),
    ],
)
def test_a_wrong_file_is_refused(write_files: Write, ending: str, old: str, new: str, said: str) -> None:
    stem = write_files("xx-yy")
    path = Path(f"{stem}{ending}")
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(DataError, match=said):
        read_files(stem, ("dev_bleu",))


def test_what_is_not_there_is_told(write_files: Write, tmp_path: Path) -> None:
    stem = write_files("xx-yy")
    with pytest.raises(ConfigError, match="no objective 'dev_blue'. Did you mean 'dev_bleu'"):
        read_files(stem, ("dev_blue",))
    with pytest.raises(ConfigError, match="there is no such file. Give a CSV file, a directory"):
        open_tables(tmp_path / "zh-en", Columns())
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="no file that ends with .hyps_scaled"):
        open_tables(tmp_path / "empty", Columns())


CSV = """lr,layers,optimizer,f1,seconds
0.1,1,adam,0.8,10
0.01,3,sgd,,20
0.001,2,rmsprop,0.7,5
"""


@pytest.fixture
def csv_file(tmp_path: Path) -> Path:
    path = tmp_path / "runs.csv"
    path.write_text(CSV)
    return path


def test_inputs_of_a_csv_file_are_scaled(csv_file: Path) -> None:
    table = read_csv(csv_file, Columns(("lr:log", "layers", "optimizer"), ("f1", "-seconds")))
    assert table.points.inputs[:, 0] == pytest.approx([1, 0.5, 0])
    assert table.points.inputs[:, 1] == pytest.approx([0, 1, 0.5])
    texts = table.points.inputs[:, 2:]
    assert np.linalg.norm(texts[0] - texts[1]) == pytest.approx(1)
    assert table.scores[[0, 2]].tolist() == [[0.8, -10], [0.7, -5]]
    assert table.succeeded.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("inputs", "objectives", "said"),
    [
        ((), ("f1",), "say with --inputs which columns are inputs. There are: lr, layers"),
        (("layer",), ("f1",), "no column 'layer'. Did you mean 'layers'"),
        (("lr",), ("F1",), "no column 'F1'"),
        (("optimizer:log",), ("f1",), "--inputs optimizer:log: a value is no number"),
        (("lr",), ("optimizer",), "the objective 'optimizer' must be numbers but one is 'adam'"),
        (("lr", "f1:log"), ("seconds",), "--inputs f1:log: a value is no number"),
    ],
)
def test_wrong_columns_are_refused(
    csv_file: Path, inputs: "tuple[str, ...]", objectives: "tuple[str, ...]", said: str
) -> None:
    with pytest.raises((ConfigError, DataError), match=said):
        read_csv(csv_file, Columns(inputs, objectives))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("0.1,1,adam,0.9,3", "row 4: has the inputs of .*row 1"),
        ("0.1,1", "row 4: must have 5 cells"),
        ("0,4,adam,0.9,3", "--inputs lr:log: a value is 0, which has no logarithm"),
    ],
)
def test_wrong_rows_are_refused(csv_file: Path, row: str, said: str) -> None:
    csv_file.write_text(CSV + row + "\n")
    with pytest.raises(DataError, match=said):
        read_csv(csv_file, Columns(("lr:log", "layers", "optimizer"), ("f1",)))


def test_runs_without_any_score_are_refused(csv_file: Path) -> None:
    csv_file.write_text("a,f1\n1,\n2,\n")
    with pytest.raises(DataError, match="no run has a value of f1"):
        read_csv(csv_file, Columns(("a",), ("f1",)))


@pytest.mark.parametrize(
    ("pair", "rows", "best", "front"), [("zh-en", 118, 14.66, 3), ("ru-en", 176, 20.23, 4), ("ja-en", 150, 16.41, 5)]
)
def test_the_published_tables(shared_data: Path, pair: str, rows: int, best: float, front: int) -> None:
    if not (shared_data / "tables" / "hpo_nmt").is_dir():
        pytest.skip("needs the tables of Zhang and Duh")
    table = read_files(shared_data / "tables" / "hpo_nmt" / pair, FRONT)
    assert table.points.inputs.shape == (rows, 6)
    assert table.scores[:, 0].max() == best
    assert len(table.front) == front
