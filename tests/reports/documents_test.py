from typing import Any, Dict, Optional

import pytest

from fiesta_allennlp.reports.documents import documents_in_words


def entry(name: str, measure: Optional[float], num_documents: int = 2, *, withdrawn: bool = False) -> Dict[str, Any]:
    return {
        "name": name,
        "measure": measure,
        "num_documents": num_documents,
        "failures": 0,
        "withdrawn": withdrawn,
        "prob_best": None if withdrawn else 0.25,
    }


@pytest.mark.parametrize(
    ("others", "level"),
    [
        ([("b", 0.5, 2)], ""),
        ([("b", 1.0, 1)], ""),
        ([("b", 1.0, 2), ("c", 0.5, 2)], ", level with b"),
        ([("b", 1.0, 2), ("c", 1.0, 2)], ", level with b and c"),
    ],
)
def test_systems_that_are_level_on_the_file_are_named(others: Any, level: str) -> None:
    summary = {
        "best": "a",
        "stopped_by": "documents",
        "metric": "accuracy",
        "documents": {"num_documents": 2, "batch_size": 1},
        "candidates": [
            entry("a", 1.0),
            *(entry(*other) for other in others),
            entry("lost", 1.0, withdrawn=True),
        ],
        "num_failures": 0,
        "num_queries": 0,
        "cost": 0.0,
        "fixed_size": None,
    }
    words = documents_in_words(summary)
    assert f", with accuracy 1.0000{level}, after " in words
    if all(other[2] == 2 for other in others):
        assert words.startswith("All 2 documents have been asked about: a is the best on this file, with")
    else:
        assert words.startswith("a is the best of the systems that were asked about all 2 documents, with")
        assert "b saw fewer, for it had become improbable that the best one is among them." in words
