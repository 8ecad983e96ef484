"""Plans with closed forms: nothing but noise that is known, or nothing to simulate."""

import re
from pathlib import Path
from typing import Any, Dict

import numpy as np
import pytest

from fiesta_allennlp import plan
from fiesta_allennlp.choosing.forecast import TimeForecast
from fiesta_allennlp.core.errors import FiestaError
from fiesta_allennlp.tables.simulation.planning import prepare_plan
from fiesta_allennlp.tables.simulation.score_sources import Sampling
from fiesta_allennlp.tables.table_settings import PlanSettings
from tests.score_tables import write_split_table
from tests.selections import write_selection

RNG = np.random.default_rng
PILOT = {"a": [0.61, 0.64, 0.60, 0.65], "b": [0.59, 0.63, 0.58], "c": [0.52, 0.55]}


@pytest.fixture
def pilot(tmp_path: Path) -> Path:
    """A selection that was interrupted: runs of 2 seconds."""
    write_selection(tmp_path / "run", PILOT, confidence=0.9, max_evaluations=40).close()
    return tmp_path / "run"


def test_a_clear_gap_takes_the_fewest_runs_that_a_winner_needs() -> None:
    """With a gap of 1,000 sds the first look that may stop does: after the starting runs of both."""
    estimate = plan(gap=10.0, sd=0.01, seconds=1800, workers=2, repetitions=3, seed=1)
    assert (estimate.default.runs.mean, estimate.default.correct, estimate.default.open) == (6, 1, 0)
    assert estimate.default.seconds.mean == 6 * 1800
    assert list(estimate.margins) == [0.002, 0.004]
    assert {outlook.runs.mean for outlook in estimate.margins.values()} == {6}
    assert "Expect 6 runs" in repr(estimate) and "1 h 30 min with 2 workers" in repr(estimate)


def test_a_claim_is_part_of_the_cost() -> None:
    """A gap of one sd takes 18 runs each, paired, and 17 on official splits, by G*Power for t-tests at 0.025."""
    options: Dict[str, Any] = {"gap": 0.01, "sd": 0.01, "repetitions": 2, "seed": 1}
    shared = plan(**options, seconds=1800, workers=2)
    median = shared.default.runs.median
    assert shared.claim is not None and (shared.claim.runs_each, shared.claim.seconds) == (18, 36 * 1800)
    assert shared.summary["claim"]["total_runs"] == median + 36
    assert shared.claim.total_seconds == shared.default.seconds.median + 36 * 1800
    said = "18 fresh runs of each, power 0.80 (9 h 0 min). Choosing and claiming: "
    assert f"{said}{median + 36:.0f} runs, " in repr(shared)
    official = plan(**options, splits="official").claim
    assert official is not None and (official.runs_each, official.seconds) == (17, None)
    assert plan(**options, splits="independent").claim is plan(**{**options, "gap": 1e-5}).claim is None


def test_hours_say_what_is_decided_by_then_for_every_way_to_choose() -> None:
    """All six runs of two workers take 1 h 30 min."""
    enough = plan(gap=10.0, sd=0.01, seconds=1800, workers=2, repetitions=3, seed=1, max_hours=1.5)
    assert enough.time_forecast == TimeForecast(1.5, 6, 1.5, 1.5, 1.5, 1.0)
    assert [way.prob_decided for way in enough.margins.values()] == [1.0] * 2
    assert re.search(r"6 runs in 1\.5 h: .* > 0\.99; .* 1\.5 h", repr(enough))
    short = plan(gap=10.0, sd=0.01, seconds=1800, workers=2, repetitions=3, seed=1, max_hours=1)
    assert short.time_forecast == TimeForecast(1, 4, 1.0, 1.0, 1.0, 0.0)
    assert short.summary["time"]["prob_decided"] == short.summary["default"]["prob_decided"] == 0
    open_end = plan(gap=0.01, sd=0.02, seconds=3600, repetitions=40, seed=1, max_hours=24, max_evaluations=60)
    assert 0 < open_end.time_forecast.prob_decided < 1 - open_end.default.open
    with pytest.raises(FiestaError, match="--max-hours needs"):
        plan(gap=1, sd=0.1, max_hours=1, repetitions=1)


def test_a_table_with_seconds_is_a_pilot_with_hours(tmp_path: Path) -> None:
    seconds = {"a": "60", "b": "", "c": "120"}
    lines = [f"{name},{seed},{score},{seconds[name]}" for name in PILOT for seed, score in enumerate(PILOT[name])]
    (tmp_path / "s.csv").write_text("\n".join(["candidate,seed,score,seconds", *lines]))
    known = plan(tmp_path / "s.csv", repetitions=2, seed=1, max_hours=1)
    mean = (4 * 60 + 2 * 120) / 6
    assert known.source.seconds == {"a": 60, "b": pytest.approx(mean), "c": 120}, "b has the mean of all"
    assert known.time_forecast.max_hours == 1


def test_a_tie_ends_where_the_limit_leaves_too_few_runs_and_a_margin_above_the_gap_makes_every_answer_right() -> None:
    estimate = plan(gap=0, sd=0.01, confidence=0.999, max_evaluations=60, repetitions=2, seed=1)
    assert estimate.default.runs.high < 60 and (estimate.default.correct, estimate.default.open) == (1, 1)
    assert "No number of runs" in repr(estimate)
    assert "stay open within 60 runs (--max-evaluations)" in repr(estimate)
    estimate = plan(gap=0.01, sd=0.1, margin=0.02, max_evaluations=24, repetitions=4, seed=1)
    assert estimate.default.correct == 1
    rows = [row.split() for row in repr(estimate).splitlines()[3:5]]
    assert [row.count("-") for row in rows] == [2] * 2, "no winner can be wrong"


def test_a_larger_margin_is_simulated_as_if_it_were_asked_for() -> None:
    options = {"gap": 0, "sd": 0.01, "max_evaluations": 30, "repetitions": 4, "seed": 2}
    margins = plan(**options).margins
    assert margins == {margin: plan(**options, margin=margin).default for margin in (0.002, 0.004)}
    assert list(plan(**options, margin=0.002).margins) == [0.004]


def test_a_pilot_goes_on_from_its_runs(pilot: Path) -> None:
    estimate = plan(pilot, repetitions=3, seed=3)
    assert (estimate.simulator.num_done, estimate.limit, estimate.settings.confidence) == (9, 40, 0.9)
    assert 9 <= estimate.default.runs.low <= estimate.default.runs.high <= 40
    # runs of 2 s each, by one worker
    assert estimate.default.seconds.mean == pytest.approx(2 * (estimate.default.runs.mean - 9))
    assert "9 of them have" in repr(estimate)
    for options in ({"splits": "official"}, {"wide": ["a", "b"]}):  # a selection has its own splits
        with pytest.raises(FiestaError, match="is for"):
            plan(pilot, **options)


def test_no_way_to_choose_runs_a_candidate_that_is_done(tmp_path: Path) -> None:
    """Wide gaps: each way takes the fewest runs, and those of the published model are the six that it has."""
    scores = {"a": [0.7, 0.701], "b": [0.6, 0.601], "base": [0.5, 0.501, 0.502, 0.503, 0.504, 0.505]}
    table = write_split_table(tmp_path / "scores.csv", scores)
    estimate = plan(table, done=["base"], splits="official", repetitions=2, seed=1)
    assert estimate.default.runs.mean == 12


def test_draws_of_a_pilot_leave_its_scores_and_splits_as_they_are(pilot: Path) -> None:
    source = prepare_plan(PlanSettings(source=str(pilot))).source
    rngs = {name: RNG(number) for number, name in enumerate(PILOT)}
    drawn_scores = source.draw(Sampling(True, False, 10), split_rng=RNG(9), score_rngs=rngs)
    for name, scores in PILOT.items():
        assert drawn_scores.scores[name][: len(scores)].tolist() == scores
    # b has seen three of the four splits of a: its next run is on the fourth, the one after on a new split
    assert drawn_scores.splits["b"][:4].tolist() == drawn_scores.splits["a"][:4].tolist()
    assert drawn_scores.splits["b"][4] == drawn_scores.splits["a"][4] == drawn_scores.splits["c"][4] == -1
    apart = source.draw(Sampling(False, False, 9999), split_rng=RNG(9), score_rngs=rngs)
    new = [apart.splits[name][len(scores) :] for name, scores in PILOT.items()]
    assert len(set(np.concatenate(new).tolist())) == 3 * 9999
    noise_sd, unit_share = source.noise_sd, source.posterior.leads.noise.unit_share[0]
    sds = [np.std(apart.scores[name][4:]) for name in PILOT]
    assert all(sd > noise_sd * np.sqrt(unit_share / (1 - unit_share)) for sd in sds), "splits vary too"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_split_table(tmp_path / "scores.csv", {"a": [0.7, 0.72, 0.69], "b": [0.4, 0.42, 0.41]})


def test_equal_seeds_repeats_a_plan_from_a_table(table: Path) -> None:
    first, again = (plan(table, repetitions=2, seed=5) for _ in range(2))
    assert (first.default, first.margins) == (again.default, again.margins)
    assert f"so {round(first.default.runs.median) - 6} more" in repr(first)


def test_the_limit_is_that_of_the_rule(tmp_path: Path) -> None:
    """The default is 50 for each candidate that was not removed, and the 2 runs of the one that was."""
    scores = {"a": [0.61, 0.62, 0.60], "b": [0.31, 0.33, 0.32], "c": [0.5, 0.52]}
    started = {"max_evaluations": None, "confidence": 0.9, "meta": {"removed": ["c"]}}
    write_selection(tmp_path / "run", scores, **started).close()
    assert plan(tmp_path / "run", repetitions=1, seed=1).limit == 50 * 2 + 2


def test_a_minimised_metric_is_planned_by_its_lowest_mean(tmp_path: Path) -> None:
    """With the directions of the strategy and of the truth apart, no selection would be right."""
    losses = {"high": [3.50, 3.52, 3.49], "low": [3.20, 3.22, 3.21]}
    write_selection(tmp_path / "run", losses, metric="-loss", max_evaluations=40, confidence=0.9).close()
    estimate = plan(tmp_path / "run", repetitions=2, seed=5)
    assert estimate.simulator.minimise
    assert estimate.default.correct == 1
    assert estimate.simulator.true_means["low"] == pytest.approx(3.21, abs=0.01)
    assert "the lowest mean is" in repr(estimate)
    write_selection(tmp_path / "other", losses).close()
    with pytest.raises(FiestaError, match="--minimise is for tables"):
        plan(tmp_path / "other", minimise=True)


NUMBERS: Dict[str, Any] = {"gap": 0.01, "sd": 0.03}


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({**NUMBERS, "gap": float("nan")}, "--gap must .*NaN"),
        ({**NUMBERS, "split_sd": 1e308}, "^--split-sd must be at most"),
        ({**NUMBERS, "minimise": True}, "^--minimise"),
        ({**NUMBERS, "split_sd": 0.02, "splits": "official"}, "^--split-sd 0.02 .* --splits official"),
        ({**NUMBERS, "belief": "logit_student_t"}, "^--belief logit_student_t"),
        ({**NUMBERS, "source": "runs/x"}, "^--gap cannot be combined with runs/x"),
        ({"source": "nowhere"}, "nowhere: no such file"),
        ({**NUMBERS, "strategy": "non_adaptive_fb"}, "^--strategy"),
        ({**NUMBERS, "budget": 30}, "^budget 30: a plan is"),
        ({"a": [0.5, 0.6], "b": [0.4]}, "at least 2 .* 'b' has 1"),
        ({"a": [0.5, 0.5], "b": [0.5, 0.5]}, "pilot: all scores"),
    ],
)
def test_what_cannot_be_planned_is_an_error(tmp_path: Path, settings: Dict[str, Any], named: str) -> None:
    """A pilot is given by its scores."""
    if "a" in settings:
        write_selection(tmp_path / "pilot", settings).close()
        settings = {"source": tmp_path / "pilot"}
    with pytest.raises(FiestaError, match=named):
        plan(**settings, repetitions=1)
