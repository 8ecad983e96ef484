"""Sentences, and what to write in a paper, on invented reports and on selections that were made."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Optional

import pytest

from fiesta_allennlp import report
from fiesta_allennlp.documents.summary import SystemSummary
from fiesta_allennlp.replays.replay import summarise_replay
from fiesta_allennlp.reports.comparison import Comparison
from fiesta_allennlp.reports.pages import bibtex, paragraph, render_html, render_markdown
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.reports.words import replay_in_words, selection_in_words
from fiesta_allennlp.version import __version__
from tests.replays.replay_test import REPLAY
from tests.reports.made_up import made_up


def entry(name: str, measure: Optional[float], num_documents: int = 2, **options: Any) -> SystemSummary:
    prob_best = None if options.get("withdrawn") else 0.25
    return SystemSummary(name, measure=measure, num_documents=num_documents, prob_best=prob_best, **options)


def ended(best: str, *entries: SystemSummary, strategy: Any = None) -> Dict[str, Any]:
    """A selection whose two documents ran out."""
    strategy = strategy or {"type": "top_two"}
    documents, none = {"num_documents": 2, "batch_size": 1}, {"num_failures": 0, "num_queries": 0, "cost": 0.0}
    ending = {"best": best, "stopped_by": "documents", "metric": "accuracy", "strategy": strategy}
    return {**ending, **none, "documents": documents, "candidates": list(entries)}


def in_lines(summary: Dict[str, Any]) -> str:
    return "\n".join(selection_in_words(summary))


def test_systems_that_are_level_or_saw_fewer_documents_are_named() -> None:
    a, lost = entry("a", 1.0), entry("lost", 1.0, withdrawn=True)
    through = "answered all 2 documents: a is the best on this file, with accuracy 1.0000"
    assert f"{through}, after " in in_lines(ended("a", a, entry("b", 0.5), lost))
    assert f"{through}, level with b and c, after " in in_lines(ended("a", a, entry("b", 1.0), entry("c", 1.0), lost))
    fewer = in_lines(ended("a", a, entry("b", 1.0, 1), entry("c", 1.0, 1, failures=1)))
    assert " b answered fewer because they were unlikely to be the best." in fewer
    # A plan that drops systems says nothing of probabilities.
    plan = {"type": "sequential_halving", "budget": 3}
    assert " b answered fewer.\n" in in_lines(ended("a", a, entry("b", 1.0, 1), strategy=plan))
    words = in_lines(ended("a", entry("a", 1.0, 1), entry("b", None, 0, failures=2), strategy=plan))
    assert "the next step of the plan: a leads, with accuracy 1.0000" in words


def test_a_replay_of_few_scores_names_the_plan() -> None:
    summary = {**summarise_replay(REPLAY), "fewest_scores": 3}
    warning = replay_in_words(summary)[-1]
    assert warning.startswith("Warning: this treats 3 splits") and "fiesta plan" in warning
    assert "Warning" not in " ".join(replay_in_words({**summary, "fewest_scores": 10}))


RUNS = Path(__file__).parents[1] / "fixtures" / "runs"


@pytest.fixture
def selection() -> Report:
    made = made_up(2)
    names = {"model_0": (0.97, 0.65, 0.02, 9), "model_1": (0.03, 0.62, 0.03, 7)}
    candidates = [
        replace(c, prob_best=p, prob_within_margin=p, mean=mean, sd=sd, num_evaluations=number)
        for c, (p, mean, sd, number) in zip(made.candidates, names.values(), strict=True)
    ]
    difference = Comparison("model_0", "model_1", False, (0.02, 0.04), 0.03, (0.01, 0.05))
    made = replace(made, strategy="top_two", splits="shared", notes=())
    return replace(made, candidates=tuple(candidates), comparisons=(difference,))


def test_the_paragraph_of_a_decision(selection: Report) -> None:
    text = paragraph(selection)
    for fact in (
        f"(Moss et al., 2019; Russo, 2016; Jourdan et al., 2022; fiesta-allennlp {__version__})",
        "After 16 runs, model_0 was selected, with P(best) = 0.970 (mean 0.6500, sd 0.0200 over 9 runs)",
        "model_1 (mean 0.6200, sd 0.0300 over 7 runs), with a mean difference of 0.0300 on 2 shared splits",
    ):
        assert fact in text
    assert text.split("(")[0] in render_html(selection, {}) and "## For your paper" in render_markdown(selection)


def test_new_data_are_told_beside_p_best(selection: Report) -> None:
    known = replace(selection, comparisons=(replace(selection.comparisons[0], prob_new_data=0.91),))
    said = "On new data of the same kind and size, model_0 is better than model_1 with probability 0.910"
    assert said in paragraph(known)
    assert "corani-benavoli-2015" in bibtex(known) and "corani" not in bibtex(selection)
    assert "P(better on new data)" in render_html(known, {}) and "new data)" not in render_html(selection, {})


@pytest.mark.parametrize("change", [{"running": True}, {"strategy": ""}, {"stopped_by": "failures"}, {"best": None}])
def test_there_is_no_paragraph_without_a_result(selection: Report, change: dict) -> None:  # type: ignore[type-arg]
    assert paragraph(replace(selection, **change)) == ""


def test_every_cited_work_has_its_entry(selection: Report) -> None:
    for strategy, number in (("top_two", 4), ("ttts", 3), ("sequential_halving", 3), ("a_rule_of_ones_own", 2)):
        entries = re.findall(r"^@\w+\{", bibtex(replace(selection, strategy=strategy)), re.MULTILINE)
        cited = re.search(r"\(([^()]*fiesta-allennlp [^()]*)\)", paragraph(replace(selection, strategy=strategy)))
        assert cited is not None and len(cited.group(1).split("; ")) == number == len(entries)


def test_a_selection_by_documents_has_its_own_words() -> None:
    text = paragraph(report(RUNS / "documents"))
    assert "systems (a, c, b)" in text and "Haffari et al., 2017" in text and "on 48 documents" in text
