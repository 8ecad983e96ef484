"""The stopping rule of documents: how many the winner and its nearest rival need."""

from types import SimpleNamespace
from typing import Dict

import numpy as np
import pytest

from fiesta_allennlp.core.records import Decision
from fiesta_allennlp.documents.choice import EnoughDocuments
from fiesta_allennlp.strategies.base import Look
from tests.strategies.histories import history


def missing(stop: EnoughDocuments, counts: Dict[str, int], *, reached: float, confidence: float = 0.95) -> object:
    """`a` is best and `b` its nearest rival."""
    now = history({name: [0.5] * number for name, number in counts.items()})
    decision = Decision(best="a", prob_within_margin={"a": reached, "b": 1 - reached, "c": 0.0})
    posterior = SimpleNamespace(location=np.array([0.7, 0.6, 0.5]), scale=np.full(3, 0.1))
    return stop.missing_runs(now, Look(decision, posterior), confidence)  # type: ignore[arg-type]


def test_the_winner_and_its_nearest_rival_need_enough_documents() -> None:
    few = {"a": 10, "b": 11, "c": 3}
    assert missing(EnoughDocuments(), few, reached=0.94) is None
    assert missing(EnoughDocuments(), few, reached=0.96) == ("a", "a", "b")
    assert missing(EnoughDocuments(), {**few, "a": 12, "b": 12}, reached=0.96) == ()
    assert missing(EnoughDocuments(batch_size=2), few, reached=0.96) == ()


@pytest.mark.parametrize(("confidence", "batch_size", "expected"), [(0.8, 1, 7), (0.95, 1, 12), (0.95, 5, 3)])
def test_the_number_of_queries(confidence: float, batch_size: int, expected: int) -> None:
    """ln 5 / 0.25 = 6.4 and ln 20 / 0.25 = 11.98 documents."""
    assert EnoughDocuments(batch_size=batch_size).least_runs(confidence) == expected
