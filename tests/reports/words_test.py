"""Sentences, and what to write in a paper, on invented reports and on selections that were made."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Optional, Tuple

import pytest

from fiesta_allennlp import report
from fiesta_allennlp.documents.result import DocumentsResult, SystemResult
from fiesta_allennlp.reports import cells
from fiesta_allennlp.reports.candidates import Comparison
from fiesta_allennlp.reports.pages import collect_bibtex, compose_paragraph, render_html, render_markdown
from fiesta_allennlp.reports.record import Report
from fiesta_allennlp.reports.source_data import DOCUMENT_WORDS
from fiesta_allennlp.reports.status import read_status
from fiesta_allennlp.reports.words import ended_in_words, selection_in_words
from fiesta_allennlp.selection.result import CandidateResult, FailedRun, Result
from fiesta_allennlp.tables.settings import NextSettings
from fiesta_allennlp.tables.table_reader import read_rows
from fiesta_allennlp.version import __version__
from tests.golden import make_selection
from tests.reports.made_up import made_up
from tests.selections import write_selection

BATCH = FailedRun("x-0", "error", "no answer")


def entry(name: str, measure: Optional[float], num_documents: int = 2, **options: Any) -> SystemResult:
    prob_best = None if "state" in options else 0.25
    options = {"num_queries": 0, "cost": 0.0, **options}
    return SystemResult(name, measure=measure, num_documents=num_documents, prob_best=prob_best, **options)


def ended(best: str, *systems: SystemResult, strategy: Any = None) -> DocumentsResult:
    """A selection whose two documents ran out."""
    about = {"strategy": strategy or {"type": "top_two"}, "documents": {"num_documents": 2, "batch_size": 1}}
    return DocumentsResult(best, "documents", "accuracy", systems, **about)


def in_lines(result: DocumentsResult) -> str:
    return "\n".join(selection_in_words(result))


def test_systems_that_are_level_or_saw_fewer_documents_are_named() -> None:
    a, lost = entry("a", 1.0), entry("lost", 1.0, state="failed")
    through = "answered all 2 documents: a is the best on this file, with accuracy 1.0000"
    assert f"{through}, after " in in_lines(ended("a", a, entry("b", 0.5), lost))
    assert f"{through}, level with b and c, after " in in_lines(ended("a", a, entry("b", 1.0), entry("c", 1.0), lost))
    fewer = in_lines(ended("a", a, entry("b", 1.0, 1), entry("c", 1.0, 1, failed_runs=(BATCH,))))
    assert " b answered fewer because they were unlikely to be the best." in fewer
    # A plan that drops systems says nothing of probabilities.
    plan = {"type": "sequential_halving", "budget": 3}
    assert " b answered fewer.\n" in in_lines(ended("a", a, entry("b", 1.0, 1), strategy=plan))
    words = in_lines(ended("a", entry("a", 1.0, 1), entry("b", None, 0, failed_runs=(BATCH, BATCH)), strategy=plan))
    assert "the next step of the plan: a leads, with accuracy 1.0000" in words


@pytest.fixture
def selection() -> Report:
    made = made_up(2)
    names = {"model_0": (0.97, 0.65, 0.02, 9), "model_1": (0.03, 0.62, 0.03, 7)}
    candidates = [
        replace(c, prob_best=p, prob_within_margin=p, mean=mean, sd=sd, num_evaluations=number)
        for c, (p, mean, sd, number) in zip(made.candidates, names.values(), strict=True)
    ]
    difference = Comparison("model_0", "model_1", False, (0.02, 0.04), 0.03, (0.01, 0.05))
    return replace(made, notes=(), candidates=tuple(candidates), comparisons=(difference,))


def test_the_paragraph_of_a_decision(selection: Report) -> None:
    text = compose_paragraph(selection)
    for fact in (
        "After 16 runs, model_0 was selected with P(best) = 0.970 (mean 0.6500, sd 0.0200 over 9 runs)",
        "model_1 (mean 0.6200, sd 0.0300 over 7 runs), with a mean difference of 0.0300 on 2 shared splits",
    ):
        assert fact in text
    assert text.split("(")[0] in render_html(selection, {}) and "## For your paper" in render_markdown(selection)


def test_new_data_are_told_beside_p_best(selection: Report) -> None:
    known = replace(selection, comparisons=(replace(selection.comparisons[0], prob_new_data=0.91),))
    said = "On new data of the same kind and size, model_0 is better than model_1 with probability 0.910"
    assert said in compose_paragraph(known)
    assert "corani-benavoli-2015" in collect_bibtex(known) and "corani" not in collect_bibtex(selection)
    third = replace(selection.candidates[1], name="model_2", mean=0.5)
    further = replace(known.comparisons[0], second="model_2")
    beyond = replace(
        selection, candidates=(*selection.candidates, third), comparisons=(*selection.comparisons, further)
    )
    assert said.split(",")[0] not in compose_paragraph(beyond) and "corani" not in collect_bibtex(beyond)
    assert "P(better on new data)" in render_html(known, {}) and "new data)" not in render_html(selection, {})


LISTS = read_rows(Path("lists"), NextSettings(), {"model_0": [0.5, 0.6], "model_1": [0.4, 0.5]}).read_back
TABLE = {"strategy": "", "stop": "", "splits": "", "sets": (), "scored": "", "stopped_by": None}


@pytest.mark.parametrize(
    "change", [{"running": True}, {"stopped_by": "failures"}, {"leading": None}, {**TABLE, "is_pair": True}]
)
def test_there_is_no_paragraph_without_a_result(selection: Report, change: dict) -> None:  # type: ignore[type-arg]
    assert compose_paragraph(replace(selection, **change)) == ""


COLLAPSED = {"candidate": "model_0", "num_runs": 9, "scores": {"model_0-3": 0.1, "model_0-5": 0.1}}
OWN = f"(fiesta-allennlp {__version__})"
HALVING = {"strategy": "sequential_halving", "budget": 20, "stop": "", "stopped_by": "budget", "asked_confidence": None}


@pytest.mark.parametrize(
    ("change", "facts", "absent"),
    [
        (
            {},
            (
                "After 3 runs of each, top-two sampling (Russo, 2016; Jourdan et al., 2022)",
                "FIESTA (Moss et al., 2019)",
            ),
            (),
        ),
        (
            {},
            ("reaches 0.95, or more than that while it or its nearest rival has fewer than 12 runs", OWN),
            ("budget",),
        ),
        ({"asked_confidence": 0.8}, ("reaches 0.8", "fewer than 7 runs"), ()),
        (
            {"stop": "rule_of_three"},
            ("reaches 0.95, the model and its nearest rival have 12 runs each",),
            ("more than",),
        ),
        ({"stop": "bayesian"}, ("once P(best) of one model reaches 0.95 (Moss et al., 2019)",), ("12 runs",)),
        (
            {"stop": "glr"},
            (f"likelihood ratio tests put one model above all others at error level 0.05 {OWN}",),
            ("reaches", "not an error rate", "gives up"),
        ),
        ({"stop": "mine"}, ("the stopping rule mine is met at 0.95",), ()),
        ({"margin": 0.01}, ("P(within 0.01 of the best) of one model reaches 0.95", "with P(within 0.01"), ()),
        ({"minimise": True}, ("probability of the lowest mean",), ()),
        ({"belief": "split_paired"}, (f"split_paired, a Bayesian model that pairs scores on shared splits {OWN}",), ()),
        ({"belief": "student_t"}, ("independent normal models of the scores (Moss et al., 2019)",), ("split_paired",)),
        ({"belief": "mine"}, ("comes from the posterior mine.",), ()),
        ({"strategy": "ttts"}, ("top-two Thompson sampling (Russo, 2016)",), ("Jourdan",)),
        ({"strategy": "mine"}, ("the sampling rule mine chose which model",), ("Russo",)),
        ({"strategy": "non_adaptive_fc"}, ("Every model ran equally often.",), ("chose which", "Moss")),
        (
            HALVING,
            (
                "Sequential halving (Karnin et al., 2013; Moss et al., 2019) divided a budget of 20 runs",
                "the best mean and was",
            ),
            ("reaches", "0.95 ", "chose which"),
        ),
        ({}, ("on the test sets of random splits of all the data, official test set included. Run k",), ()),
        ({"scored": "validation"}, ("on the validation sets of random splits.",), ("test set",)),
        ({"splits": "independent"}, ("Every run used its own split",), ("Run k",)),
        (
            {"splits": "official"},
            ("on the official test set. All runs of a model differed only in", "new seeds on this"),
            ("Run k",),
        ),
        ({"sets": (), "scored": ""}, ("Each program split its data itself, by a seed that run k",), ("test set",)),
        ({"sets": (), "scored": "", "splits": "independent"}, ("by a seed that was new in every run",), ("test set",)),
        (
            {"sets": (), "scored": "", "splits": "official"},
            ("Each program loaded its data itself",),
            ("test set", "official"),
        ),
        ({"sets": (), "scored": "validation"}, ("in terms of macro_f1 on validation sets.",), ("test set",)),
        (
            {"stopped_by": "max_evaluations"},
            ("inconclusive after 16 runs, when the limit left too few",),
            ("selected", "was the best"),
        ),
        (
            {"stopped_by": "max_hours"},
            ("inconclusive after 16 runs, when the time limit was reached; model_0 led",),
            ("selected",),
        ),
        (
            {},
            ("train next, in a variant of FIESTA", "with a probability below 0.1. P(best) is not an error rate"),
            ("as in",),
        ),
        ({"strategy": "ttts", "belief": "student_t", "stop": "bayesian"}, ("train next, as in FIESTA",), ("variant",)),
        (
            {},
            ("0.0500, which takes the number of runs as fixed and ignores how the scores chose it)",),
            ("collapsed, with",),
        ),
        ({"collapsed": (COLLAPSED,)}, ("2 of 9 runs of model_0 collapsed, with a score far below its others.",), ()),
        ({"collapsed": (COLLAPSED,), "minimise": True}, ("collapsed, with a score far above its others.",), ()),
        (
            TABLE,
            (
                "Over 16 runs, model_0 was the best with P(best)",
                "how the runs were chosen",
                "The target is reached once P(best) of one model reaches 0.95, or more than that while",
                "All models ran on the same splits. P(best)",
                "takes the number of runs as fixed)",
            ),
            ("test set", "top-two", "gives up", "Check"),
        ),
        ({**TABLE, "read_backs": (LISTS,)}, ("[Check: all models ran on the same splits, if",), ()),
        (
            {**TABLE, "missed_target": 0.95},
            ("inconclusive at the target 0.95; model_0 leads",),
            ("was the best", "selected"),
        ),
        ({**TABLE, "splits": "official"}, ("All runs of a model differed only in their random seeds",), ("program",)),
    ],
)
def test_the_paragraph_describes_what_was_run(
    selection: Report, change: Dict[str, Any], facts: Tuple[str, ...], absent: Tuple[str, ...]
) -> None:
    text = compose_paragraph(replace(selection, **change))
    assert all(fact in text for fact in facts), text
    assert not any(fact in text for fact in absent), text


def test_a_table_with_collapsed_runs_names_them_and_the_score_that_was_set_afterwards(tmp_path: Path) -> None:
    good = [0.851, 0.849, 0.852, 0.848, 0.85, 0.853, 0.847, 0.85, 0.851, 0.849]
    worse = [score - 0.004 for score in good[:8]] + [0.45, 0.44]
    rows = [f"{name},{k},{score}" for name, scores in (("a", good), ("b", worse)) for k, score in enumerate(scores)]
    path = tmp_path / "scores.csv"
    path.write_text("candidate,seed,score\n" + "\n".join(rows) + "\n")
    text = compose_paragraph(report(path))
    assert "once a run has collapsed, both need 12 runs" in text
    assert "2 of 10 runs of b collapsed, with a score far below its others." in text
    judged = compose_paragraph(report(path, min_score=0.5))
    assert "below 0.5 count as failed and are in no mean: 2 of 10 (20%) of b (b-8, b-9)" in judged
    assert "[Say whether this limit was set before or after the runs.]" in judged
    assert "collapsed, with" not in judged


def test_a_limit_that_is_set_for_the_report_names_its_runs_and_the_decision_without_it(tmp_path: Path) -> None:
    scores = {"a": [0.80, 0.81, 0.79, 0.80, 0.81], "b": [0.70, 0.71, 0.10, 0.69, 0.72]}
    write_selection(tmp_path, scores, confidence=0.9, stop="bayesian", max_evaluations=40, min_score=0.2).close()
    own, late = (report(tmp_path, min_score=least) for least in (0.2, 0.695))
    assert "(set after the runs) removes 2 of 5 (40%) runs of b (b-2, b-3)." in " ".join(late.decision)
    assert "2 of 5 (40%) of b (b-2, b-3); P(best)" in compose_paragraph(
        late
    ) and "We set this limit after the runs." in compose_paragraph(late)
    without = "With the selection's own --min-score 0.2, a leads with P(best)"
    assert without in " ".join(late.decision) and without in compose_paragraph(late)
    assert "1 of 5 (20%) of b; P(best)" in compose_paragraph(own) and "after the runs" not in compose_paragraph(own)
    assert "--min-score" not in " ".join(own.decision)
    assert "--min-score 0.05 (set after the runs) removes no run." in " ".join(
        report(tmp_path, min_score=0.05).decision
    )


def test_a_margin_that_an_inconclusive_selection_names_is_too_late() -> None:
    over = replace(ended("a", entry("a", 0.8), entry("b", 0.7)), stopped_by="max_evaluations")
    credible = replace(over, credible_margin={"margin": 0.01, "best": "a"})
    assert "--margin 0.01 would have selected a, but a margin chosen after seeing the scores" in in_lines(credible)
    assert "margin" not in in_lines(over)


def test_those_that_left_are_named(selection: Report) -> None:
    first, second = selection.candidates
    removed = replace(selection, candidates=(first, replace(second, state="removed", prob_best=None)))
    assert "model_1 left before the end, removed by us." in compose_paragraph(removed)
    failed = replace(selection, candidates=(first, replace(second, state="failed", prob_best=None)))
    assert "model_1 dropped out after failed runs." in compose_paragraph(
        failed
    ) and "runner-up" not in compose_paragraph(failed)


def test_every_cited_work_has_its_entry_and_every_entry_is_cited(selection: Report) -> None:
    years = {"moss": "Moss et al.", "russo": "Russo,", "jourdan": "Jourdan et al.", "karnin": "Karnin et al."}
    years.update({"haffari": "Haffari et al.", "fiesta": "fiesta-allennlp"})
    documents = {"words": DOCUMENT_WORDS, "belief": "dirichlet_f_measure", "stop": "enough_documents"}
    for change in ({}, {"strategy": "ttts", "belief": "student_t", "stop": "bayesian"}, HALVING, documents, TABLE):
        made = replace(selection, **change)
        keys = {key.split("-")[0] for key in re.findall(r"^@\w+\{([^,]+)", collect_bibtex(made), re.MULTILINE)}
        assert keys == {key for key, text in years.items() if text in compose_paragraph(made)}


def test_the_method_is_read_from_the_store(tmp_path: Path) -> None:
    scores = {"a": [0.8, 0.9, 0.85, 0.86], "b": [0.6, 0.7, 0.62]}
    facts = ("strategy", "stop", "belief", "num_starts", "budget", "asked_confidence", "splits", "sets", "scored")

    def method(**options: Any) -> Tuple[Any, ...]:
        root = tmp_path / str(len(list(tmp_path.iterdir())))
        write_selection(root, scores, **options).close()
        made = report(root)
        return tuple(getattr(made, fact) for fact in facts)

    shared = ("shared", ("train", "test"), "test")
    assert method(confidence=0.9) == ("top_two", "early_looks", "split_paired", 3, None, 0.9, *shared)
    own = ("ttts", "bayesian", "student_t", 3, None, 0.9, "independent", ("train", "test"), "validation")
    options = {"strategy": "ttts", "stop": "bayesian", "belief": "student_t", "splits": "independent"}
    assert method(confidence=0.9, score="validation", **options) == own
    halving = ("sequential_halving", "", "unpaired", 0, 9, None, "official", ("train", "test"), "test")
    assert method(confidence=None, max_evaluations=None, budget=9, splits="official") == halving


def test_a_budget_on_official_splits_says_what_it_left_and_who_is_ahead(tmp_path: Path) -> None:
    scores = {"a": [0.8, 0.9, 0.85, 0.85], "b": [0.6, 0.7, 0.65, 0.65], "c": [0.1, 0.2, 0.1, 0.2]}
    choice: Dict[str, Any] = {"confidence": None, "max_evaluations": None, "strategy": "non_adaptive_fb"}
    write_selection(tmp_path, scores, splits="official", budget=14, **choice).close()
    told = " ".join(report(tmp_path).decision)
    assert "Its mean is 0.2 ahead of b. 2 runs of the budget were left" in told
    assert " ".join(report(tmp_path).decision[1:3]) in " ".join(read_status(tmp_path).sentences)
    assert [candidate.name for candidate in report(tmp_path).ranked] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("budget", "stopped_by", "state", "is_told"),
    [
        (3, "budget", "taking part", True),
        (2, "budget", "taking part", False),
        (3, None, "taking part", False),
        (3, "budget", "failed", False),
    ],
)
def test_the_rest_of_a_budget_is_told_if_equal_rounds_left_it(
    budget: int, stopped_by: Optional[str], state: Any, is_told: bool
) -> None:
    candidates = (CandidateResult("a", 1, 0.9), CandidateResult("b", 1, 0.8, state=state))
    made = Result("a", stopped_by, "f1", candidates, strategy={"type": "non_adaptive_fb", "budget": budget})
    assert ("of the budget" in ended_in_words(made)) == is_told


def test_a_metric_to_minimize_is_ahead_where_it_is_lower(tmp_path: Path) -> None:
    scores = {"a": [0.8, 0.9, 0.85], "b": [0.6, 0.7, 0.65]}
    choice: Dict[str, Any] = {"confidence": None, "max_evaluations": None, "strategy": "non_adaptive_fb"}
    write_selection(tmp_path, scores, splits="official", budget=6, metric="-f1", **choice).close()
    assert "after 6 runs of 2 candidates. Its mean is 0.2 ahead of a." in report(tmp_path).decision[0] + " "


def test_rank_correlations_have_their_number_of_runs(selection: Report) -> None:
    assert selection.development is not None
    (name, number, rho), (best, of_best, _) = cells.tabulate_development(selection, selection.development).rows
    assert (name, number, rho, best) == ("all", "16", "0.610", "model_0")
    assert of_best == str(len(selection.candidate("model_0").scores))


def test_a_selection_by_documents_has_its_own_words(tmp_path: Path) -> None:
    text = compose_paragraph(report(make_selection(tmp_path, "documents")))
    assert "systems (a, " in text and "Haffari et al. (2017)" in text and "documents" in text
