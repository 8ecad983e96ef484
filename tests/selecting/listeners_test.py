from pathlib import Path
from types import SimpleNamespace
from typing import Any, List, Optional, Set, Tuple

import pytest

from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.candidates.training_selection import TrainingSelection
from fiesta_allennlp.choosing.decision import Decision
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.records import Evaluation, Failure, History
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.core.settings.metrics import Metric
from fiesta_allennlp.reports.coming_runs import trial_table
from fiesta_allennlp.selecting.listeners import BestModelKeeper
from fiesta_allennlp.selecting.results.result import Result


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
        ("a", "interrupted", {"a-0", "b-0"}),
        ("a", "unresolved", {"a-0", "b-0"}),
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


def test_the_table_of_a_trial_has_scores_and_failures() -> None:
    run, failed = (make_request(1, name, 0, shared_splits=True) for name in ("a", "b"))
    table = trial_table([Evaluation(run, 0.5, "f1", 1.0), Failure(failed, "error", "no such luck", 2.0)], "f1")
    assert list(table.headings) == ["candidate", "f1", "seconds"]
    assert table.rows == [["a", "0.5000", "1.0"], ["b", "failed", "2.0"]]
