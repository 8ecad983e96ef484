import threading
import time
from pathlib import Path
from typing import Dict, Iterator

import pytest

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.documents.systems.base import Unanswered, Unavailable
from fiesta_allennlp.errors import StoreError
from fiesta_allennlp.executors.base import Evaluator
from fiesta_allennlp.executors.threads import ThreadExecutor
from fiesta_allennlp.records import Evaluation, Failure, Request


def request(name: str, replicate: int = 0) -> Request:
    return Request(name, replicate, 1, 2, 3, 4)


class Scripted(Evaluator):
    """Waits for leave where a name has a gate, and then does as its name says."""

    def __init__(self) -> None:
        self.gates: Dict[str, threading.Event] = {}
        self.begun: "list[str]" = []

    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        self.begun.append(request.name)
        if request.candidate in self.gates:
            assert self.gates[request.candidate].wait(60)
        if request.candidate == "broken":
            raise ValueError("it broke")
        if request.candidate == "half":
            raise Unanswered("it answered \ud83d and ☃")
        if request.candidate == "late":
            raise TimeoutError("it was late")
        if request.candidate == "down":
            raise Unavailable("nobody is there")
        if request.candidate == "full":
            raise StoreError("no room")
        return Evaluation(request, score=float(request.replicate), metric="m")


@pytest.fixture
def evaluator() -> Iterator[Scripted]:
    scripted = Scripted()
    yield scripted
    for gate in scripted.gates.values():
        gate.set()


def test_outcomes_in_order_of_finishing(tmp_path: Path, evaluator: Scripted) -> None:
    evaluator.gates["a"] = threading.Event()
    executor = ThreadExecutor(RunDirectory(tmp_path), workers=2)
    executor.submit(evaluator, request("a"))
    executor.submit(evaluator, request("b", 7))
    first = next(executor.completed())
    assert isinstance(first, Evaluation) and (first.request.candidate, first.score) == ("b", 7.0)
    evaluator.gates["a"].set()
    assert [outcome.request.candidate for outcome in executor.completed()] == ["a"]
    executor.close()


def test_errors_are_failures_of_their_kind(tmp_path: Path, evaluator: Scripted) -> None:
    executor = ThreadExecutor(RunDirectory(tmp_path))
    for name in ("broken", "late", "down", "good"):
        executor.submit(evaluator, request(name))
    broken, late, down, good = executor.completed()
    assert isinstance(broken, Failure) and (broken.kind, broken.error) == ("error", "ValueError: it broke")
    assert broken.started_at
    assert isinstance(late, Failure) and late.kind == "timeout"
    assert isinstance(down, Failure) and (down.kind, down.error) == ("machine", "nobody is there")
    assert isinstance(good, Evaluation)
    executor.close()


def test_what_cannot_be_written_down_ends_it(tmp_path: Path, evaluator: Scripted) -> None:
    executor = ThreadExecutor(RunDirectory(tmp_path))
    executor.submit(evaluator, request("full"))
    with pytest.raises(StoreError, match="no room"):
        next(executor.completed())
    executor.close()


def test_no_more_at_once_than_workers(tmp_path: Path, evaluator: Scripted) -> None:
    evaluator.gates["a"] = threading.Event()
    executor = ThreadExecutor(RunDirectory(tmp_path), workers=1)
    executor.submit(evaluator, request("a"))
    executor.submit(evaluator, request("b"))
    while not evaluator.begun:
        time.sleep(0.01)
    assert list(executor.completed(timeout=0.2)) == []
    assert evaluator.begun == ["a-0"]
    evaluator.gates["a"].set()
    assert [outcome.request.candidate for outcome in executor.completed()] == ["a", "b"]
    executor.close()


def test_nothing_comes_of_what_is_abandoned(tmp_path: Path, evaluator: Scripted) -> None:
    evaluator.gates["a"] = threading.Event()
    executor = ThreadExecutor(RunDirectory(tmp_path), workers=1)
    for name in ("a", "b", "c"):
        executor.submit(evaluator, request(name))
    while not evaluator.begun:
        time.sleep(0.01)
    executor.abandon([request("a"), request("b")])
    evaluator.gates["a"].set()
    assert [outcome.request.candidate for outcome in executor.completed()] == ["c"]
    assert evaluator.begun == ["a-0", "c-0"]
    executor.close()


def test_closing_waits_for_what_is_under_way_and_begins_nothing(tmp_path: Path, evaluator: Scripted) -> None:
    gate = evaluator.gates["a"] = threading.Event()
    executor = ThreadExecutor(RunDirectory(tmp_path), workers=1, on_stop=gate.set)
    for name in ("a", "b"):
        executor.submit(evaluator, request(name))
    while not evaluator.begun:
        time.sleep(0.01)
    executor.close()
    executor.close()
    assert evaluator.begun == ["a-0"]
    assert list(executor.completed()) == []


def test_a_failure_over_half_a_character_can_be_written_down(tmp_path: Path, evaluator: Scripted) -> None:
    executor = ThreadExecutor(RunDirectory(tmp_path))
    executor.submit(evaluator, request("half"))
    (outcome,) = executor.completed()
    assert isinstance(outcome, Failure)
    assert outcome.error == r"it answered \ud83d and ☃"
    executor.close()
