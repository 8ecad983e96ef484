import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from fiesta_allennlp.documents.answers import Answer, AnswerStore, read_charges
from fiesta_allennlp.errors import StoreError
from tests.warm import Command

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


def test_charges_are_read_from_outside_and_nothing_changes(store: Any, tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    assert read_charges(path, run="first") is None
    answers = store("first")
    answers.keep(answers.add_system({}), QUESTION, ANSWER, asker="web", cost=0.5)
    assert read_charges(path, run="first") == {"web": (1, 0.5)}  # while it is written
    answers.close()
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert read_charges(path, run="first") == {"web": (1, 0.5)}
    assert read_charges(path, run="other") == {}
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    path.write_bytes(b"no database" * 100)
    assert read_charges(path, run="first") is None


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


ANOTHER_PROCESS = """
import sys, time
from pathlib import Path
from fiesta_allennlp.documents.answers import AnswerStore
answers = AnswerStore(Path(sys.argv[1]), run="other")
with answers.taking(sys.argv[2], {"text": "a", "number": 1}, given_up=lambda: False):
    print("taken", flush=True)
    time.sleep(600)
"""


def test_a_question_is_taken_by_one_process_at_a_time_until_that_ends_in_whatever_way(
    store: Any, tmp_path: Path
) -> None:
    answers = store()
    system = answers.add_system({"url": "a"})
    other = Command(["-c", ANOTHER_PROCESS, tmp_path / "answers.sqlite", system])
    assert other.stdout.readline() == "taken\n"
    with answers.taking(system, QUESTION, given_up=lambda: True) as taken:
        assert not taken
    with answers.taking(system, {"text": "b"}, given_up=lambda: True) as taken:
        assert taken
    other.kill()
    other.wait()
    with answers.taking(system, QUESTION, given_up=lambda: False) as taken:
        assert taken


def test_a_question_is_taken_by_one_thread_at_a_time(store: Any) -> None:
    answers = store()
    with answers.taking("s", QUESTION, given_up=lambda: False) as taken:
        assert taken
        with answers.taking("s", QUESTION, given_up=lambda: True) as again:
            assert not again
        with answers.taking("other", QUESTION, given_up=lambda: True) as other:
            assert other
    with answers.taking("s", QUESTION, given_up=lambda: True) as taken:
        assert taken


def test_a_file_of_another_kind_is_refused(store: Any, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "answers.sqlite")) as database:
        database.execute("CREATE TABLE other (x)")
    with pytest.raises(StoreError, match="not an answers file, or one from another version"):
        store()
    assert [path.name for path in tmp_path.iterdir()] == ["answers.sqlite"], "nothing was left beside it"
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match=r"cannot be used: .*Free some space or fix its permissions"):
        store(path="folder")
