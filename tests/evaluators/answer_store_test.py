import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from fiesta_allennlp.errors import StoreError
from fiesta_allennlp.evaluators.answer_store import Answer, AnswerStore

ANSWER = Answer({"label": "x"}, 1.5, "2020-01-01T00:00:00.000+00:00")
QUESTION = {"text": "a", "number": 1}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Callable[..., AnswerStore]]:
    opened = []

    def build(run: str = "first", path: str = "answers.sqlite") -> AnswerStore:
        opened.append(AnswerStore(tmp_path / path, run=run))
        return opened[-1]

    yield build
    for one in opened:
        one.close()


def test_answers_are_found_by_system_and_question(store: Any) -> None:
    answers = store()
    system, other = answers.add_system({"url": "a"}), answers.add_system({"url": "b"})
    assert system != other == answers.add_system({"url": "b"})
    assert answers.find(system, QUESTION) is None
    answers.keep(system, QUESTION, ANSWER, asker="web", cost=0.5)
    assert answers.find(system, {"number": 1, "text": "a"}) == ANSWER
    assert answers.find(system, {"text": "a", "number": 2}) is None
    assert answers.find(other, QUESTION) is None
    assert (answers.num_kept(system), answers.num_kept(other)) == (1, 0)


def test_each_selection_pays_for_its_own_questions_alone(store: Any) -> None:
    first = store("first")
    system = first.add_system({"url": "a"})
    first.keep(system, QUESTION, ANSWER, asker="web", cost=0.5)
    second = store("second")
    assert second.find(system, QUESTION) == ANSWER
    assert second.charges() == {}
    second.keep(system, {"text": "b"}, ANSWER, asker="other", cost=0.25)
    assert second.charges() == {"other": (1, 0.25)}
    assert first.charges() == {"web": (1, 0.5)}
    again = store("first")
    assert again.charges() == {"web": (1, 0.5)}


def test_many_threads_write(store: Any) -> None:
    answers = store()
    system = answers.add_system({})

    def write(number: int) -> None:
        for k in range(20):
            answers.keep(system, {"n": number, "k": k}, ANSWER, asker="web", cost=1.0)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers.charges() == {"web": (80, 80.0)}


def test_a_file_of_another_kind_is_refused(store: Any, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "answers.sqlite")) as database:
        database.execute("CREATE TABLE other (x)")
    with pytest.raises(StoreError, match="no file of answers, or one of another version"):
        store()
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match=r"cannot be used: .*Make room or mend its rights"):
        store(path="folder")
