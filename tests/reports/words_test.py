from io import StringIO
from typing import Any, Dict, Optional

import pytest
from rich.console import Console

from fiesta_allennlp.documents.summary import SystemSummary
from fiesta_allennlp.replays.summary import summarise_replay
from fiesta_allennlp.reports.tables import replay_table
from fiesta_allennlp.reports.words import replay_in_words, selection_in_words
from tests.replays.summary_test import REPLAY


def entry(
    name: str, measure: Optional[float], num_documents: int = 2, *, failures: int = 0, withdrawn: bool = False
) -> SystemSummary:
    return SystemSummary(
        name,
        failures=failures,
        withdrawn=withdrawn,
        prob_best=None if withdrawn else 0.25,
        measure=measure,
        num_documents=num_documents,
    )


def ended(best: str, *entries: SystemSummary, strategy: "Dict[str, Any] | None" = None) -> Dict[str, Any]:
    """A selection whose two documents ran out."""
    return {
        "best": best,
        "stopped_by": "documents",
        "metric": "accuracy",
        "strategy": strategy or {"type": "top_two"},
        "documents": {"num_documents": 2, "batch_size": 1},
        "candidates": list(entries),
        "num_failures": 0,
        "num_queries": 0,
        "cost": 0.0,
        "fixed_size": None,
    }


def in_lines(summary: Dict[str, Any]) -> str:
    return "\n".join(selection_in_words(summary))


@pytest.mark.parametrize(
    ("others", "level"),
    [
        ([("b", 0.5, 2)], ""),
        ([("b", 1.0, 2), ("c", 1.0, 2)], ", level with b and c"),
    ],
)
def test_systems_that_are_level_on_the_file_are_named(others: Any, level: str) -> None:
    lost = entry("lost", 1.0, withdrawn=True)
    words = in_lines(ended("a", entry("a", 1.0), *(entry(*other) for other in others), lost))
    assert words.startswith(
        f"The systems answered all 2 documents: a is the best on this file, with accuracy 1.0000{level}, after "
    )


def test_systems_that_saw_fewer_documents_are_named() -> None:
    words = in_lines(ended("a", entry("a", 1.0), entry("b", 1.0, 1), entry("c", 1.0, 1, failures=1)))
    assert words.startswith("a is the best of the systems that answered all 2 documents, with accuracy 1.0000, ")
    assert " b saw fewer because they were unlikely to be the best." in words


def test_a_plan_that_drops_systems_says_nothing_of_probabilities() -> None:
    plan = {"type": "sequential_halving", "budget": 3}
    assert " b saw fewer.\n" in in_lines(ended("a", entry("a", 1.0), entry("b", 1.0, 1), strategy=plan))
    words = in_lines(ended("a", entry("a", 1.0, 1), entry("b", None, 0, failures=2), strategy=plan))
    assert words.startswith("No documents are left for the next step of the plan: a leads, with accuracy 1.0000")


@pytest.mark.parametrize(
    ("made_with", "command"),
    [
        ({"evaluations_per_split": 5}, "fiesta plan s.json --evaluations-per-split 5"),
        (
            {"scores": "my scores.csv", "minimise": True, "splits": "official"},
            "fiesta plan 'my scores.csv' --minimise --splits official",
        ),
        ({"scores": "."}, "fiesta plan ."),
        ({"scores": "scores"}, "fiesta plan"),
        ({"restricted": True}, "fiesta plan"),
    ],
)
def test_a_replay_of_few_scores_names_the_plan_of_the_same_scores(made_with: Dict[str, Any], command: str) -> None:
    summary = {**summarise_replay(REPLAY), "fewest_scores": 3, "evaluations_per_split": None, **made_with}
    assert f"larger. {command} includes the uncertainty of a small pilot." in replay_in_words(summary)


def test_the_table_has_a_line_for_every_candidate() -> None:
    console = Console(file=StringIO(), width=80)
    console.print(replay_table(summarise_replay(REPLAY)))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert any(line.split() == ["b", "0.6000", "50.0%"] for line in lines)
    assert any(line.split() == ["c", "0.1000"] for line in lines)
