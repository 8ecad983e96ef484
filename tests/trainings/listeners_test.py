from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List, Optional, Set, Tuple

import pytest
from rich.console import Console

from fiesta_allennlp.core.blame import FINISHED_KINDS
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.records import PEAK_MEMORY, Evaluation, Failure, History
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.reports.dry_run import trial_table
from fiesta_allennlp.strategies.decision import Decision
from fiesta_allennlp.trainings.listeners import BestModelKeeper, VersionNotes
from fiesta_allennlp.trainings.select import TrainingSelection
from fiesta_allennlp.trainings.settings import Settings
from tests.selections import ORIGIN


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
    runs = finished(directory, *[("a", 0.5)] * len(FINISHED_KINDS), ("a", 0.4))
    failures = tuple(Failure(run.request, kind, "no") for run, kind in zip(runs, FINISHED_KINDS, strict=False))
    history = History(("a",), tuple(runs[len(failures) :]), failures=failures)
    BestModelKeeper(directory).on_state(history, Decision(None))
    assert there(tmp_path) == {runs[-1].request.name}


def test_lost_archives_are_no_trouble_and_the_lowest_score_may_be_the_best(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    history = History(("a",), tuple(finished(directory, ("a", 0.9), ("a", 0.7), ("a", 0.8))))
    directory.archive("a-0").unlink()
    BestModelKeeper(directory, -1).on_state(history, Decision(None))
    assert there(tmp_path) == {"a-1"}
    BestModelKeeper(directory).keep_only([None], history)
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
    TrainingSelection.conclude(selection, history, Decision(best, stopped_by=stopped_by))
    assert there(tmp_path) == kept


REQUEST = make_request(0, "a", 1, shared_splits=True)


def test_the_table_of_a_trial_has_the_memory_of_a_gpu_where_a_run_used_one() -> None:
    def made(name: str, peaks: Dict[str, float]) -> Evaluation:
        request = make_request(1, name, 0, shared_splits=True)
        return Evaluation(request, 0.5, "f1", 1.0, metrics={PEAK_MEMORY: 1.25, **peaks})

    on_gpu, on_cpu = made("a", {"peak_gpu_0_memory_MB": 1536.0, "peak_gpu_1_memory_MB": 512.0}), made("b", {})
    failed = Failure(make_request(1, "c", 0, shared_splits=True), "error", "no such luck")
    table = trial_table([on_gpu, on_cpu, failed], "f1")
    assert table.headings[3:] == ["memory (GiB)", "GPU memory (GiB)"]
    assert [row[3:] for row in table.rows] == [["1.25", "1.50"], ["1.25", "-"], ["-", "-"]]
    assert len(trial_table([on_cpu, failed], "f1").headings) == 4


@pytest.mark.parametrize("is_resumed", [True, False])
def test_other_versions_are_noted_once_when_their_first_run_comes(tmp_path: Path, is_resumed: bool) -> None:
    console = Console(file=StringIO(), width=200)
    first, second = (replace(run, origin=ORIGIN) for run in finished(RunDirectory(tmp_path), ("a", 0.5), ("a", 0.6)))
    notes = VersionNotes(console)
    notes.on_state(History(("a",), (first,) if is_resumed else ()), Decision(None))
    if not is_resumed:
        notes.on_outcome(first)
    notes.on_outcome(replace(second, origin=replace(ORIGIN, host="node2")))
    notes.on_outcome(Failure(second.request, "error", "its machine is unknown"))
    assert console.file.getvalue() == ""
    for host in ("node3", "node4"):
        notes.on_outcome(replace(second, origin=replace(ORIGIN, host=host, gpu="", python="3.13.0")))
    assert console.file.getvalue() == (
        "Note: a-1: Runs have different versions, which can change scores: Python 3.11.7 on node1 (GPU 0) and 3.13.0 "
        "on node3.\n"
    )
