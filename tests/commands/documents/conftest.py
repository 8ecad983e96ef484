"""What the tests of `fiesta-documents` share."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, List, Sequence

import pytest

from tests.commands.conftest import Call
from tests.document_systems import write_documents, write_program

QUICK = ["--belief", "student_t", "--metric", "accuracy", "--seed", "1"]
"""A belief that is fast, a metric that is easy to work out, and always the same order of documents."""

DEFAULT = {"type": "paired_measure"}
"""The default belief, but for the metric that it is about."""


@pytest.fixture
def call(capsys: pytest.CaptureFixture) -> Call:
    return Call("documents", capsys)


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    return write_documents(tmp_path / "documents.jsonl", 60)


@dataclass(frozen=True)
class Choices:
    """Selections among systems over the documents in one directory."""

    root: Path
    documents: Path
    run: Path
    call: Call

    def program(self, name: str, **options: Any) -> str:
        return write_program(self.root, name, **options)

    def programs(self, *, a: int = 20, b: int = 2, **options: Any) -> List[str]:
        """`a` and `b`, each wrong for the documents whose number this divides."""
        return [self.program("a", wrong=a, **options), self.program("b", wrong=b, **options)]

    def typed(self, systems: Sequence[Any], *options: Any) -> List[Any]:
        return [*systems, "--documents", self.documents, "-s", self.run, *QUICK, *options]

    def begin(self, systems: Sequence[Any], *options: Any) -> str:
        return self.call.done(*self.typed(systems, *options))


@pytest.fixture
def choices(tmp_path: Path, documents: Path, run: Path, call: Call) -> Choices:
    return Choices(tmp_path, documents, run, call)
