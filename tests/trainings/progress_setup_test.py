from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, List, Optional, Set, Tuple

import pytest
from rich.console import Console

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.records import Decision, Evaluation, History
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.trainings.progress_setup import BestModels, MetricNames
from fiesta_allennlp.trainings.select import Trainings
from fiesta_allennlp.trainings.settings import Settings


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
    models = BestModels(directory)
    for number, left in ((2, {"a-0", "b-0"}), (3, {"a-1", "b-0"}), (5, {"a-1", "b-0"})):
        history = History(("a", "b"), tuple(finished(directory, *scores[:number])))
        models.on_state(history, Decision(None))
        assert there(tmp_path) == left
    models.keep_only(["a"], history)
    assert there(tmp_path) == {"a-1"}


def test_lost_archives_are_no_trouble_and_the_lowest_score_may_be_the_best(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    history = History(("a",), tuple(finished(directory, ("a", 0.9), ("a", 0.7), ("a", 0.8))))
    directory.archive("a-0").unlink()
    BestModels(directory, -1).on_state(history, Decision(None))
    assert there(tmp_path) == {"a-1"}
    BestModels(directory).keep_only([None], history)
    assert there(tmp_path) == set()


@pytest.mark.parametrize(
    ("best", "stopped_by", "kept"),
    [("a", "confidence", {"a-0"}), ("a", "interrupted", {"a-0", "b-0"}), (None, "failures", {"a-0", "b-0"})],
)
def test_a_selection_that_may_go_on_keeps_the_models_of_all(
    tmp_path: Path, best: Optional[str], stopped_by: str, kept: Set[str]
) -> None:
    directory = RunDirectory(tmp_path)
    history = History(("a", "b"), tuple(finished(directory, ("a", 0.5), ("b", 0.4))))
    settings = Settings(candidates=("a.jsonnet", "b.jsonnet"), keep="best")
    selection: Any = SimpleNamespace(settings=settings, directory=directory)
    Trainings.conclude(selection, history, Decision(best, stopped_by=stopped_by))
    assert there(tmp_path) == kept


def test_doubtful_scores_are_noted_once(tmp_path: Path) -> None:
    out = StringIO()
    settings = Settings(candidates=("a", "b"), metric="f1")
    names = MetricNames(settings, {}, Console(file=out, width=200))
    runs = finished(RunDirectory(tmp_path), ("a", 0.8), ("b", 0.5), ("b", 0.5), ("b", 0.5), ("a", 81.0), ("b", 0.6))
    for number, run in enumerate(runs, start=1):
        names.on_outcome(run)
        names.on_state(History(("a", "b"), tuple(runs[:number])), Decision(None))
    constant, scale = out.getvalue().splitlines()
    assert "All 3 scores of b are 0.5" in constant and "percentages such as 81" in scale
