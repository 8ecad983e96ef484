from dataclasses import replace
from typing import Any, Optional

import numpy as np
import pytest

from fiesta_allennlp.beliefs.student_t import StudentTPosterior
from fiesta_allennlp.core.records import History
from fiesta_allennlp.core.seeding import strategy_rng
from fiesta_allennlp.selection.facts import forecast_open_selection
from fiesta_allennlp.selection.texts import forecast_text, time_forecast_text
from fiesta_allennlp.strategies.base import RunLimit, Strategy
from fiesta_allennlp.strategies.forecast import (
    Forecast,
    StopAtConfidence,
    TimeForecast,
    count_runs,
    forecast_selection,
    make_forecast,
)
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


def forecast_of(rule: Strategy, now: History, seed: int = 0) -> Optional[Forecast]:
    return forecast_selection(rule, now, rule.recommend(now), np.random.default_rng(seed))


def test_only_so_many_runs_are_left_where_each_candidate_is_limited() -> None:
    """Of 8 documents each, 5 and 5 are left, and the two are equal."""
    rule = built("top_two", stop="early_looks")
    now = history({"a": [0.9, 0.8, 0.85], "b": [0.8, 0.9, 0.85]})
    assert (free := forecast_of(rule, now)) is not None and free.high > 10
    rule.run_limit = RunLimit(8, measure=lambda history, name: 0.0)
    assert (limited := forecast_of(rule, now)) is not None
    assert (limited.high, limited.is_limited) == (10, True)


def test_a_collapsed_run_asks_for_the_runs_of_the_rule_of_three() -> None:
    rule = built("top_two", stop="early_looks")
    scores = {"a": [0.9, 0.91, 0.9, 0.92, 0.91], "b": [0.89, 0.9, 0.91, 0.9, 0.91]}
    steady = forecast_of(rule, history(scores))
    collapsed = forecast_of(rule, history({**scores, "c": [0.5, 0.51, 0.5, 0.51, 0.5, 0.0]}))
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
    timed = found and replace(found, seconds_per_run=seconds_per_run, seconds_left=seconds_left)
    assert forecast_text(timed) == text


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


def test_an_open_selection_is_forecast_within_the_hours_that_are_left() -> None:
    rule, scores = built("top_two", stop="early_looks"), {"a": [0.81, 0.82, 0.80], "b": [0.80, 0.81, 0.795]}
    untimed = history(scores)
    timed = replace(untimed, evaluations=tuple(replace(run, seconds=600.0) for run in untimed.evaluations))

    def forecast(now: History, seconds_left: float) -> Optional[Forecast]:
        decision = rule.recommend(now)
        return forecast_open_selection(rule, now, decision, seed=1, workers=2, seconds_left=seconds_left)

    limited, whole = forecast(timed, 3000.0), forecast(untimed, 3000.0)
    plain = forecast_selection(rule, timed, rule.recommend(timed), strategy_rng(1, 6), max_runs=10)
    assert plain is not None and limited == replace(plain, seconds_per_run=300.0, seconds_left=3000.0)
    assert (limited.high, limited.is_limited) == (10, True)
    assert "within the remaining 50 min of --max-hours" in forecast_text(limited)
    assert whole is not None and whole.high > 10
    assert forecast_text(whole).endswith(")"), "runs of an unknown duration"
    late = forecast(timed, -60.0)
    assert late is not None and (late.low, late.high, late.is_limited, late.prob_decided) == (1, 1, True, 0.0)
