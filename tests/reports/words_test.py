from typing import Any, Dict, Optional

import pytest
from rich.console import Console

from fiesta_allennlp.documents.summary import SystemSummary
from fiesta_allennlp.replays.summary import summarise_replay
from fiesta_allennlp.reports.tables import replay_table
from fiesta_allennlp.reports.words import replay_in_words, selection_in_words
from tests.replays.replay_test import REPLAY


def entry(name: str, measure: Optional[float], num_documents: int = 2, **options: Any) -> SystemSummary:
    prob_best = None if options.get("withdrawn") else 0.25
    return SystemSummary(name, measure=measure, num_documents=num_documents, prob_best=prob_best, **options)


def ended(best: str, *entries: SystemSummary, strategy: Any = None) -> Dict[str, Any]:
    """A selection whose two documents ran out."""
    strategy = strategy or {"type": "top_two"}
    documents, none = {"num_documents": 2, "batch_size": 1}, {"num_failures": 0, "num_queries": 0, "cost": 0.0}
    ending = {"best": best, "stopped_by": "documents", "metric": "accuracy", "strategy": strategy, "fixed_size": None}
    return {**ending, **none, "documents": documents, "candidates": list(entries)}


def in_lines(summary: Dict[str, Any]) -> str:
    return "\n".join(selection_in_words(summary))


def test_systems_that_are_level_or_saw_fewer_documents_are_named() -> None:
    a, lost = entry("a", 1.0), entry("lost", 1.0, withdrawn=True)
    through = "answered all 2 documents: a is the best on this file, with accuracy 1.0000"
    assert f"{through}, after " in in_lines(ended("a", a, entry("b", 0.5), lost))
    assert f"{through}, level with b and c, after " in in_lines(ended("a", a, entry("b", 1.0), entry("c", 1.0), lost))
    fewer = in_lines(ended("a", a, entry("b", 1.0, 1), entry("c", 1.0, 1, failures=1)))
    assert fewer.startswith("a is the best of the systems that answered all 2 documents, with accuracy 1.0000, ")
    assert " b saw fewer because they were unlikely to be the best." in fewer
    # A plan that drops systems says nothing of probabilities.
    plan = {"type": "sequential_halving", "budget": 3}
    assert " b saw fewer.\n" in in_lines(ended("a", a, entry("b", 1.0, 1), strategy=plan))
    words = in_lines(ended("a", entry("a", 1.0, 1), entry("b", None, 0, failures=2), strategy=plan))
    assert "the next step of the plan: a leads, with accuracy 1.0000" in words


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
    with (console := Console(width=80)).capture() as shown:
        console.print(replay_table(summarise_replay(REPLAY)))
    rows = [line.split() for line in shown.get().splitlines()]
    assert ["b", "0.6000", "50.0%"] in rows and ["c", "0.1000"] in rows
