"""The figures of a search's first stage, and its sentences, on five configs made up by hand."""

from fiesta_allennlp.reports.figures.figure import styled
from fiesta_allennlp.reports.figures.screening import BEST_SO_FAR, FRONT
from tests.reports.made_up import made_up, screened


def test_the_best_so_far_by_hand() -> None:
    with styled():
        drawing = BEST_SO_FAR.draw(screened())
    assert drawing is not None
    runs, best = drawing.axes[0].lines
    assert list(runs.get_ydata()) == [0.2, 0.6, 0.5, 0.9, 0.7]
    assert list(best.get_ydata()) == [0.2, 0.6, 0.6, 0.9, 0.9]
    assert "The best score was reached with run 4." in BEST_SO_FAR.caption(screened())
    lowest = screened(minimise=True).screening
    assert lowest is not None and lowest.best_so_far == (0.2, 0.2, 0.2, 0.2, 0.2)


def test_the_front_by_hand() -> None:
    """0.7 in 15 s beats 0.6 in 20 s; 0.9 in 25 s beats 0.5 in 30 s."""
    screening = screened().screening
    assert screening is not None and screening.front == (0, 3, 4)
    with styled():
        drawing = FRONT.draw(screened())
    assert drawing is not None
    line = drawing.axes[0].lines[1]
    assert list(zip(line.get_xdata(), line.get_ydata(), strict=True)) == [(10.0, 0.2), (15.0, 0.7), (25.0, 0.9)]
    assert "3 are on it" in FRONT.caption(screened())
    assert FRONT.draw(screened(second_objective=None)) is None


def test_where_nothing_was_screened_there_is_no_figure() -> None:
    assert [figure.draw(made_up(2)) for figure in (BEST_SO_FAR, FRONT)] == [None] * 2


def test_the_sentences_by_hand() -> None:
    report = screened()
    assert report.screening is not None
    second = report.candidates[1].name
    first, order = report.screening.sentences
    assert first == (
        "The screening ran 6 of 25 configs once, chosen by gp_ehvi and scored on the validation set; 1 failed."
        " This took 1 min 40 s across all workers."
    )
    assert order == (
        f"2 of the 2 finalists changed place. {second}, now first, was number 2 in the screening. Its score there was "
        "0.7000, and its mean over 5 fresh runs is 0.8000."
    )
