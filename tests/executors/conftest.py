from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.executors.base import Evaluator, Executor
from fiesta_allennlp.records import Evaluation, Failure
from tests.executors.light import request

Build = Callable[..., Any]


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path / "run")


@pytest.fixture
def build(directory: RunDirectory) -> Iterator[Build]:
    """Build executors of a class in the run directory, and close them after the test."""
    made: List[Executor] = []

    def build_one(kind: Callable[..., Executor], **options: Any) -> Executor:
        made.append(kind(directory, **options))
        return made[-1]

    yield build_one
    for executor in made:
        executor.close()


def failure_of(executor: Executor, evaluator: Evaluator) -> Failure:
    """The failure that comes of a run."""
    executor.submit(evaluator, request(0))
    (outcome,) = executor.completed()
    assert isinstance(outcome, Failure)
    return outcome


def score_of(executor: Executor, evaluator: Evaluator) -> float:
    """The score that comes of a run."""
    executor.submit(evaluator, request(0))
    (outcome,) = executor.completed()
    assert isinstance(outcome, Evaluation), outcome
    return outcome.score
