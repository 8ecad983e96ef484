from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, List

import pytest

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.records import Evaluation, Failure, Outcome
from fiesta_allennlp.running.executor import Evaluator, Executor
from tests.conftest import until
from tests.running.light import PACKAGES, Light, is_running, request

Build = Callable[..., Any]


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path / "run")


@pytest.fixture
def build(directory: RunDirectory) -> Iterator[Build]:
    """Build executors of a class in the run directory, and close them after the test."""
    made: List[Executor] = []

    def build_one(kind: Callable[..., Executor], **options: Any) -> Executor:
        made.append(kind(directory, **{"packages": PACKAGES, **options}))
        return made[-1]

    yield build_one
    for executor in made:
        executor.close()


def given(executor: Any, *whats: str, first: int = 0) -> Any:
    """The executor with these runs submitted, whose replicates count from `first` on, and whose place is beside the run
    directory."""
    for replicate, what in enumerate(whats, start=first):
        executor.submit(Light(what, str(place_of(executor))), request(replicate))
    return executor


def place_of(executor: Any) -> Path:
    return Path(executor.directory.root.parent)


def begun(executor: Any, *whats: str, **options: Any) -> Any:
    """The same once the runs were handed on and none has an outcome yet."""
    assert list(given(executor, *whats, **options).completed(timeout=0)) == []
    return executor


def only_failure(executor: Executor) -> Failure:
    """The failure that is the only outcome."""
    (outcome,) = executor.completed()
    assert isinstance(outcome, Failure)
    return outcome


def failure_of(executor: Executor, evaluator: Evaluator) -> Failure:
    """The failure that comes of a run."""
    executor.submit(evaluator, request(0))
    return only_failure(executor)


def pids_in(path: Path, number: int = 1) -> List[int]:
    """The processes that a run wrote into a file, once there are so many of them."""
    until(lambda: path.exists() and len(path.read_text().split()) == number)
    return [int(pid) for pid in path.read_text().split()]


def until_ended(pids: Iterable[int]) -> None:
    left = list(pids)
    until(lambda: not any(map(is_running, left)))


def scores(outcomes: Iterable[Outcome]) -> List[float]:
    """The scores among outcomes, in order of size."""
    return sorted(outcome.score for outcome in outcomes if isinstance(outcome, Evaluation))


def score_of(executor: Executor, evaluator: Evaluator) -> float:
    """The score that comes of a run."""
    executor.submit(evaluator, request(0))
    (outcome,) = executor.completed()
    assert isinstance(outcome, Evaluation), outcome
    return outcome.score
