"""Paths of few points for the figures of invented reports: each point costs a posterior."""

import pytest

from fiesta_allennlp.reports import record


@pytest.fixture(autouse=True)
def few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "MAX_PATH_POINTS", 8)
