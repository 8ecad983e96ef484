from dataclasses import replace

from fiesta_allennlp.reports.content import CandidateReport
from fiesta_allennlp.reports.tables import ranked, shown_names
from tests.reports.made_up import just_begun


def test_the_best_is_first_then_probability_then_mean_then_the_order_given() -> None:
    candidates = (
        CandidateReport("a", mean=0.1),
        CandidateReport("gone", prob_best=0.9, withdrawn=True),
        CandidateReport("b", mean=0.3),
        CandidateReport("c", prob_best=0.4),
        CandidateReport("best", prob_best=0.3),
        CandidateReport("d"),
        CandidateReport("e"),
    )
    report = replace(just_begun(), candidates=candidates, best="best")
    assert [candidate.name for candidate in ranked(report)] == ["best", "c", "b", "a", "d", "e", "gone"]


def test_short_names_stay() -> None:
    assert shown_names(["td_lstm", "ian"], 7) == {"td_lstm": "td_lstm", "ian": "ian"}


def test_long_names_are_cut_in_the_middle() -> None:
    assert shown_names(["abcdefghij"], 5) == {"abcdefghij": "ab…ij"}


def test_names_that_would_look_the_same_bear_their_place() -> None:
    names = ["model-with-dropout-0.1-large", "other", "model-with-dropout-0.2-large"]
    shown = shown_names(names, 12)
    assert shown == {names[0]: "#1 mode…arge", "other": "other", names[2]: "#3 mode…arge"}


def test_characters_without_a_glyph_are_boxes() -> None:
    assert shown_names(["a\nb"], 9) == {"a\nb": "a□b"}
