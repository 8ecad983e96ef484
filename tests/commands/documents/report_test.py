"""`fiesta-report` on what `fiesta-documents` left."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Callable, Dict

import pytest

from fiesta_allennlp import report
from fiesta_allennlp.core.errors import StoreError
from fiesta_allennlp.documents.document_selection import DocumentsResult
from fiesta_allennlp.reports.words import selection_in_words


@pytest.fixture
def made(golden_copy: Callable[[str], Path]) -> Path:
    return golden_copy("documents")


def files(root: Path) -> Dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_report_tells_what_the_selection_told(made: Path, tmp_path: Path) -> None:
    before = files(made)
    told = report(made, output=tmp_path / "report")
    assert files(made) == before
    for candidate in told.result.candidates:
        assert candidate.measure is not None and candidate.interval is not None
        assert candidate.interval[0] < candidate.measure <= candidate.interval[1]
    assert told.decision == selection_in_words(DocumentsResult.read(made))
    there = {path.name for path in (tmp_path / "report").rglob("*") if path.is_file()}
    assert there == {"report.html", "table.tex", "table.csv", "scores.csv", "path.pdf"}


def test_without_the_answers_the_costs_are_unknown(made: Path) -> None:
    (made / "answers.sqlite").unlink()
    told = report(made)
    a = told.candidate("a")
    assert (a.num_queries, a.cost) == (None, None)
    assert not any("queries" in sentence or "query" in sentence for sentence in told.decision)


def test_a_store_without_the_facts_of_its_documents_is_refused(made: Path) -> None:
    with closing(sqlite3.connect(made / "store.sqlite")) as database:
        assert database.execute("DELETE FROM meta WHERE key = 'document_facts'").rowcount == 1
        database.commit()
    with pytest.raises(StoreError, match="cannot be read"):
        report(made)
