"""The slots of the paragraph for a paper: which facts fill them, and which leave them empty."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Tuple

import pytest

from fiesta_allennlp.reports.paragraph import collect_bibtex, compose_paragraph, fill_slots
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.reports.report import render_html, render_markdown, report
from fiesta_allennlp.version import __version__
from tests.reports.made_up import TABLE, TOP_TWO, by_documents, just_begun, made_up, of_table, with_failures
from tests.selections import write_selection

SLOTS = ["candidates", "data", "sampling", "posterior", "stopping"] + [
    "changes",
    "outcome",
    "failed_runs",
    "runner_up",
    "confirmation",
    "scope",
]
HALVING = {"type": "sequential_halving", "budget": 20, "belief": {"type": "split_paired"}}
EQUAL = {**TOP_TWO, "type": "non_adaptive_fc"}
PAPER = {"type": "ttts", "belief": {"type": "student_t"}, "stop": {"type": "bayesian"}, "confidence": 0.95}
GLR = {**TOP_TWO, "stop": {"type": "glr"}}
COLLAPSED = {"candidate": "model_0", "num_runs": 9, "scores": {"model_0-3": 0.1, "model_0-5": 0.1}, "sds": 9.0}


def slot(made: Report, name: str) -> str:
    return fill_slots(made)[name][0]


def test_a_paragraph_has_at_most_twelve_slots_and_is_in_every_page() -> None:
    made = made_up(2)
    assert list(fill_slots(made)) == SLOTS and len(SLOTS) <= 12
    text = compose_paragraph(made)
    assert text == " ".join(sentences for sentences, _ in fill_slots(made).values() if sentences)
    assert text.split("(")[0] in render_html(made, {}) and "## For your paper" in render_markdown(made)


@pytest.mark.parametrize(
    "made",
    [
        just_begun(),
        made_up(2, running=True, stopped_by=None),
        made_up(2, stopped_by="failures"),
        made_up(2, stopped_by=None),
    ],
)
def test_there_is_no_paragraph_without_a_result(made: Report) -> None:
    assert compose_paragraph(made) == ""


@pytest.mark.parametrize(
    ("facts", "name", "told"),
    [
        ({}, "candidates", ("2 models (model_0, model_1)", "macro_f1", "test sets", "official test set included")),
        ({"score": "validation"}, "candidates", ("validation sets of random splits.",)),
        ({"splits": "official"}, "candidates", ("official test set.",)),
        ({"sets": ()}, "candidates", ("in terms of macro_f1.",)),
        ({}, "data", ("Run k", "same split", "new random seed")),
        ({"splits": "independent"}, "data", ("its own split",)),
        ({"splits": "official"}, "data", ("only in their random seeds",)),
        ({"sets": ()}, "data", ("each program split itself",)),
        ({"sets": (), "splits": "official"}, "data", ("program loaded", "random seeds")),
        (TABLE, "data", ("All models ran on the same splits.",)),
        (
            {},
            "sampling",
            ("After 3 runs", "top-two sampling (Russo, 2016; Jourdan et al., 2022)", "a variant of FIESTA"),
        ),
        ({"strategy": PAPER, "belief": PAPER["belief"]}, "sampling", ("top-two Thompson", "as in FIESTA (Moss")),
        ({"strategy": EQUAL}, "sampling", ("ran equally often.",)),
        (
            {"strategy": HALVING, "stopped_by": "budget"},
            "sampling",
            ("A budget of 20 runs", "sequential halving", "mean"),
        ),
        (TABLE, "sampling", ("[Add how the runs were chosen.",)),
        ({}, "posterior", ("highest mean", "split_paired")),
        ({"metric": "-loss"}, "posterior", ("lowest mean",)),
        ({"belief": {"type": "mine"}}, "posterior", ("the posterior mine",)),
        ({}, "stopping", ("reaches 0.95", "fewer than 12 runs", "not an error rate: on 179 problems", "1.5% to 3.8%)")),
        (
            {"strategy": {**TOP_TWO, "confidence": 0.8}},
            "stopping",
            ("reaches 0.8", "fewer than 7 runs", "not an error rate."),
        ),
        ({"belief": {"type": "student_t"}}, "stopping", ("not an error rate.",)),
        ({"strategy": GLR}, "stopping", ("one model above all others at error level 0.05",)),
        ({"margin": 0.01}, "stopping", ("P(within 0.01 of the best) of one model",)),
        (TABLE, "stopping", ("The target is reached once P(best)",)),
        ({}, "outcome", ("After 16 runs, model_0 was selected with P(best) ", "(mean 0.6", ", sd ", "over 10 runs)")),
        ({"margin": 0.01}, "outcome", ("with P(within 0.01 of the best)",)),
        ({"stopped_by": "max_evaluations"}, "outcome", ("inconclusive after 16 runs", "the limit", "model_0 led")),
        ({"stopped_by": "max_hours"}, "outcome", ("inconclusive", "time limit")),
        ({"strategy": HALVING, "stopped_by": "budget"}, "outcome", ("had the best mean and was selected",)),
        ({**TABLE, "stopped_by": None}, "outcome", ("inconclusive", "target 0.95", "model_0 led")),
        ({"collapsed": (COLLAPSED,)}, "failed_runs", ("2 of 9 runs of model_0 collapsed", "below the others")),
        ({"collapsed": (COLLAPSED,), "metric": "-loss"}, "failed_runs", ("above the others",)),
        (
            {},
            "runner_up",
            ("model_1 (mean 0.6", "on 6 shared splits, or", "run-to-run sds (95% interval", "how the scores chose it"),
        ),
        (TABLE, "runner_up", ("takes the number of runs as fixed)",)),
        ({}, "scope", ("new splits and seeds",)),
        ({"splits": "official"}, "scope", ("new seeds on this split",)),
    ],
)
def test_a_slot_has_the_facts(facts: Dict[str, Any], name: str, told: Tuple[str, ...]) -> None:
    text = slot(made_up(2, **facts), name)
    assert all(fact in text for fact in told), text


@pytest.mark.parametrize(
    ("made", "empty"),
    [
        (made_up(2), ("changes", "failed_runs")),
        (made_up(2, strategy=HALVING, stopped_by="budget"), ("stopping",)),
        (made_up(2, num_evaluations=2), ("posterior",)),
        (by_documents(), ("data", "failed_runs")),
    ],
)
def test_a_slot_without_a_fact_is_empty(made: Report, empty: Tuple[str, ...]) -> None:
    assert [name for name in empty if slot(made, name)] == []


def test_a_selection_says_what_was_set_beforehand_or_changed(tmp_path: Path) -> None:
    scores = {"a": [0.8, 0.81, 0.83], "b": [0.7, 0.72, 0.71]}
    for name, options in (("target", {}), ("budget", {"strategy": "non_adaptive_fb", "budget": 6})):
        settings = {**options, **dict.fromkeys(("confidence", "max_evaluations") if options else ())}
        write_selection(tmp_path / name, scores, **settings).close()
    told = {name: slot(report(tmp_path / name), "changes") for name in ("target", "budget")}
    assert told["target"] == "The target, the margin and the limit were set before the selection began."
    assert told["budget"] == "The budget was set before the selection began."
    change = {"option": "margin", "before": 0.0, "now": 0.1, "num_done": 4}
    write_selection(tmp_path / "changed", scores, meta={"changes": [change]}).close()
    assert slot(report(tmp_path / "changed"), "changes") == "--margin was changed from 0.0 to 0.1 after 4 runs."
    assert slot(made_up(2), "changes") == "", "nothing is known about a selection without a store"


def test_the_commit_and_the_address_of_the_package_are_named_where_they_are_known(tmp_path: Path) -> None:
    source = {"commit": "0123456789", "url": "https://example.org/fiesta.git"}
    write_selection(tmp_path, {"a": [0.8, 0.81, 0.83], "b": [0.7, 0.72, 0.71]}, meta={"source": source}).close()
    made = report(tmp_path)
    assert f"With fiesta-allennlp {__version__} (commit 0123456789), we compared" in compose_paragraph(made)
    bibtex = collect_bibtex(made)
    assert (
        "note = {Python package, commit 0123456789}," in bibtex and "url = {https://example.org/fiesta.git}" in bibtex
    )
    assert "COMMIT" not in collect_bibtex(made_up(2)) and "URL_LINE" not in collect_bibtex(made_up(2))


def test_those_that_left_and_documents_are_named() -> None:
    assert slot(with_failures(made_up(4)), "changes") == "model_2, model_3 dropped out after failed runs."
    documents = fill_slots(by_documents())
    assert "systems" in documents["candidates"][0] and "Haffari et al. (2017)" in documents["sampling"][0]
    assert "further documents" in documents["scope"][0]


def test_new_data_and_assumed_splits_are_told() -> None:
    known = replace(made_up(2), test_share=0.2)
    assert "On new data of the same kind and size, model_0 is better with probability" in slot(known, "runner_up")
    assert "corani-benavoli-2015" in collect_bibtex(known) and "corani" not in collect_bibtex(made_up(2))
    lists = {"a": [0.8, 0.9, 0.85, 0.86], "b": [0.6, 0.7, 0.62, 0.65]}
    assert slot(report(lists), "data").startswith("[Check: All models ran on the same")


def test_a_limit_that_is_set_for_the_report_names_its_runs_and_the_decision_without_it(tmp_path: Path) -> None:
    scores = {"a": [0.80, 0.81, 0.79, 0.80, 0.81], "b": [0.70, 0.71, 0.10, 0.69, 0.72]}
    write_selection(tmp_path, scores, confidence=0.9, stop="bayesian", max_evaluations=40, min_score=0.2).close()
    own, late = (report(tmp_path, min_score=least) for least in (0.2, 0.695))
    assert "(set after the runs) removes 2 of 5 (40%) runs of b (b-2, b-3)." in " ".join(late.decision)
    without = "With the selection's own --min-score 0.2, a leads with P(best)"
    assert without in " ".join(late.decision)
    text = slot(late, "failed_runs")
    assert "2 of 5 (40%) of b (b-2, b-3)" in text and "We set this limit after the runs." in text and without in text
    assert slot(own, "failed_runs").endswith("1 of 5 (20%) of b (b-2).")
    assert "--min-score" not in " ".join(own.decision)
    path = tmp_path / "scores.csv"
    path.write_text(
        "\n".join(["candidate,split,score", *(f"{n},{k},{s}" for n in scores for k, s in enumerate(scores[n]))])
    )
    assert "[Say whether this limit was set" in slot(report(path, min_score=0.2), "failed_runs")


def test_every_cited_work_has_its_entry_and_every_entry_is_cited() -> None:
    years = {"moss": "Moss et al.", "russo": "Russo,", "jourdan": "Jourdan et al.", "karnin": "Karnin et al."}
    years.update({"haffari": "Haffari et al.", "fiesta": "fiesta-allennlp", "nadeau": "Nadeau", "corani": "Corani"})
    paper = made_up(2, strategy=PAPER, belief=PAPER["belief"])
    halving = made_up(2, strategy=HALVING, stopped_by="budget")
    for made in (made_up(2), replace(paper, test_share=0.2), halving, by_documents(), of_table()):
        keys = {key.split("-")[0] for key in re.findall(r"^@\w+\{([^,]+)", collect_bibtex(made), re.MULTILINE)}
        assert keys == {key for key, text in years.items() if text in compose_paragraph(made)}
