import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict

import pytest

from fiesta_allennlp.choosing.beliefs import ModeratedT
from fiesta_allennlp.choosing.strategy import analyse
from fiesta_allennlp.core import directory
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, StoreError
from fiesta_allennlp.core.records import Evaluation
from fiesta_allennlp.core.registry import import_package
from fiesta_allennlp.reports.report_sources import read_directory
from fiesta_allennlp.selecting.results.candidate_result import CandidateResult, FailedRun
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.selecting.store import RunStore
from tests.selections import ENVIRONMENT, METRIC, write_selection

SCORES = {"a": [0.8, 0.9, 0.85], "b": [0.6, 0.7], "c": [0.5, 0.62]}
HERE = {"environments": [ENVIRONMENT]}


def contents(root: Path) -> Dict[str, str]:
    """Every file with a digest, the lock and SQLite's shared memory aside."""
    files = [path for path in sorted(root.rglob("*")) if path.is_file() and path.suffix != ".sqlite-shm"]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_running_selection_is_read_and_left_alone(tmp_path: Path) -> None:
    store = write_selection(tmp_path / "run", SCORES, pending=[("a", 3), ("b", 2)], meta=HERE)
    before = contents(tmp_path)
    source = read_directory(tmp_path / "run")
    assert contents(tmp_path) == before
    assert (source.result.running, source.result.stopped_by, source.is_selection) == (True, None, True)
    assert [e.request.name for e in source.history.evaluations] == ["a-0", "b-0", "c-0", "a-1", "b-1", "c-1", "a-2"]
    assert len(source.history.pending) == 2
    decision = analyse(store.history(max_failures=3), ModeratedT())
    assert {candidate.name: candidate.prob_best for candidate in source.result.candidates} == decision.prob_best
    store.record(Evaluation(source.history.pending[0], 0.8, METRIC))
    assert len(read_directory(tmp_path / "run").history.evaluations) == 8
    store.close()


def written(**candidate: Any) -> Any:
    """What a selection writes that reached its limit of hours."""
    made = Result("a", "max_hours", METRIC, (CandidateResult("a", **candidate),))
    return json.loads(json.dumps(made.content(), default=asdict))


@pytest.mark.parametrize(
    ("summary", "stopped_by"),
    [
        (None, "interrupted"),
        (written(num_evaluations=7), "max_hours"),
        (written(num_evaluations=5), "interrupted"),
        (
            written(num_evaluations=5, failed_runs=(FailedRun("a-3", "score", "0"), FailedRun("a-4", "score", "0"))),
            "max_hours",
        ),
        ([], "interrupted"),
        ({"num_evaluations": "7"}, "interrupted"),
    ],
)
def test_one_that_is_not_at_work_says_why(tmp_path: Path, summary: Any, stopped_by: str) -> None:
    write_selection(tmp_path, SCORES, meta=HERE).close()
    if summary is not None:
        RunDirectory(tmp_path).selection_json.write_text(json.dumps(summary))
    before = contents(tmp_path)
    source = read_directory(tmp_path)
    assert (source.result.running, source.result.stopped_by) == (False, stopped_by)
    assert contents(tmp_path) == before
    assert not RunDirectory(tmp_path).store_log.exists()


def test_one_that_has_stopped_has_the_reason_of_its_strategy(tmp_path: Path) -> None:
    scores = {name: [*row, row[0], row[1]][:4] for name, row in SCORES.items()}
    write_selection(tmp_path, scores, max_evaluations=12, belief="student_t", stop="bayesian").close()
    result = read_directory(tmp_path).result
    assert (result.belief["type"], result.stopped_by, result.running) == ("student_t", "max_evaluations", False)


def test_from_another_machine_a_selection_that_writes_is_running(tmp_path: Path, monkeypatch: Any) -> None:
    store = write_selection(tmp_path, SCORES, meta={"environments": [{**ENVIRONMENT, "host": "elsewhere"}]})
    assert read_directory(tmp_path).result.running
    monkeypatch.setattr(directory, "MAX_SECONDS_OF_SILENCE", -1e9)
    assert not read_directory(tmp_path).result.running
    store.close()


def test_a_package_that_the_store_names_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "of_a_user.py").write_text(
        "from fiesta_allennlp.choosing.beliefs import Belief, StudentT\n"
        "@Belief.register('of_a_user')\n"
        "class OfAUser(StudentT):\n    pass\n"
    )
    write_selection(tmp_path / "run", SCORES, belief="of_a_user", include_package=("of_a_user",)).close()
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match="'of_a_user'.* add --include-package of_a_user"):
        read_directory(tmp_path / "run")
    import_package("of_a_user")
    assert type(read_directory(tmp_path / "run").belief).__name__ == "OfAUser"


def test_a_selection_that_has_not_begun_is_refused(tmp_path: Path) -> None:
    store = RunStore(RunDirectory(tmp_path / "new"), create=True)
    with pytest.raises(StoreError, match="has not begun"):
        read_directory(tmp_path / "new")
    store.close()
