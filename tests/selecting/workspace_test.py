import csv
import json
from dataclasses import asdict
from pathlib import Path

import pytest

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import StoreError
from fiesta_allennlp.core.origin import Origin
from fiesta_allennlp.selecting.workspace import check_no_foreign_files, write_csv


def test_a_directory_with_other_files_is_refused_and_ours_are_not(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "run")
    check_no_foreign_files(directory, force=False)
    directory.root.mkdir()
    for name in ("store.lock", "answers.sqlite", "answers.sqlite-wal", "selection.log", ".gitignore"):
        (directory.root / name).touch()
    check_no_foreign_files(directory, force=False)
    for name in ("thesis.tex", "b", "c", "d"):
        (directory.root / name).touch()
    with pytest.raises(StoreError, match="other files, such as b, c, d\\."):
        check_no_foreign_files(directory, force=False)
    check_no_foreign_files(directory, force=True)


@pytest.mark.parametrize("name", ["selection.json", "evaluations.csv"])
def test_results_of_somebody_else_are_not_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    for force in (False, True):
        with pytest.raises(StoreError, match=f"{name} would be overwritten"):
            check_no_foreign_files(RunDirectory(tmp_path), force=force)


def test_csv_has_the_columns_and_every_metric(tmp_path: Path) -> None:
    seeds = {"split_seed": 1, "random_seed": 2, "numpy_seed": 3, "pytorch_seed": 4}
    origin = json.dumps(asdict(Origin("node1", gpu="0", job="7", python="3.11", versions={"a": "1", "b": "2"})))
    rows = [
        {
            "candidate": "a",
            "replicate": 0,
            "status": "finished",
            "score": 0.1 + 0.2,
            "metrics": '{"x": 1}',
            **seeds,
            "origin": origin,
        },
        {"candidate": "b", "replicate": 0, "status": "failed", "error": 'said "no", twice', **seeds},
    ]
    write_csv(rows, tmp_path / "e.csv")
    with (tmp_path / "e.csv").open(newline="") as file:
        read = list(csv.DictReader(file))
    assert float(read[0]["score"]) == 0.1 + 0.2
    assert (read[0]["metric:x"], read[1]["metric:x"], read[1]["score"]) == ("1", "", "")
    assert read[1]["error"] == 'said "no", twice'
    assert list(read[0])[:4] == ["candidate", "replicate", "status", "score"]
    where = ("host", "gpu", "job", "python", "versions")
    assert [read[0][name] for name in where] == ["node1", "0", "7", "3.11", "a 1, b 2"] and read[1]["host"] == ""


def test_csv_has_no_formula_and_no_half_of_a_character(tmp_path: Path) -> None:
    row = {"candidate": "@SUM(1)", "status": "finished", "score": -0.5, "metrics": r'{"\ud800": 1, "=x": -2}'}
    write_csv([row], tmp_path / "e.csv")
    head, line = (tmp_path / "e.csv").read_text(encoding="utf-8").splitlines()
    assert head.endswith(r",error,metric:=x,metric:\ud800")
    assert line == "'@SUM(1),,finished,-0.5,,,,,,,,,,,,,,,,-2,1"
