"""The paragraph for a paper and its appendix: three sentences, the facts in them, and the works that they cite."""

import re
from pathlib import Path
from typing import Any, Dict, Tuple

import pytest

from fiesta_allennlp.reports.paragraph import (
    CITATION_TEXTS,
    METHOD_TEXTS,
    collect_bibtex,
    compose_appendix,
    compose_paragraph,
)
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.reports.report_files import render_html, report
from fiesta_allennlp.version import __version__
from tests.reports.made_up import TABLE, TOP_TWO, by_documents, just_begun, made_up, of_table, with_failures
from tests.score_tables import split_rows
from tests.selections import write_selection

HALVING = {"type": "sequential_halving", "budget": 20, "belief": {"type": "moderated_t"}}
PAPER = {"type": "ttts", "belief": {"type": "student_t"}, "stop": {"type": "bayesian"}, "confidence": 0.95}


def appendix(made: Report) -> str:
    return " ".join(compose_appendix(made))


def test_a_paragraph_has_four_sentences_and_is_in_the_page() -> None:
    text = compose_paragraph(made_up(2))
    assert len(re.findall(r"\.(?= [A-Z]|$)", text.replace("et al., ", ""))) == 4, text
    assert text.partition("(")[0] in render_html(made_up(2), {})


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
    ("facts", "told"),
    [
        (
            {},
            (
                f"fiesta-allennlp {__version__}",
                "2 models (model_0, model_1) by macro_f1",
                "official test set included",
                "(Russo, 2016; Jourdan et al., 2022), until P(best) reaches 0.95.",
                "After 16 runs, model_0 was selected",
                "runner-up was model_1 (mean 0.6",
                "6 runs; mean difference +0.",
                "No fresh runs confirm",
            ),
        ),
        ({"score": "validation"}, ("the validation sets of",)),
        ({"splits": "official"}, ("the official test set,",)),
        ({"metric": "-loss"}, ("by loss (lower",)),
        ({"strategy": HALVING, "stopped_by": "budget"}, ("sequential halving", "budget of 20 runs")),
        ({"margin": 0.01}, ("P(within 0.01 of the best)",)),
        (TABLE, ("over 30 runs [say",)),
        ({"stopped_by": "max_evaluations"}, ("model_0 led, ", "was open")),
    ],
)
def test_a_paragraph_has_the_facts(facts: Dict[str, Any], told: Tuple[str, ...]) -> None:
    text = compose_paragraph(of_table() if facts is TABLE else made_up(2, **facts))
    assert all(fact in text for fact in told), text


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (made_up(2), "3 runs; P(best) comes from moderated_t"),
        (made_up(2, strategy=PAPER, belief=PAPER["belief"]), "(Moss et al., 2019)"),
        (made_up(2, strategy={**TOP_TWO, "stop": {"type": "glr"}}), "the end by glr."),
        (made_up(2, splits="official"), "new seeds on this split"),
        (by_documents(), "further documents"),
    ],
)
def test_the_appendix_has_the_rest(made: Report, told: str) -> None:
    assert told in appendix(made), appendix(made)


def test_the_paragraph_names_who_was_left_out() -> None:
    assert "model_3 dropped out. model_2 dropped out." in compose_paragraph(with_failures(made_up(4)))


def test_a_selection_says_what_was_set_beforehand_or_changed(tmp_path: Path) -> None:
    scores = {"a": [0.8, 0.81, 0.83], "b": [0.7, 0.72, 0.71]}
    write_selection(tmp_path / "run", scores).close()
    assert "options that decide were" in appendix(report(tmp_path / "run"))
    change = {"option": "margin", "before": 0.0, "now": 0.1, "num_done": 4}
    write_selection(tmp_path / "changed", scores, meta={"changes": [change]}).close()
    made = report(tmp_path / "changed")
    told = "--margin was changed from 0.0 to 0.1 after 4 runs."
    assert told in appendix(made) and told in compose_paragraph(made)
    assert "options that decide were" not in appendix(made)


def test_a_least_score_of_a_report_names_its_runs() -> None:
    scores = {"a": [0.80, 0.81, 0.79, 0.80, 0.81], "b": [0.70, 0.71, 0.10, 0.69, 0.72]}
    made = report(split_rows(scores), min_score=0.2)
    told = "--min-score 0.2 removes 1 of 5 (20%) runs of b (b-2)."
    assert told in " ".join(made.decision) and told in appendix(made)


def test_every_cited_work_has_its_entry_and_every_entry_is_cited() -> None:
    paper = made_up(2, strategy=PAPER, belief=PAPER["belief"])
    halving = made_up(2, strategy=HALVING, stopped_by="budget")
    always = {"fiesta-allennlp", "moss-etal-2019-fiesta"}
    for made in (made_up(2), paper, halving, by_documents(), of_table()):
        keys = set(re.findall(r"^@\w+\{([^,]+)", collect_bibtex(made), re.MULTILINE))
        text = f"{compose_paragraph(made)} {appendix(made)}"
        assert keys == {key for key, cited in CITATION_TEXTS.items() if cited in text} | always
    assert {key for _, keys in METHOD_TEXTS.values() for key in keys} < set(CITATION_TEXTS)
