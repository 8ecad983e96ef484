import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from fiesta_allennlp.core.errors import StoreError
from fiesta_allennlp.documents.answers import Answer, AnswerStore, read_charges, sha256_key

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


def test_answers_are_found_by_system_and_question_and_each_selection_pays_for_its_own(
    store: Any, tmp_path: Path
) -> None:
    answers = store("first")
    system, other = sha256_key({"url": "a", "n": 1}), sha256_key({"url": "b"})
    assert system != other and system == sha256_key({"n": 1, "url": "a"})
    assert answers.find_answer(system, QUESTION) is None
    answers.record(system, QUESTION, ANSWER, asker="web", cost=0.5)
    assert answers.find_answer(system, {"number": 1, "text": "a"}) == ANSWER
    assert answers.find_answer(system, {"text": "a", "number": 2}) is None
    assert answers.find_answer(other, QUESTION) is None
    assert (answers.count_answers(system), answers.count_answers(other)) == (1, 0)
    second = store("second")
    path = tmp_path / "answers.sqlite"
    assert second.find_answer(system, QUESTION) == ANSWER and read_charges(path, run="second") == {}
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda k: second.record(system, {"k": k}, ANSWER, asker="other", cost=0.25), range(80)))
    assert read_charges(path, run="second") == {"other": (80, 20.0)}
    assert read_charges(path, run="first") == {"web": (1, 0.5)}  # while it is written


def test_charges_are_read_from_outside_and_nothing_changes(store: Any, tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    assert read_charges(path, run="first") is None
    answers = store("first")
    answers.record(sha256_key({}), QUESTION, ANSWER, asker="web", cost=0.5)
    answers.close()
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert read_charges(path, run="first") == {"web": (1, 0.5)}
    assert read_charges(path, run="other") == {}
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    path.write_bytes(b"no database" * 100)
    assert read_charges(path, run="first") is None


def test_a_file_of_another_kind_is_refused(store: Any, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "answers.sqlite")) as database:
        database.execute("CREATE TABLE other (x)")
    with pytest.raises(StoreError, match="answers.sqlite is not an answers file"):
        store()
    assert [path.name for path in tmp_path.iterdir()] == ["answers.sqlite"], "nothing is left next to it"
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match="cannot use the answers file .*folder"):
        store(path="folder")
