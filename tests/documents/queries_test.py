"""The evaluator over systems in this process: what is asked, counted, kept and said."""

import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Callable, Iterator, List

import numpy as np
import pytest

from fiesta_allennlp.core.errors import StoreError
from fiesta_allennlp.core.records import Request
from fiesta_allennlp.documents.annotated_documents import Classification, Document, Item, Spans, Task
from fiesta_allennlp.documents.queries import (
    Answer,
    AnswerStore,
    CachedSystem,
    DocumentQueries,
    read_charges,
    sha256_key,
)
from fiesta_allennlp.documents.system import OutOfTime, System, Unanswered


class Scripted(System):
    """Gives the answers of a function."""

    def __init__(self, function: Callable[[Any], Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.function = function
        self.asked: List[Any] = []

    def ask(self, question: Any) -> Any:
        self.asked.append(question)
        return self.function(question)


def document(name: str, *golds: Any) -> Document:
    items = tuple(Item({"text": f"{name}{i}"}, gold) for i, gold in enumerate(golds))
    if len(items) == 1:
        return Document(name, 1, items[0].fields, items, has_items=False)
    return Document(name, 1, {"items": [dict(item.fields) for item in items]}, items, has_items=True)


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Callable[..., DocumentQueries]]:
    stores = []

    def make(system: System, *documents: Document, task: "Task | None" = None, batch_size: int = 1) -> DocumentQueries:
        task = task or Classification()
        task.check([item.gold for one in documents for item in one.items])
        stores.append(AnswerStore(tmp_path / "answers.sqlite", run="run"))
        orders, systems = {"s": np.arange(len(documents))[::-1]}, {"s": CachedSystem("s", system, stores[-1])}
        given = {"orders": orders, "batch_size": batch_size, "cached_systems": systems}
        return DocumentQueries(documents=documents, task=task, **given)

    yield make
    for store in stores:
        store.close()


def request(replicate: int) -> Request:
    return Request("s", replicate, 1, 2, 3, 4)


A, B, C = document("a", "x"), document("b", "y"), document("c", "x", "y", "y")


def test_a_replicate_is_the_next_document_of_the_order_or_the_next_batch(build: Any, tmp_path: Path) -> None:
    system = Scripted(lambda question: {"label": "x"})
    queries = build(system, A, B)
    first, second = (queries.evaluate(request(k), tmp_path) for k in (0, 1))
    assert system.asked == [{"text": "b0"}, {"text": "a0"}]
    assert (first.score, second.score) == (0.0, 1.0)
    assert first.metrics["count:y>x"] == 1.0 and len(first.metrics) == 6
    assert first.started_at and first.seconds >= 0
    batches = build(Scripted(lambda question: "x"), A, B, document("c", "x"), batch_size=2)
    first, second = (batches.evaluate(request(k), tmp_path).metrics for k in range(2))
    assert (first["count:x>x"], first["count:y>x"], sum(second.values())) == (1, 1, 1)


def test_a_document_of_items_is_one_question_or_one_for_each(build: Any, tmp_path: Path) -> None:
    whole = Scripted(lambda question: {"items": [{"label": "x"}, "y", {"label": "x"}]})
    evaluation = build(whole, C).evaluate(request(0), tmp_path)
    assert whole.asked == [{"items": [{"text": "c0"}, {"text": "c1"}, {"text": "c2"}]}]
    assert sum(evaluation.metrics.values()) == 3 and evaluation.metrics["count:y>x"] == 1
    each = Scripted(lambda question: {"label": "x" if question["text"] == "c0" else "y"}, each="item", version="2")
    assert build(each, C).evaluate(request(0), tmp_path).score == 1.0
    assert each.asked == [{"text": "c0"}, {"text": "c1"}, {"text": "c2"}]


def test_kept_answers_are_not_asked_again_even_if_unusable_but_missing_ones_are(build: Any, tmp_path: Path) -> None:
    system = Scripted(lambda question: {"label": "x"}, cost=2.0)
    scores = [build(system, A, B).evaluate(request(0), tmp_path).score for _ in range(2)]
    assert (scores, len(system.asked)) == ([0.0, 0.0], 1)
    wrong = Scripted(lambda question: {"lable": "x"}, version="2")
    for _ in range(2):
        with pytest.raises(Unanswered, match="system 's', document 'b': .*'label'.*lable"):
            build(wrong, A, B).evaluate(request(0), tmp_path)
    assert len(wrong.asked) == 1

    def fail_once(question: Any) -> Any:
        if len(late.asked) == 1:
            raise OutOfTime("nothing came")
        return "y"

    late = Scripted(fail_once, version="3")
    with pytest.raises(OutOfTime, match="system 's', document 'b': "):
        build(late, A, B).evaluate(request(0), tmp_path)
    assert build(late, A, B).evaluate(request(0), tmp_path).score == 1.0


@pytest.mark.parametrize(
    ("answer", "named"),
    [({"items": ["x"]}, "list of 3"), ("x", "list of 3"), (["x", "y", {}], "'label'"), (["x", "y", 1.5], "is 1.5")],
)
def test_answers_of_another_shape(build: Any, tmp_path: Path, answer: Any, named: str) -> None:
    with pytest.raises(Unanswered, match=named):
        build(Scripted(lambda question: answer), C).evaluate(request(0), tmp_path)


def test_a_place_in_the_answer_other_labels_and_json_in_a_text(build: Any, tmp_path: Path) -> None:
    out = {"out": [{"text": " POS "}]}
    body = {"q": "<${text}>", "n": None}
    nested = Scripted(lambda question: out, answer="out.0.text", labels={"POS": "x"}, body=body)
    assert build(nested, A, B).evaluate(request(1), tmp_path).score == 1.0
    assert nested.asked == [{"q": "<a0>", "n": None}]
    missing = Scripted(lambda question: {"out": []}, answer="out.0.text", version="2")
    with pytest.raises(Unanswered, match="'out.0.text' not found"):
        build(missing, A, B).evaluate(request(0), tmp_path)
    gold = Spans().gold("spans", [[0, 2, "P"]])
    in_text = Scripted(lambda question: {"text": '{"spans": [[0, 2, "P"]]}'}, answer="text", version="3")
    assert build(in_text, document("d", gold), task=Spans()).evaluate(request(0), tmp_path).score == 1.0


def test_a_system_is_asked_one_question_at_a_time_and_none_twice(build: Any, tmp_path: Path) -> None:
    only = threading.Lock()

    def slow(question: Any) -> Any:
        assert only.acquire(blocking=False), "two at once"
        time.sleep(0.01)
        only.release()
        return "x"

    system = Scripted(slow)
    documents = [document(f"d{i}", "xy"[i % 2]) for i in range(8)]
    queries = build(system, *documents, documents[0], documents[0])
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda k: queries.evaluate(request(k), tmp_path), range(10)))
    assert (len(done), len(system.asked)) == (10, 8)


def test_nothing_is_asked_after_the_stop(build: Any, tmp_path: Path) -> None:
    """Neither by those that wait for a place at the system, nor by those that wait for somebody else's answer."""
    asked, go_on = threading.Event(), threading.Event()

    def answer(question: Any) -> str:
        asked.set()
        go_on.wait(timeout=30)
        return "x"

    system = Scripted(answer)
    queries = build(system, *(document(f"d{i}", "xy"[i % 2]) for i in range(6)))
    with ThreadPoolExecutor(6) as pool:
        futures = [pool.submit(queries.evaluate, request(k), tmp_path) for k in range(6)]
        assert asked.wait(timeout=30)
        queries.cached_systems["s"].answers.stopping.set()
        go_on.set()
    assert len(system.asked) == 1
    assert sum(future.exception() is None for future in futures) == 1
    assert {str(type(future.exception()).__name__) for future in futures if future.exception()} == {"Unanswered"}


def test_answers_that_are_no_gold_label_are_counted(build: Any, tmp_path: Path) -> None:
    system = Scripted(lambda question: {"items": ["X", "y", "X" * 99]})
    metrics = build(system, C).evaluate(request(0), tmp_path).metrics
    unknown = {key: number for key, number in metrics.items() if key.startswith("unknown:")}
    assert list(unknown.values()) == [1, 1] and unknown["unknown:X"] == 1 and max(map(len, unknown)) < 80
    binary = build(system, C, task=Classification(positive_label="x")).evaluate(request(0), tmp_path)
    assert binary.metrics["unknown:X"] == 1


ANSWER = Answer({"label": "x"}, 1.5, "2020-01-01T00:00:00.000+00:00")
QUESTION = {"text": "a", "number": 1}


@pytest.fixture
def answer_store(tmp_path: Path) -> Iterator[Callable[..., AnswerStore]]:
    opened = []

    def build(run: str = "first", path: str = "answers.sqlite") -> AnswerStore:
        opened.append(AnswerStore(tmp_path / path, run=run))
        return opened[-1]

    yield build
    for one in opened:
        one.close()


def test_answers_are_found_by_system_and_question_and_each_selection_pays_for_its_own(
    answer_store: Any, tmp_path: Path
) -> None:
    answers = answer_store("first")
    system, other = sha256_key({"url": "a", "n": 1}), sha256_key({"url": "b"})
    assert system != other and system == sha256_key({"n": 1, "url": "a"})
    assert answers.find_answer(system, QUESTION) is None
    answers.record(system, QUESTION, ANSWER, asker="web", cost=0.5)
    assert answers.find_answer(system, {"number": 1, "text": "a"}) == ANSWER
    assert answers.find_answer(system, {"text": "a", "number": 2}) is None
    assert answers.find_answer(other, QUESTION) is None
    second = answer_store("second")
    path = tmp_path / "answers.sqlite"
    assert second.find_answer(system, QUESTION) == ANSWER and read_charges(path, run="second") == {}
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda k: second.record(system, {"k": k}, ANSWER, asker="other", cost=0.25), range(80)))
    assert read_charges(path, run="second") == {"other": (80, 20.0)}
    assert read_charges(path, run="first") == {"web": (1, 0.5)}  # while it is written


def test_charges_are_read_from_outside_and_nothing_changes(answer_store: Any, tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    assert read_charges(path, run="first") is None
    answers = answer_store("first")
    answers.record(sha256_key({}), QUESTION, ANSWER, asker="web", cost=0.5)
    answers.close()
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert read_charges(path, run="first") == {"web": (1, 0.5)}
    assert read_charges(path, run="other") == {}
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    path.write_bytes(b"no database" * 100)
    assert read_charges(path, run="first") is None


def test_a_file_of_another_kind_is_refused(answer_store: Any, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "answers.sqlite")) as database:
        database.execute("CREATE TABLE other (x)")
    with pytest.raises(StoreError, match="answers.sqlite is not"):
        answer_store()
    assert [path.name for path in tmp_path.iterdir()] == ["answers.sqlite"], "nothing is left next to it"
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match="the answers file .*folder"):
        answer_store(path="folder")
