import csv
import json
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, List, Optional, Set, Tuple

import pytest

from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.candidates.training_selection import TrainingSelection
from fiesta_allennlp.choosing.strategy import Decision
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import StoreError
from fiesta_allennlp.core.metrics import Metric
from fiesta_allennlp.core.records import Evaluation, Failure, History, Origin
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.selecting.workspace import BestModelKeeper, check_no_foreign_files, write_csv


def test_a_directory_with_other_files_is_refused_and_ours_are_not(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "run")
    check_no_foreign_files(directory, force=False)
    directory.root.mkdir()
    for name in ("store.lock", "answers.sqlite", "answers.sqlite-wal", "selection.log", ".gitignore"):
        (directory.root / name).touch()
    check_no_foreign_files(directory, force=False)
    for name in ("thesis.tex", "b", "c", "d"):
        (directory.root / name).touch()
    with pytest.raises(StoreError, match="such as b, c, d\\."):
        check_no_foreign_files(directory, force=False)
    check_no_foreign_files(directory, force=True)


@pytest.mark.parametrize("name", ["selection.json", "evaluations.csv", "next", "jobs", "report"])
def test_files_of_somebody_else_are_not_overwritten(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    for force in (False, True):
        with pytest.raises(StoreError, match=f"{name} would be overwritten"):
            check_no_foreign_files(RunDirectory(tmp_path), force=force)


def test_csv_has_the_columns_and_every_metric(tmp_path: Path) -> None:
    origin = json.dumps(asdict(Origin("node1", gpu="0", job="7", python="3.11", versions={"a": "1", "b": "2"})))
    finished = {"candidate": "a", "status": "finished", "score": 0.1 + 0.2, "metrics": '{"x": 1}', "origin": origin}
    failed = {"candidate": "b", "status": "failed", "error": 'said "no", twice'}
    write_csv([{"replicate": 0, **row} for row in (finished, failed)], tmp_path / "e.csv")
    a, b = csv.DictReader((tmp_path / "e.csv").read_text().splitlines())
    assert (float(a["score"]), a["metric:x"]) == (0.1 + 0.2, "1")
    assert (b["score"], b["metric:x"], b["host"], b["error"]) == ("", "", "", 'said "no", twice')
    assert list(a)[:4] == ["candidate", "replicate", "status", "score"]
    assert [a[name] for name in ("host", "gpu", "job", "python", "versions")] == ["node1", "0", "7", "3.11", "a 1, b 2"]


def test_csv_has_no_formula_and_no_half_of_a_character(tmp_path: Path) -> None:
    row = {"candidate": "@SUM(1)", "status": "finished", "score": -0.5, "metrics": r'{"\ud800": 1, "=x": -2}'}
    write_csv([row], tmp_path / "e.csv")
    head, line = (tmp_path / "e.csv").read_text(encoding="utf-8").splitlines()
    assert head.endswith(r",error,metric:=x,metric:\ud800")
    assert line == "'@SUM(1),,finished,-0.5,,,,,,,,,,,,,,,,-2,1"


def finished(directory: RunDirectory, *scores: Tuple[str, float]) -> List[Evaluation]:
    """Evaluations in this order, each with its archive."""
    done: List[Evaluation] = []
    for name, score in scores:
        replicate = sum(evaluation.request.candidate == name for evaluation in done)
        done.append(Evaluation(make_request(1, name, replicate, shared_splits=True), score, "f1"))
        archive = directory.archive(done[-1].request.name)
        archive.parent.mkdir(parents=True, exist_ok=True)
        archive.write_bytes(b"a model")
    return done


def there(root: Path) -> Set[str]:
    return {path.parent.name for path in root.rglob("model.tar.gz")}


def test_the_best_of_each_candidate_stays_while_it_runs_and_the_winners_at_the_end(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    scores = [("a", 0.5), ("b", 0.9), ("a", 0.7), ("a", 0.6), ("a", 0.7)]
    models = BestModelKeeper(directory)
    for number, left in ((2, {"a-0", "b-0"}), (3, {"a-1", "b-0"}), (5, {"a-1", "b-0"})):
        history = History(("a", "b"), tuple(finished(directory, *scores[:number])))
        models.on_state(history, Decision(None))
        assert there(tmp_path) == left
    models.keep_only(["a"], history)
    assert there(tmp_path) == {"a-1"}


def test_models_of_finished_runs_that_count_as_failed_go_too(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    runs = finished(directory, ("a", 0.5), ("a", 0.4))
    failures = (Failure(runs[0].request, "score", "no"),)
    history = History(("a",), tuple(runs[len(failures) :]), failures=failures)
    BestModelKeeper(directory).on_state(history, Decision(None))
    assert there(tmp_path) == {runs[-1].request.name}


@pytest.mark.parametrize(
    ("best", "stopped_by", "kept"),
    [
        ("a", "confidence", {"a-0"}),
        ("a", "max_evaluations", {"a-0", "b-0"}),
        (None, "failures", {"a-0", "b-0"}),
    ],
)
def test_a_selection_without_a_winner_keeps_the_models_of_all(
    tmp_path: Path, best: Optional[str], stopped_by: str, kept: Set[str]
) -> None:
    directory = RunDirectory(tmp_path)
    history = History(("a", "b"), tuple(finished(directory, ("a", 0.5), ("b", 0.4))))
    settings = Settings(candidates=("a.jsonnet", "b.jsonnet"), keep="best")
    selection: Any = SimpleNamespace(settings=settings, directory=directory)
    decision = Decision(best, stopped_by=stopped_by)
    TrainingSelection.conclude(selection, history, Result.from_decision(history, decision, Metric("f1")))
    assert there(tmp_path) == kept
