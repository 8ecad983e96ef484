"""The figures of a search's first stage, and its sentences, on five configs made up by hand."""

import numpy as np
import pytest

from fiesta_allennlp.reports.figures.figure import WIDE, styled
from fiesta_allennlp.reports.figures.screening import BEST_SO_FAR, FRONT, PARALLEL, axis_of, short_names
from fiesta_allennlp.reports.report import Report
from fiesta_allennlp.reports.screening import screening_in_words
from tests.reports.made_up import made_up, screened


def test_the_best_so_far_by_hand() -> None:
    with styled(WIDE):
        drawing = BEST_SO_FAR.draw(screened(), WIDE)
    assert drawing is not None
    runs, best = drawing.axes[0].lines
    assert list(runs.get_ydata()) == [0.2, 0.6, 0.5, 0.9, 0.7]
    assert list(best.get_ydata()) == [0.2, 0.6, 0.6, 0.9, 0.9]
    assert BEST_SO_FAR.alt(screened()) == (
        "Best validation score over 5 runs of the screening. 0.6000 after 2; 0.9000 at the end, reached with run 4."
    )
    lowest = screened(minimise=True).screening
    assert lowest is not None and lowest.best_so_far == (0.2, 0.2, 0.2, 0.2, 0.2)


def test_the_front_by_hand() -> None:
    """0.7 in 15 s beats 0.6 in 20 s; 0.9 in 25 s beats 0.5 in 30 s."""
    screening = screened().screening
    assert screening is not None and screening.front == (0, 3, 4)
    with styled(WIDE):
        drawing = FRONT.draw(screened(), WIDE)
    assert drawing is not None
    line = drawing.axes[0].lines[1]
    assert list(zip(line.get_xdata(), line.get_ydata(), strict=True)) == [(10.0, 0.2), (15.0, 0.7), (25.0, 0.9)]
    assert "3 are on the Pareto front; 0.2000 in 10.0 s; 0.9000 in 25.0 s" in FRONT.alt(screened())
    assert FRONT.draw(screened(second_objective=None), WIDE) is None


def test_parallel_axes_end_at_the_score_with_the_finalists_on_top() -> None:
    with styled(WIDE):
        drawing = PARALLEL.draw(screened(), WIDE)
    assert drawing is not None
    lines = [line for line in drawing.axes[0].lines if len(line.get_xdata()) == 3]
    assert [line.get_ydata()[2] for line in lines] == pytest.approx([0, 3 / 7, 4 / 7, 5 / 7, 1])
    assert [line.get_linestyle() for line in lines] == ["--", "--", "--", "-", "-"]
    assert "The best validation score, 0.9000, has lr 0.03, kind None" in PARALLEL.alt(screened())


def test_axes_by_hand() -> None:
    places, ticks = axis_of([0.001, 0.1, 0.01])
    np.testing.assert_allclose(places, [0, 1, 0.5], atol=1e-12)
    assert [text for _, text in ticks] == ["0.001", "0.01", "0.1"]
    assert axis_of([1, 4, 2])[0].tolist() == pytest.approx([0, 1, 1 / 3])
    assert axis_of(["b", "a", True])[0].tolist() == [1.0, 0.5, 0.0]
    assert axis_of([3, 3])[0].tolist() == [0.0, 0.0]
    assert [text for _, text in axis_of(list(range(20)))[1]] == ["0", "19"]


def test_paths_of_keys_are_cut_where_they_stay_apart() -> None:
    assert short_names(["trainer.optimizer.lr", "model.dropout", "n"]) == ["lr", "dropout", "n"]
    assert short_names(["a.lr", "b.lr"]) == ["a.lr", "b.lr"]


@pytest.mark.parametrize("report", [made_up(2)])
def test_where_nothing_was_screened_there_is_no_figure(report: Report) -> None:
    assert [figure.draw(report, WIDE) for figure in (BEST_SO_FAR, PARALLEL, FRONT)] == [None] * 3


def test_the_sentences_by_hand() -> None:
    report = screened()
    assert report.screening is not None
    second = report.candidates[1].name
    first, order = screening_in_words(report.screening)
    assert first == (
        "The screening ran 6 of 25 configs once, chosen by gp_ehvi and scored on the validation set, of which 1 failed."
        " This took 1 min 40 s of all workers."
    )
    assert order == (
        f"2 of the 2 finalists changed place. {second}, first now, was number 2 in the screening. Its score there was "
        "0.7000, and its mean over 5 fresh runs is 0.8000."
    )
