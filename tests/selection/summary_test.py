import csv
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np
import pytest

from fiesta_allennlp.core.records import CredibleMargin, Decision, Evaluation, Failure, History
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.reports.words import in_words, selection_in_words
from fiesta_allennlp.selection.summary import (
    CandidateSummary,
    decimals_of,
    duration_text,
    number_text,
    probability_text,
    summarise,
    write_csv,
    write_json,
)

SCORES: Dict[str, List[float]] = {"a": [0.5, 0.7, 0.6], "b": [0.4], "c": []}


def runs(scores: Mapping[str, Sequence[float]]) -> Tuple[Evaluation, ...]:
    return tuple(
        Evaluation(make_request(0, name, replicate, shared_splits=True), score, "f1", seconds=2.0)
        for name, row in scores.items()
        for replicate, score in enumerate(row)
    )


@pytest.fixture
def history() -> History:
    failure = Failure(make_request(0, "c", 0, shared_splits=True), "timeout", "out of time")
    return History(("a", "b", "c"), runs(SCORES), failures=(failure,), withdrawn=frozenset({"c"}))


def summary(history: History, **decision: Any) -> Dict[str, Any]:
    return summarise(history, Decision(**{"best": "a", **decision}), {"metric": "f1"})


def test_the_lower_mean_is_ahead_where_the_metric_is_minimised() -> None:
    """On splits 0 and 1 a is .1 below b, but b has a third, easy one, which makes its mean the lowest."""
    scores = {"a": [0.5, 0.7], "b": [0.6, 0.8, 0.1]}
    history = History(("a", "b"), runs(scores))
    made = summarise(history, Decision(best="a", stopped_by="budget"), {"metric": "-loss"})
    expected = {"of": "b", "has_better_mean": True, "num_splits": 2, "difference": pytest.approx(0.1)}
    assert made["ahead_on_shared_splits"] == expected
    assert summarise(history, Decision(best="a"), {"metric": "loss"})["ahead_on_shared_splits"] is None


def test_numbers_of_every_candidate(history: History) -> None:
    probabilities = {"a": 0.9, "b": 0.1}
    within = {"a": 0.97, "b": 0.1}
    made = summary(history, prob_best=probabilities, prob_within_margin=within, margin=0.01, stopped_by="confidence")
    assert (made["best"], made["confidence"], made["num_evaluations"], made["num_failures"]) == ("a", 0.97, 4, 1)
    a, b, c = made["candidates"]
    assert (a.mean, a.prob_within_margin, a.prob_best) == (pytest.approx(0.6), 0.97, 0.9)
    assert a.sd == pytest.approx(np.std(SCORES["a"], ddof=1))
    assert a.seconds == 6.0
    assert (b.num_evaluations, b.mean, b.sd) == (1, 0.4, None)
    assert (c.num_evaluations, c.mean, c.withdrawn, c.prob_best) == (0, None, True, None)
    assert (a.mean_seconds, b.mean_seconds, c.mean_seconds) == (2.0, 2.0, None)
    assert c.failure_reasons == ("c-0 timeout: out of time",)


def test_what_an_undecided_selection_lacks_is_told(history: History) -> None:
    undecided = {"prob_best": {"a": 0.9, "b": 0.1}, "stopped_by": "max_evaluations"}
    made = summary(history, **undecided, credible_margin=CredibleMargin(0.0049, "b"))
    assert made["credible_margin"] == {"margin": 0.0049, "best": "b"} and "--margin 0.0049" in in_words(made)
    assert summary(history, **undecided, lacking=("b", "a", "b"))["lacking"] == {"b": 2, "a": 1}


def test_a_winner_with_a_lower_mean_is_explained() -> None:
    """Worked by hand: a leads by .02 on the two splits that both have seen, and has a third, hard one to itself."""
    scores = {"a": (0.52, 0.62, 0.30), "b": (0.50, 0.60), "c": (0.1,)}
    evaluations = runs(scores)
    made = summary(History(tuple(scores), evaluations), stopped_by="confidence")
    expected = {"of": "b", "has_better_mean": True, "num_splits": 2, "difference": pytest.approx(0.02)}
    assert made["ahead_on_shared_splits"] == expected
    for best in ("b", "c", None):
        assert summary(History(tuple(scores), evaluations), best=best)["ahead_on_shared_splits"] is None


@pytest.mark.parametrize("metric", ["f1", "-loss"])
def test_runs_far_from_the_others_are_named(metric: str) -> None:
    """Median .8 and MAD .01, so one robust sd is .014826; for a minimised metric, far is far above."""
    sign = -1 if metric == "-loss" else 1
    scores = {"a": [0.79, 0.8, 0.81, 0.8, 0.4, 0.79, 0.81], "b": [0.7, 0.71, 0.72, 0.7, 0.71, 0.72, 0.73]}
    history = History(tuple(scores), runs({name: [sign * x for x in row] for name, row in scores.items()}))
    made = summarise(history, Decision(best="a", stopped_by="interrupted"), {"metric": metric})
    (found,) = made["collapsed"]
    assert (found["candidate"], found["num_runs"], found["scores"]) == ("a", 7, {"a-4": sign * 0.4})
    assert found["sds"] == pytest.approx(0.4 / 0.014826)
    side = "above" if sign < 0 else "below"
    assert f"1 of 7 runs of a lies 27 robust sds {side} the others (a-4: {sign * 0.4:g})" in found["text"]
    assert found["text"] in selection_in_words(made)
    turned = {"f1": "-loss", "-loss": "f1"}[metric]
    assert summarise(history, Decision(best="a"), {"metric": turned})["collapsed"] == []


def test_the_time_saved_against_equal_allocation(history: History) -> None:
    """Worked by hand: a leads with 3 runs of 2 s, b has 1 of 10 s. Equal: 3 x (2 + 10) = 36 s; spent: 16 s."""
    (b,) = (e for e in history.evaluations if e.request.candidate == "b")
    others = tuple(e for e in history.evaluations if e is not b)
    made_of = (*others, replace(b, seconds=10.0))
    made = summary(replace(history, evaluations=made_of))
    assert (made["seconds"], made["seconds_of_equal_allocation"]) == (16.0, 36.0)
    for best, seconds in (("b", 12.0), ("c", None), (None, None)):
        assert summary(replace(history, evaluations=made_of), best=best)["seconds_of_equal_allocation"] == seconds


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0.5, "0.500"), (0.99999, "> 0.999"), (1.0, "1.000"), (1e-9, "< 0.001"), (0.0, "0.000")],
)
def test_a_probability_is_never_rounded_to_certainty(value: Optional[float], text: str) -> None:
    assert probability_text(value) == text
    numbers = number_text(0.12345), number_text(-1.23456e99), number_text(2.0, 1, sign="+")
    assert numbers == ("0.1235", "-1.235e+99", "+2.0")
    assert [duration_text(seconds) for seconds in (59.4, 61, 90061)] == ["59.4 s", "1 min 1 s", "25 h 1 min"]


def test_csv_has_the_columns_and_every_metric(tmp_path: Path) -> None:
    seeds = {"split_seed": 1, "random_seed": 2, "numpy_seed": 3, "pytorch_seed": 4}
    rows = [
        {"candidate": "a", "replicate": 0, "status": "finished", "score": 0.1 + 0.2, "metrics": '{"x": 1}', **seeds},
        {"candidate": "b", "replicate": 0, "status": "failed", "error": 'said "no", twice', **seeds},
    ]
    write_csv(rows, tmp_path / "e.csv")
    with (tmp_path / "e.csv").open(newline="") as file:
        read = list(csv.DictReader(file))
    assert float(read[0]["score"]) == 0.1 + 0.2
    assert (read[0]["metric:x"], read[1]["metric:x"], read[1]["score"]) == ("1", "", "")
    assert read[1]["error"] == 'said "no", twice'
    assert list(read[0])[:4] == ["candidate", "replicate", "status", "score"]


def test_csv_has_no_formula_and_no_half_of_a_character(tmp_path: Path) -> None:
    row = {"candidate": "@SUM(1)", "status": "finished", "score": -0.5, "metrics": r'{"\ud800": 1, "=x": -2}'}
    write_csv([row], tmp_path / "e.csv")
    head, line = (tmp_path / "e.csv").read_text(encoding="utf-8").splitlines()
    assert head.endswith(r",error,metric:=x,metric:\ud800")
    assert line == "'@SUM(1),,finished,-0.5,,,,,,,,,-2,1"


def test_json_is_written_whole_and_without_nan(tmp_path: Path, history: History) -> None:
    made = summary(history)
    write_json(made, tmp_path / "s.json")
    plain = {**made, "candidates": [{**asdict(c), "failure_reasons": [*c.failure_reasons]} for c in made["candidates"]]}
    assert json.loads((tmp_path / "s.json").read_text()) == plain
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json({"x": float("nan")}, tmp_path / "s.json")
    assert json.loads((tmp_path / "s.json").read_text()) == plain


def test_a_removed_candidate_has_a_flag_and_files_of_earlier_versions_had_a_sentence() -> None:
    history = History(("a", "b"), runs({"a": [0.5], "b": [0.4]}), removed=frozenset({"b"}))
    a, b = summary(history.withdrawing(max_failures=3))["candidates"]
    assert (a.removed, a.out, b.removed, b.out) == (False, "", True, "removed")
    for sentence in ("it was not given any more (--allow-removed); its runs are kept but do not count", "3 failures"):
        earlier = CandidateSummary("b", withdrawn=True, withdrawn_because=sentence)
        assert earlier.out == ("removed" if "--allow-removed" in sentence else "failed")


@pytest.mark.parametrize(("margin", "is_told"), [(9.1e-22, False), (0.05, True), (0.3, False), (1.5, False)])
def test_a_margin_without_meaning_is_not_suggested(history: History, margin: float, is_told: bool) -> None:
    """The scores are between 0.4 and 0.7."""
    found = summary(history, credible_margin=CredibleMargin(margin, "a"))["credible_margin"]
    assert (found is not None) == is_told
    equal = History(("a", "b"), runs({"a": [0.5, 0.5], "b": [0.5, 0.5]}))
    assert summary(equal, credible_margin=CredibleMargin(margin, "a"))["credible_margin"] is None


def test_a_budget_that_ends_names_who_leads_and_a_reached_confidence_the_best(history: History) -> None:
    ended = in_words(summary(history, stopped_by="budget", prob_within_margin={"a": 0.468}))
    assert ended.startswith("a leads with P(best) 0.468, by f1, after 4 runs")
    decided = in_words(summary(history, stopped_by="confidence", prob_within_margin={"a": 0.968}))
    assert decided.startswith("a is the best with probability 0.968")


@pytest.mark.parametrize(
    ("number", "text"),
    [(1.2e-5, "1.2e-05"), (1.5e-5, "1.5e-05"), (1e9 + 0.5, "1000000000.5"), (-2e-4, "-0.0002"), (0.0, "0.0000")],
)
def test_small_and_large_numbers_keep_their_digits(number: float, text: str) -> None:
    assert number_text(number) == text


@pytest.mark.parametrize(
    ("scale", "means"),
    [(1e-9, ["0.8500000110", "0.8500000210"]), (1e-2, ["0.9600", "1.0600"]), (0.0, ["0.8500", "0.8500"])],
)
def test_the_smallest_sd_of_a_table_has_two_significant_digits(scale: float, means: List[str]) -> None:
    scores = {
        name: [0.85 + scale * step for step in steps] for name, steps in {"a": (10, 11, 12), "b": (20, 21, 22)}.items()
    }
    candidates = summary(History(("a", "b"), runs(scores)))["candidates"]
    assert [number_text(each.mean, decimals_of(candidates)) for each in candidates] == means
