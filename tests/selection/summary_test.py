import csv
import json
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

import numpy as np
import pytest

from fiesta_allennlp.records import CredibleMargin, Decision, Evaluation, Failure, History
from fiesta_allennlp.reports.words import in_words, savings_in_words
from fiesta_allennlp.seeding import make_request
from fiesta_allennlp.selection.summary import (
    duration_text,
    number_text,
    probability_text,
    summarise,
    write_csv,
    write_json,
)

SCORES: Dict[str, List[float]] = {"a": [0.5, 0.7, 0.6], "b": [0.4], "c": []}


@pytest.fixture
def history() -> History:
    return History(
        candidates=("a", "b", "c"),
        evaluations=tuple(
            Evaluation(make_request(0, name, k, shared_splits=True), score, "f1", seconds=2.0)
            for name, scores in SCORES.items()
            for k, score in enumerate(scores)
        ),
        failures=(Failure(make_request(0, "c", 0, shared_splits=True), "timeout", "out of time"),),
        withdrawn=frozenset({"c"}),
    )


def summary(history: History, **decision: Any) -> Dict[str, Any]:
    return summarise(history, Decision(**{"best": "a", **decision}), {"metric": "f1"})


def test_numbers_of_every_candidate(history: History) -> None:
    probabilities = {"a": 0.9, "b": 0.1}
    made = summary(history, prob_best=probabilities, prob_within_margin=probabilities, stopped_by="confidence")
    assert (made["best"], made["confidence"], made["num_evaluations"], made["num_failures"]) == ("a", 0.9, 4, 1)
    a, b, c = made["candidates"]
    assert a.mean == pytest.approx(0.6)
    assert a.sd == pytest.approx(np.std(SCORES["a"], ddof=1))
    assert a.seconds == 6.0
    assert (b.num_evaluations, b.mean, b.sd) == (1, 0.4, None)
    assert (c.num_evaluations, c.mean, c.withdrawn, c.prob_best) == (0, None, True, None)
    assert (a.mean_seconds, b.mean_seconds, c.mean_seconds) == (2.0, 2.0, None)
    assert c.failure_reasons == ("c-0 timeout: out of time",)


RIVALS = {"prob_best": {"a": 0.9, "b": 0.1}, "prob_within_margin": {"a": 0.9, "b": 0.1}}
WITHIN = {"prob_best": {"a": 0.6}, "prob_within_margin": {"a": 0.97}}


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        ({**RIVALS, "stopped_by": "confidence"}, "a is the best with probability 0.900, by f1"),
        ({**RIVALS, "stopped_by": "max_evaluations"}, "Leading: a (P(best) 0.900), then b (P(best) 0.100)."),
        ({**RIVALS, "stopped_by": "max_hours"}, "--max-hours allows. Leading: a (P(best) 0.900)"),
        ({**RIVALS, "stopped_by": "interrupted"}, "nothing that finished is lost. Leading: a (P(best) 0.900)"),
        ({**RIVALS, "stopped_by": "failures"}, "No comparison: after 4 runs of 3 candidates and 1 failure only a is"),
        ({"stopped_by": "budget"}, "a is the best, by f1, after 4 runs of 3 candidates and 1 failure"),
        ({**WITHIN, "stopped_by": "confidence", "margin": 0.01}, "a is within 0.01 of the best with probability 0.970"),
        (
            {**RIVALS, "stopped_by": "max_evaluations", "credible_margin": CredibleMargin(0.0049, "b")},
            " --margin 0.0049 would have selected b.",
        ),
    ],
)
def test_the_decision_in_words(history: History, decision: Dict[str, Any], words: str) -> None:
    made = summary(history, **decision)
    assert words in in_words(made) and "4 runs of 3 candidates and 1 failure" in in_words(made)


@pytest.mark.parametrize("stopped_by", ["max_evaluations", "interrupted"])
def test_runs_that_are_lacking_for_a_probable_winner_are_told(history: History, stopped_by: str) -> None:
    made = summary(history, prob_best={"a": 0.9, "b": 0.1}, lacking=("b", "a", "b"), stopped_by=stopped_by)
    assert made["lacking"] == {"b": 2, "a": 1}
    assert in_words(made).endswith("b needs 2 more runs and a needs 1 more run.")


@pytest.mark.parametrize(("metric", "better"), [("f1", "higher"), ("-loss", "lower")])
def test_a_winner_with_a_worse_mean_is_explained(metric: str, better: str) -> None:
    """Worked by hand: a leads by .02 on the two splits that both have seen, and has a third, hard one to itself."""
    scores = {"a": (0.52, 0.62, 0.30), "b": (0.50, 0.60), "c": (0.1,)}
    evaluations = tuple(
        Evaluation(make_request(0, name, k, shared_splits=True), -score if better == "lower" else score, metric)
        for name, values in scores.items()
        for k, score in enumerate(values)
    )

    def summarised(number: int, best: Optional[str] = "a") -> Dict[str, Any]:
        history = History(tuple(scores), tuple(e for e in evaluations if e.request.replicate < number))
        return summarise(history, Decision(best=best, stopped_by="confidence"), {"metric": metric})

    expected = {"of": "b", "has_better_mean": True, "num_splits": 2, "difference": pytest.approx(0.02)}
    assert summarised(3)["ahead_on_shared_splits"] == expected
    assert f"b has a {better} mean, but over other splits" in in_words(summarised(3))
    for best in ("b", "c", None):
        assert summarised(3, best)["ahead_on_shared_splits"] is None
    assert "It is ahead of b by 0.02 on the 2 splits that both ran on" in in_words(summarised(2))


def test_the_time_saved_against_equal_allocation(history: History) -> None:
    """Worked by hand: a leads with 3 runs of 2 s, b has 1 of 10 s. Equal: 3 x (2 + 10) = 36 s; spent: 16 s."""
    (b,) = (e for e in history.evaluations if e.request.candidate == "b")
    others = tuple(e for e in history.evaluations if e is not b)
    made = summary(replace(history, evaluations=(*others, replace(b, seconds=10.0))))
    assert (made["seconds"], made["seconds_of_equal_allocation"]) == (16.0, 36.0)
    assert savings_in_words(made) == (
        "The runs took 16.0 s of all workers. Running every candidate as often as a would have taken 36.0 s, "
        "so 56% was saved."
    )


@pytest.mark.parametrize("best", [None, "c", "b"])
def test_nothing_is_said_of_savings_where_there_are_none(history: History, best: Optional[str]) -> None:
    made = summary(history, best=best)
    assert made["seconds_of_equal_allocation"] == {None: None, "c": None, "b": 4.0}[best]
    assert savings_in_words(made) == ""


@pytest.mark.parametrize(
    ("words_for", "texts"),
    [
        (probability_text, {None: "-", 0.5: "0.500", 0.99999: "> 0.999", 1.0: "1.000", 1e-9: "< 0.001", 0.0: "0.000"}),
        (duration_text, {5.04: "5.0 s", 59.4: "59.4 s", 61: "1 min 1 s", 3600: "1 h 0 min", 90061: "25 h 1 min"}),
        (
            number_text,
            {None: "-", 0.12345: "0.1235", 9999999.0: "9999999.0000", 1e7: "1e+07", -1.23456e99: "-1.235e+99"},
        ),
        (partial(number_text, digits=1, sign="+"), {2.0: "+2.0", 1e8: "+1e+08"}),
    ],
)
def test_numbers_in_words(words_for: Callable[[Any], str], texts: Dict[Any, str]) -> None:
    """A probability is never rounded to certainty, and a large number has an exponent."""
    assert {number: words_for(number) for number in texts} == texts


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
