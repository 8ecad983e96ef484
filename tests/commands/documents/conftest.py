"""What the tests of `fiesta-documents` share."""

from pathlib import Path
from typing import Callable

import pytest

from tests.commands.conftest import Call
from tests.document_systems import write_documents

QUICK = ["--belief", "student_t", "--metric", "accuracy", "--seed", "1"]
"""A belief that is fast, a metric that is easy to work out, and always the same order of documents."""

LEARNED = {"type": "dirichlet_f_measure", "learn_concentration": True}
"""The default belief, but for the metric that it is about."""


@pytest.fixture
def call(in_process: Callable[..., Call]) -> Call:
    return in_process("documents")


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    return write_documents(tmp_path / "documents.jsonl", 60)
