"""The record of a result: its numbers and its file."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple

import numpy as np
import pytest

from fiesta_allennlp.choosing.beliefs import ModeratedT
from fiesta_allennlp.choosing.forecast import Forecast
from fiesta_allennlp.choosing.strategy import Decision, analyse
from fiesta_allennlp.core.errors import StoreError
from fiesta_allennlp.core.metrics import Metric
from fiesta_allennlp.core.records import Evaluation, Failure, History
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.reports.words import selection_in_words
from fiesta_allennlp.selecting.results.candidate_result import CandidateResult, FailedRun
from fiesta_allennlp.selecting.results.facts import LeadOverRival, describe_collapsed_runs
from fiesta_allennlp.selecting.results.result import Result

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


def result(history: History, metric: str = "f1", **decision: Any) -> Result:
    return Result.from_decision(history, Decision(**{"best": "a", **decision}), Metric.parse(metric))


def test_numbers_of_every_candidate(history: History) -> None:
    probabilities = {"a": 0.9, "b": 0.1}
    within = {"a": 0.97, "b": 0.1}
    made = result(history, prob_best=probabilities, prob_within_margin=within, margin=0.01, stopped_by="confidence")
    assert (made.best, made.confidence, made.num_evaluations, made.num_failures) == ("a", 0.97, 4, 1)
    a, b, c = made.candidates
    assert (a.mean, a.prob_within_margin, a.prob_best) == (pytest.approx(0.6), 0.97, 0.9)
    assert a.sd == pytest.approx(np.std(SCORES["a"], ddof=1))
    assert a.seconds == 6.0
    assert (b.num_evaluations, b.mean, b.sd) == (1, 0.4, None)
    assert (c.num_evaluations, c.mean, c.withdrawn, c.prob_best) == (0, None, True, None)
    assert (a.mean_seconds, b.mean_seconds, c.mean_seconds) == (2.0, 2.0, None)
    assert (c.state, c.failed_runs) == ("failed", (FailedRun("c-0", "timeout", "out of time"),))
    assert not a.withdrawn and c.failed_because == "max_failures"


@pytest.mark.parametrize(
    ("kinds", "reason"),
    [
        (["machine", "unfit", "unfit"], "unfit"),
        (["unfit", "error"], "max_failures"),
        (["score", "error"], "min_score"),
    ],
)
def test_the_reason_for_which_a_candidate_failed_follows_from_the_kinds_of_its_failures(
    kinds: List[str], reason: str
) -> None:
    failed_runs = tuple(FailedRun(f"c-{number}", kind, "no reason") for number, kind in enumerate(kinds))
    assert CandidateResult("c", state="failed", failed_runs=failed_runs).failed_because == reason


def test_what_an_undecided_selection_lacks_is_counted(history: History) -> None:
    undecided = {"prob_best": {"a": 0.9, "b": 0.1}, "stopped_by": "max_evaluations"}
    assert result(history, **undecided, lacking=("b", "a", "b")).lacking == {"b": 2, "a": 1}


def decided(scores: Mapping[str, Sequence[float]], metric: str = "f1") -> Result:
    """What the default model says of these scores, higher or lower being better by the metric."""
    history = History(tuple(scores), runs(scores), sign=-1 if metric.startswith("-") else 1)
    decision = replace(analyse(history, ModeratedT()), stopped_by="confidence")
    return Result.from_decision(history, decision, Metric.parse(metric))


@pytest.mark.parametrize("metric", ["f1", "-loss"])
def test_the_lead_is_that_of_the_paired_t_test(metric: str) -> None:
    """Differences of .01, .02 and .03: mean .02, error .01 / sqrt(3), and two candidates pool no noise."""
    sign = -1 if metric == "-loss" else 1
    paired = {"a": (0.51, 0.62, 0.73), "b": (0.50, 0.60, 0.70)}
    made = decided({name: [sign * score for score in scores] for name, scores in paired.items()}, metric)
    error = 0.01 / 3**0.5
    assert made.lead == LeadOverRival("b", *map(pytest.approx, (0.02, error, 0.02 / error, 2.0)))
    said = "a leads b by 0.02 (standard error 0.0058, t 3.46 with 2.0 degrees of freedom)."
    assert said in " ".join(selection_in_words(made))
    assert made.lead.rival_has_better_mean is False


def test_a_winner_with_a_lower_mean_is_explained() -> None:
    """a leads on the splits that both have seen, and has a third, hard one to itself."""
    made = decided({"a": (0.52, 0.63, 0.30), "b": (0.50, 0.60)})
    assert made.lead is not None and made.lead.rival_has_better_mean
    assert "b has a higher mean" in " ".join(selection_in_words(made))
    assert decided({"a": (0.5, 0.6), "b": (0.4, 0.5)}).lead is None, "nothing varied"


@pytest.mark.parametrize("metric", ["f1", "-loss"])
def test_runs_far_from_the_others_are_named(metric: str) -> None:
    """Median .8 and MAD .01, so one robust sd is .014826; for a minimised metric, far is far above."""
    sign = -1 if metric == "-loss" else 1
    scores = {"a": [0.79, 0.8, 0.81, 0.8, 0.4, 0.79, 0.81], "b": [0.7, 0.71, 0.72, 0.7, 0.71, 0.72, 0.73]}
    reported = runs({name: [sign * x for x in row] for name, row in scores.items()})
    history = History(tuple(scores), reported, sign=sign)
    made = result(history, metric, stopped_by="interrupted")
    (found,) = made.collapsed
    assert (found.candidate, found.num_runs, found.scores) == ("a", 7, {"a-4": sign * 0.4})
    assert found.sds == pytest.approx(0.4 / 0.014826)
    side = "above" if sign < 0 else "below"
    text = describe_collapsed_runs(found, minimise=sign < 0)
    assert re.search(rf"1 of 7 runs of a .* 27 .* {side} .*\(a-4: {sign * 0.4:g}\)", text)
    assert text in selection_in_words(made)
    assert result(replace(history, sign=-sign)).collapsed == ()


def test_what_is_written_is_read(tmp_path: Path, history: History) -> None:
    probabilities = {"prob_best": {"a": 0.9, "b": 0.1}, "prob_within_margin": {"a": 0.97, "b": 0.1}}
    decision = Decision("a", 0.01, stopped_by="budget", **probabilities, lacking=("b",))
    facts = {"strategy": {"type": "top_two"}, "sets": ("train", "test"), "seed": "3", "directory": tmp_path}
    facts["forecast"] = Forecast(1, 2, 3, is_limited=True, prob_decided=0.5)
    history = replace(history, sign=-1)
    made = Result.from_decision(history, decision, Metric("loss", minimise=True), **facts)
    made.write()
    assert Result.read(tmp_path) == made
    written = json.loads((tmp_path / "selection.json").read_text())
    told = {"best": "a", "leading": "a", "confidence": 0.97, "num_evaluations": 4, "seconds": 8.0, "metric": "-loss"}
    assert told.items() <= written.items() and written["sets"] == ["train", "test"]
    c = written["candidates"][2]
    assert (c["failures"], c["state"]) == (1, "failed")
    assert c["failed_runs"] == [{"run": "c-0", "kind": "timeout", "error": "out of time", "machine": ""}]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "cannot be read"),
        ('{"format": 3}', "cannot be read"),
        ('{"format": 4, "version": "9.1"}', "has format 4, .* format 3. .*9.1"),
    ],
)
def test_a_file_that_is_no_result_is_refused(tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / "selection.json").write_text(text)
    with pytest.raises(StoreError, match=f"selection.json {named}"):
        Result.read(tmp_path)


@pytest.mark.parametrize(
    ("stopped_by", "best", "is_decided"),
    [("confidence", "a", True), ("budget", "a", False), ("max_hours", None, False)],
)
def test_who_leads_is_the_best_once_it_is_decided(
    history: History, stopped_by: str, best: Any, is_decided: bool
) -> None:
    made = result(history, stopped_by=stopped_by)
    assert (made.leading, made.best, made.decided, made.is_decided) == ("a", best, best is not None, is_decided)


def test_a_removed_candidate_has_a_state() -> None:
    history = History(("a", "b"), runs({"a": [0.5], "b": [0.4]}), removed=frozenset({"b"}))
    a, b = result(history.with_withdrawn(max_failures=3)).candidates
    assert (a.state, a.removed, b.state, b.removed) == ("taking part", False, "removed", True)


def test_the_best_set_is_the_smallest_that_reaches_the_target() -> None:
    chances = {"cnn": 0.55, "lstm": 0.41, "bert": 0.03, "rnn": 0.01}
    candidates = tuple(CandidateResult(name, num_evaluations=3, mean=0.5, prob_best=p) for name, p in chances.items())
    result = Result("cnn", "max_evaluations", "f1", candidates[::-1])
    assert result.best_set == ("cnn", "lstm") and result.content()["best_set"] == ("cnn", "lstm")
    assert "cnn or lstm is the best with probability 0.960." in selection_in_words(result)[0]
    assert replace(result, target=0.99).best_set == ("cnn", "lstm", "bert")
    wide = replace(result, target=0.5)
    assert wide.best_set == ("cnn",) and "is the best with" not in selection_in_words(wide)[0]
    within_margin = replace(result, stopped_by="confidence", margin=0.1)
    assert (within_margin.best, within_margin.best_set) == ("cnn", ("cnn", "lstm"))
    assert Result(None, None, "f1", (CandidateResult("a"),)).best_set == ()
