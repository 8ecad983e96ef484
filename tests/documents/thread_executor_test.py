import threading
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Callable, Iterable, Iterator, List

import pytest

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import StoreError
from fiesta_allennlp.core.records import Evaluation, Failure, Outcome, Request
from fiesta_allennlp.documents.queries import ThreadExecutor
from fiesta_allennlp.documents.system import Unanswered
from fiesta_allennlp.running.executor import Evaluator
from tests.conftest import until

Build = Callable[..., ThreadExecutor]

RAISED = {
    "broken": ValueError("it broke"),
    "half": Unanswered("it answered \ud83d and ☃"),
    "late": TimeoutError("it was late"),
    "full": StoreError("no room"),
}


def request(name: str, replicate: int = 0) -> Request:
    return Request(name, replicate, 1, 2, 3, 4)


def submit(executor: ThreadExecutor, evaluator: "Scripted", *names: str) -> None:
    for name in names:
        executor.submit(evaluator, request(name, 7))
    until(lambda: bool(evaluator.begun))


def names(outcomes: Iterable[Outcome]) -> List[str]:
    return [outcome.request.candidate for outcome in outcomes]


class Scripted(Evaluator):
    """Waits for leave for `a`, and raises what a name stands for."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.begun: List[str] = []
        self.ended: List[str] = []

    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        self.begun.append(request.candidate)
        assert request.candidate != "a" or self.gate.wait(60)
        if request.candidate in RAISED:
            raise RAISED[request.candidate]
        self.ended.append(request.candidate)
        return Evaluation(request, score=float(request.replicate), metric="m")


@pytest.fixture
def evaluator() -> Iterator[Scripted]:
    scripted = Scripted()
    yield scripted
    scripted.gate.set()


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Build]:
    """Build executors that are closed after the test."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(
            closing(ThreadExecutor(RunDirectory(tmp_path), **{"workers": 1, **options}))
        )


def test_outcomes_in_order_of_finishing_and_no_more_at_once_than_workers(build: Build, evaluator: Scripted) -> None:
    executor = build(workers=2)
    submit(executor, evaluator, "a", "b")
    first = next(executor.completed())
    assert isinstance(first, Evaluation) and (first.request.candidate, first.score) == ("b", 7.0)
    submit(executor, evaluator, "c", "d")
    assert names(executor.completed(timeout=0.2)) == ["c", "d"]
    evaluator.gate.set()
    assert names(executor.completed()) == ["a"]
    evaluator.gate.clear()
    alone = build(workers=1)
    submit(alone, evaluator, "a", "b")
    assert list(alone.completed(timeout=0.2)) == []
    assert sorted(evaluator.begun[:2]) == ["a", "b"] and evaluator.begun[2:] == ["c", "d", "a"]
    evaluator.gate.set()
    assert names(alone.completed()) == ["a", "b"]


def test_errors_are_failures_of_their_kind_unless_they_cannot_be_recorded(build: Build, evaluator: Scripted) -> None:
    executor = build()
    submit(executor, evaluator, "broken", "late", "half", "good")
    *failures, good = executor.completed()
    assert isinstance(good, Evaluation)
    assert [(each.kind, each.error) for each in failures if isinstance(each, Failure) and each.started_at] == [
        ("error", "ValueError: it broke"),
        ("timeout", "TimeoutError: it was late"),
        ("error", r"it answered \ud83d and ☃"),
    ]
    submit(executor, evaluator, "full")
    with pytest.raises(StoreError, match="no room"):
        next(executor.completed())


def test_what_is_abandoned_or_closed_does_not_begin(build: Build, evaluator: Scripted) -> None:
    executor = build(workers=1)
    submit(executor, evaluator, "a", "b", "c")
    executor.abandon([request("a", 7), request("b", 7)])
    evaluator.gate.set()
    assert names(executor.completed()) == evaluator.begun[1:] == ["c"]
    evaluator.gate.clear()
    closed, evaluator.begun = build(workers=1, on_stop=evaluator.gate.set), []
    submit(closed, evaluator, "a", "b")
    for _ in range(2):
        closed.close()  # waits for what is under way
    assert evaluator.begun == ["a"] and list(closed.completed()) == []


def test_closing_waits_for_an_abandoned_run_whose_answer_may_be_paid_for(build: Build, evaluator: Scripted) -> None:
    executor = build(workers=1, on_stop=evaluator.gate.set)
    submit(executor, evaluator, "a")
    executor.abandon([request("a", 7)])
    executor.close()
    assert evaluator.ended == ["a"] and list(executor.completed()) == []
