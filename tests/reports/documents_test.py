from typing import Any, Dict, Optional

import pytest

from fiesta_allennlp.reports.documents import documents_in_words


def entry(
    name: str, measure: Optional[float], num_documents: int = 2, *, failures: int = 0, withdrawn: bool = False
) -> Dict[str, Any]:
    return {
        "name": name,
        "measure": measure,
        "num_documents": num_documents,
        "failures": failures,
        "withdrawn": withdrawn,
        "prob_best": None if withdrawn else 0.25,
    }


def ended(best: str, *entries: Dict[str, Any], strategy: "Dict[str, Any] | None" = None) -> Dict[str, Any]:
    """A selection whose two documents ran out."""
    return {
        "best": best,
        "stopped_by": "documents",
        "metric": "accuracy",
        "strategy": strategy or {"type": "ttts"},
        "documents": {"num_documents": 2, "batch_size": 1},
        "candidates": list(entries),
        "num_failures": 0,
        "num_queries": 0,
        "cost": 0.0,
        "fixed_size": None,
    }


@pytest.mark.parametrize(
    ("others", "level"),
    [
        ([("b", 0.5, 2)], ""),
        ([("b", 1.0, 2), ("c", 0.5, 2)], ", level with b"),
        ([("b", 1.0, 2), ("c", 1.0, 2)], ", level with b and c"),
    ],
)
def test_systems_that_are_level_on_the_file_are_named(others: Any, level: str) -> None:
    lost = entry("lost", 1.0, withdrawn=True)
    words = documents_in_words(ended("a", entry("a", 1.0), *(entry(*other) for other in others), lost))
    assert words.startswith(
        f"All 2 documents have been asked about: a is the best on this file, with accuracy 1.0000{level}, after "
    )


def test_systems_that_saw_fewer_documents_are_named() -> None:
    words = documents_in_words(ended("a", entry("a", 1.0), entry("b", 1.0, 1), entry("c", 1.0, 1, failures=1)))
    assert words.startswith(
        "a is the best of the systems that were asked about all 2 documents, with accuracy 1.0000, "
    )
    assert " b saw fewer, for it had become improbable that one of them is the best." in words


def test_a_plan_that_drops_systems_says_nothing_of_probabilities() -> None:
    plan = {"type": "sequential_halving", "budget": 3}
    assert " b saw fewer.\n" in documents_in_words(ended("a", entry("a", 1.0), entry("b", 1.0, 1), strategy=plan))
    words = documents_in_words(ended("a", entry("a", 1.0, 1), entry("b", None, 0, failures=2), strategy=plan))
    assert words.startswith("No documents are left for what the plan asks next: a leads, with accuracy 1.0000, after ")
