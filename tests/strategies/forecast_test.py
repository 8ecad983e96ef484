from dataclasses import replace
from typing import Any, List, Optional

import numpy as np
import pytest

from fiesta_allennlp.beliefs.student_t import StudentTPosterior
from fiesta_allennlp.core.records import Forecast, LoopRuns, TimeForecast, count_runs
from fiesta_allennlp.core.seeding import strategy_rng
from fiesta_allennlp.selection.progress import forecast_open_selection
from fiesta_allennlp.selection.texts import forecast_text, time_forecast_text
from fiesta_allennlp.strategies.base import Minimising
from fiesta_allennlp.strategies.forecast import StopAtConfidence, estimate_plain_loop, make_forecast
from fiesta_allennlp.strategies.stopping_rules import BayesianStop, EarlyLooks, RuleOfThree
from tests.strategies.histories import history
from tests.strategies.simulation import built

SURE = np.full(2, 1e9)


def found(posterior: StudentTPosterior, count: int, **options: Any) -> Optional[Forecast]:
    number = len(posterior.location)
    stop = options.pop("stop", RuleOfThree())
    rule = {"confidence": 0.95, "margin": 0.0, "num_starts": 2, "least_runs": stop.least_runs(0.95), "room": 10**6}
    rule.update({name: options.pop(name) for name in list(options) if name in rule})
    given = {"rule": StopAtConfidence(stop, **rule), "is_open": [True] * number, **options}
    return make_forecast(posterior, [count] * number, rng=np.random.default_rng(0), **given)


def two(gap: float, scale: float, df: float = 1e9) -> StudentTPosterior:
    return StudentTPosterior.simple(np.array([gap, 0.0]), np.full(2, scale), np.full(2, df))


def certain(num_runs: int, *, is_limited: bool = False) -> Forecast:
    return Forecast(num_runs, num_runs, num_runs, is_limited, prob_decided=1.0)


def test_a_winner_that_is_sure_lacks_only_its_own_runs_and_a_rivals() -> None:
    assert found(two(1.0, 1e-9), 2) == certain(20), "twelve of both"
    far = StudentTPosterior.simple(np.array([1.0, 0.0, -5.0]), np.full(3, 1e-9), np.full(3, 1e9))
    assert found(far, 2) == certain(20), "none of the third"
    assert found(far, 2, stop=BayesianStop()) == certain(1)
    assert found(far, 2, is_open=[True, False, True]) == certain(10), "none of one that is done"


def test_the_starting_runs_count_and_a_limit_below_them_decides_nothing() -> None:
    clear = two(1.0, 1e-9)
    assert found(clear, 2, stop=EarlyLooks(), num_starts=3) == certain(2)
    assert found(clear, 2, stop=EarlyLooks(), num_starts=5, is_open=[True, False]) == certain(3)
    assert found(clear, 2, stop=EarlyLooks(), num_starts=3, max_runs=1) == Forecast(2, 2, 2, True, prob_decided=0.0)


def test_an_open_gap_gives_an_interval_that_the_limit_cuts() -> None:
    wide = found(two(0.05, 0.1), 20)
    assert wide is not None and (wide.low < wide.median < wide.high, wide.is_limited) == (True, False)
    assert found(two(5.0, 10.0), 20) == wide, "it does not depend on the unit of the score"
    cut = found(two(0.05, 0.1), 20, room=30)
    assert cut is not None and (cut.high, cut.is_limited) == (30, True) and 0 < cut.prob_decided < 0.5
    assert found(two(0.05, 0.1), 20, max_runs=30) == cut, "this rule does not give up"
    shorter = found(two(0.05, 0.1), 20, margin=0.2)
    assert shorter is not None and shorter.high < wide.high
    known = StudentTPosterior.simple(np.array([0.1, 0.0]), np.array([0.1, 0.0]), SURE)
    assert found(known, 3, room=9) is None


def test_noise_of_few_runs_makes_the_range_wider() -> None:
    known, unknown = found(two(0.2, 0.1), 4), found(two(0.2, 0.1, df=4), 4)
    assert known is not None and unknown is not None and unknown.high > 1.5 * known.high


def test_half_of_the_selections_are_decided_by_the_median_of_the_runs() -> None:
    whole = found(two(0.15, 0.1), 20)
    assert whole is not None
    half = found(two(0.15, 0.1), 20, max_runs=whole.median)
    assert half is not None and half.prob_decided == pytest.approx(0.5, abs=0.08)
    assert (half.low, half.median, half.high) == (whole.low, whole.median, whole.median)


def test_a_rule_that_gives_up_ends_before_the_limit_without_a_winner() -> None:
    tie = found(two(0.0, 0.001), 50, stop=EarlyLooks(), room=400)
    assert tie is not None and tie.high < 400 and not tie.is_limited and tie.prob_decided < 0.6


def test_a_collapsed_run_asks_for_the_runs_of_the_rule_of_three() -> None:
    rule = built("top_two", stop="early_looks")
    scores = {"a": [0.9, 0.91, 0.9, 0.92, 0.91], "b": [0.89, 0.9, 0.91, 0.9, 0.91]}
    steady = rule.forecast(history(scores), np.random.default_rng(0))
    collapsed = rule.forecast(history({**scores, "c": [0.5, 0.51, 0.5, 0.51, 0.5, 0.0]}), np.random.default_rng(0))
    assert steady is not None and collapsed is not None and steady.low < 14 <= collapsed.low, "12 of a and of b"


def test_a_forecast_is_at_least_the_runs_that_are_listed() -> None:
    forecast = Forecast(1, 4, 9, is_limited=False, prob_decided=1.0)
    assert forecast.at_least(6) == Forecast(6, 6, 9, is_limited=False, prob_decided=1.0)


@pytest.mark.parametrize(
    ("found", "seconds_per_run", "seconds_left", "text"),
    [
        (None, 0.0, None, ""),
        (certain(1), 0.0, None, "about 1 more run"),
        (certain(9, is_limited=True), 0.0, None, "about 9 more runs (the limit)"),
        (Forecast(20, 30, 60, True, 0.5), 0.0, 5400.0, "about 30 more runs (5-95%: 20 to 60, the limit)"),
        (Forecast(20, 30, 60, False, 1.0), 30.0, None, "about 30 more runs (5-95%: 20 to 60), 10 to 30 min"),
        (
            Forecast(20, 30, 60, True, 0.812),
            120.0,
            7200.0,
            "about 30 more runs (5-95%: 20 to 60, the limit), 0.7 to 2.0 h; decided within the remaining 2.0 h of "
            "--max-hours with probability 0.81",
        ),
    ],
)
def test_the_display_has_runs_and_time(
    found: Optional[Forecast], seconds_per_run: float, seconds_left: Optional[float], text: str
) -> None:
    assert forecast_text(found, seconds_per_run=seconds_per_run, seconds_left=seconds_left) == text


def test_hours_say_what_can_be_decided_by_then() -> None:
    assert time_forecast_text(TimeForecast(72, 108, 18.2, 41.3, 72.0, 0.81)) == (
        "Time for 108 runs in 72 h: decided by then with probability 0.81; expected after 41 h (5-95%: 18 to 72 h)"
    )
    assert time_forecast_text(TimeForecast(0.5, 1, 0.4, 0.5, 0.5, 1.0)).endswith(
        "probability > 0.99; expected after 0.5 h (5-95%: 0.4 to 0.5 h)"
    )
    assert time_forecast_text(TimeForecast(2, 3)) == "Time for 3 runs in 2 h"
    assert count_runs(72, 2400, workers=1) == 108 and count_runs(1, 2400, workers=4) == 4
    assert count_runs(1e300, 1e-300, workers=2) == 2 * 10**9


def test_a_plain_loop_of_clear_candidates_takes_the_least_runs_and_of_a_tie_the_limit() -> None:
    """Where no limit is near, the loop ends all the same."""

    def loop(location: List[float], max_runs: int = 100) -> Optional[LoopRuns]:
        scale = np.full(2, 0.01 / 12**0.5)
        posterior = StudentTPosterior.simple(np.array(location), scale, np.full(2, 1e3))
        about = {"confidence": 0.95, "margin": 0.0, "stop": RuleOfThree(), "min_rounds": 12, "max_runs": max_runs}
        return estimate_plain_loop(posterior, [12, 12], rng=np.random.default_rng(0), **about)  # type: ignore[arg-type]

    assert loop([0.9, 0.5], max_runs=10**9) == loop([0.9, 0.5]) == LoopRuns(24, 24, is_limited=False)
    tie = loop([0.5, 0.5])
    assert tie is not None and tie.high == 100 and tie.is_limited
    # 2 (1.645 sd / lead)^2 n of each, at a lead of .5 sds and few draws far from it: about 22 rounds or more
    near = loop([0.505, 0.5])
    assert near is not None and near.low < 44 <= near.high < 100


def test_only_a_decided_selection_is_compared_with_a_plain_loop() -> None:
    rule = built("top_two")
    rng = np.random.default_rng(0)
    assert rule.plain_loop(history({"a": [0.5, 0.51, 0.52], "b": [0.5, 0.52, 0.51]}), rng) is None
    clear = history({"a": [0.9, 0.91, 0.92, 0.9], "b": [0.5, 0.51, 0.52, 0.5]})
    found = rule.plain_loop(clear, rng)
    assert found is not None and found.low == 6
    assert Minimising(rule).plain_loop(clear.negated, rng) is not None
    assert built("non_adaptive_fb", budget=8).plain_loop(clear, rng) is None


def test_an_open_selection_is_forecast_within_the_hours_that_are_left() -> None:
    rule, scores = built("top_two", stop="early_looks"), {"a": [0.81, 0.82, 0.80], "b": [0.80, 0.81, 0.795]}
    untimed = history(scores)
    timed = replace(untimed, evaluations=tuple(replace(run, seconds=600.0) for run in untimed.evaluations))
    forecast, text = forecast_open_selection(rule, timed, seed=1, workers=2, seconds_left=3000.0)
    assert forecast is not None and forecast == rule.forecast(timed, strategy_rng(1, 6), max_runs=10)
    assert (forecast.high, forecast.is_limited) == (10, True) and "within the remaining 50 min of --max-hours" in text
    whole, text = forecast_open_selection(rule, untimed, seed=1, workers=2, seconds_left=3000.0)
    assert whole is not None and whole.high > 10 and text.endswith(")"), "runs of an unknown duration"
    late = forecast_open_selection(rule, timed, seed=1, workers=2, seconds_left=-60.0)[0]
    assert late == Forecast(1, 1, 1, is_limited=True, prob_decided=0.0)
