import re
from dataclasses import replace
from typing import Any, Dict, List, Optional, cast

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fiesta_allennlp.choosing import forecast as module
from fiesta_allennlp.choosing.fixed_confidence import FixedConfidence
from fiesta_allennlp.choosing.forecast import (
    Forecast,
    LiveForecast,
    TimeForecast,
    count_runs,
    draw_continuation,
    forecast_open_selection,
    forecast_selection,
    next_units,
)
from fiesta_allennlp.choosing.probability.batch import Batch
from fiesta_allennlp.choosing.probability.leads import Table, TwoWayModel, pool_noise
from fiesta_allennlp.choosing.strategy import RunLimit, Strategy
from fiesta_allennlp.core.records import History
from fiesta_allennlp.core.seeding import strategy_rng
from fiesta_allennlp.reports.words import time_forecast_text
from fiesta_allennlp.selecting.results.facts import forecast_text
from tests.choosing.histories import history
from tests.choosing.simulation import built


def certain(num_runs: int, *, is_limited: bool = False) -> Forecast:
    return Forecast(num_runs, num_runs, num_runs, is_limited, prob_decided=1.0)


def top_two(**options: Any) -> FixedConfidence:
    return cast(FixedConfidence, built("top_two", **{"belief": "moderated_t", **options}))


def forecast_of(rule: Strategy, now: History, seed: int = 0) -> Optional[Forecast]:
    return forecast_selection(rule, now, rule.recommend(now), np.random.default_rng(seed))


def pair(gap: float, num_runs: int, noise_sd: float = 0.01) -> History:
    """Two candidates whose means on shared splits differ by exactly this, each with this noise."""
    rng = np.random.default_rng(num_runs)
    splits, noise = rng.normal(0, 0.02, num_runs), rng.normal(size=(2, num_runs))
    noise = noise_sd * (noise - noise.mean(axis=1, keepdims=True))
    return history({"a": (0.8 + gap + splits + noise[0]).tolist(), "b": (0.8 + splits + noise[1]).tolist()})


def test_a_sure_winner_needs_only_the_runs_that_are_asked_for() -> None:
    clear = pair(0.5, 4)
    assert forecast_of(top_two(stop="early_looks"), clear) is None, "it is over"
    assert forecast_of(top_two(stop="early_looks", min_runs=12), clear) == certain(16)
    assert forecast_of(top_two(stop="early_looks", num_starts=5), clear) == certain(2)


def test_an_open_gap_gives_an_interval_that_the_limit_cuts() -> None:
    now = pair(0.004, 12)
    wide = forecast_of(top_two(), now)
    assert wide is not None and wide.low < wide.median < wide.high
    cut = forecast_of(top_two(max_evaluations=40), now)
    assert cut is not None and (cut.high, cut.is_limited) == (16, True) and 0 < cut.prob_decided < 0.8
    scaled = replace(now, evaluations=tuple(replace(run, score=1000 * run.score) for run in now.evaluations))
    assert forecast_of(top_two(), scaled) == wide, "it does not depend on the unit"
    shorter = forecast_of(top_two(margin=0.001), now)
    assert shorter is not None and shorter.median < wide.median


def test_a_rule_that_gives_up_ends_before_the_limit_without_a_winner() -> None:
    tie = forecast_of(top_two(stop="early_looks", max_evaluations=1000), pair(0.0, 60))
    assert tie is not None and tie.high < 880 and tie.prob_decided < 0.8


@pytest.mark.parametrize("options", [{"belief": "student_t"}, {"stop": "glr"}])
def test_rules_that_need_the_history_have_no_forecast(options: Dict[str, str]) -> None:
    assert forecast_of(top_two(**options), pair(0.004, 12)) is None


def test_most_forecasts_hold_what_the_selection_then_takes() -> None:
    """90% should, of 30 selections between two candidates half a sd apart, forecast after 5 runs each."""
    strategy = top_two(stop="early_looks")
    num_inside = num_open = 0
    for seed in range(20, 50):
        rng = np.random.default_rng(seed)
        scores = 0.8 + rng.normal(0, 0.02, (1, 100)) + rng.normal(0, 0.01, (2, 100)) - [[0.0], [0.005]]
        now = history({name: row[:5].tolist() for name, row in zip("ab", scores, strict=True)})
        if (forecast := forecast_of(strategy, now, seed)) is None:
            continue
        rules = strategy.rules(100, num_slots=1)
        assert rules is not None
        units = np.broadcast_to(np.arange(5, 100), (1, 2, 95))
        ends = Batch(scores[None, :, 5:], units, rules, start=(np.ones((2, 5)), scores[:, :5])).run()
        num_open += 1
        num_inside += forecast.low <= ends.num_runs.sum() <= forecast.high
    assert num_open > 20 and num_inside / num_open >= 0.85


def test_only_so_many_runs_are_left_where_each_candidate_is_limited() -> None:
    """Of 8 documents each, 5 and 5 are left, and the two are equal."""
    rule = top_two(stop="early_looks")
    now = history({"a": [0.9, 0.8, 0.85], "b": [0.8, 0.9, 0.85]})
    assert (free := forecast_of(rule, now)) is not None and free.high > 10
    rule.run_limit = RunLimit(8, measure=lambda history, name: 0.0)
    assert (limited := forecast_of(rule, now)) is not None
    assert (limited.high, limited.is_limited) == (10, True)


def test_of_many_candidates_only_the_likely_ones_are_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others would run no more; but those that have not begun all their starting runs make these."""
    rng, means = np.random.default_rng(5), [0.8, 0.797, *np.linspace(0.7, 0.72, 28)]
    scores = {f"c{index}": (mean + rng.normal(0, 0.005, 3)).tolist() for index, mean in enumerate(means)}
    short = {name: values[:2] for name, values in scores.items()}
    drawn: List[int] = []
    draw = module.draw_continuation
    monkeypatch.setattr(module, "MAX_CANDIDATES", 20)
    monkeypatch.setattr(
        module,
        "draw_continuation",
        lambda *args, **options: drawn.append(len(options["candidates"])) or draw(*args, **options),
    )
    few, starting = (forecast_of(top_two(stop="early_looks"), history(own)) for own in (scores, short))
    monkeypatch.setattr(module, "MAX_CANDIDATES", 30)
    everybody = forecast_of(top_two(stop="early_looks"), history(scores))
    assert few is not None and everybody is not None and starting is not None
    assert drawn == [20, 20, 30]
    assert few.median == pytest.approx(everybody.median, rel=0.3) and abs(few.low - everybody.low) <= 6
    assert starting.low >= 30
    monkeypatch.setattr(module, "MAX_CANDIDATES", 20)
    cut = forecast_of(top_two(stop="early_looks", max_evaluations=95), history(short))
    assert cut is not None and (cut.high, cut.is_limited) == (35, True), "the limit leaves room for all starting runs"


def test_a_forecast_is_at_least_the_runs_that_are_listed() -> None:
    forecast = Forecast(1, 4, 9, is_limited=False, prob_decided=1.0)
    assert forecast.at_least(6) == Forecast(6, 6, 9, is_limited=False, prob_decided=1.0)


def test_the_display_has_runs_and_time() -> None:
    assert forecast_text(None) == ""
    assert "9 more runs (the limit)" in forecast_text(certain(9, is_limited=True))
    wide = Forecast(20, 30, 60, True, 0.8, seconds_per_run=120.0)
    assert re.search(r"30 .*5-95%: 20 to 60, the limit.* 0\.7 to 2\.0 h$", forecast_text(wide))


def test_hours_say_what_can_be_decided_by_then() -> None:
    text = time_forecast_text(TimeForecast(72, 108, 18.2, 41.3, 72.0, 0.81))
    assert re.findall(r"[\d.]+", text) == ["108", "72", "0.81", "41", "5", "95", "18", "72"]
    assert count_runs(72, 2400, workers=1) == 108 and count_runs(1, 2400, workers=4) == 4
    assert count_runs(1e300, 1e-300, workers=2) == 2 * 10**9


def test_an_open_selection_is_forecast_within_the_hours_that_are_left() -> None:
    rule = top_two(stop="early_looks")
    untimed = history({"a": [0.81, 0.82, 0.80], "b": [0.80, 0.81, 0.795]})
    timed = replace(untimed, evaluations=tuple(replace(run, seconds=600.0) for run in untimed.evaluations))

    def forecast(now: History, seconds_left: float) -> Optional[Forecast]:
        decision = rule.recommend(now)
        return forecast_open_selection(rule, now, decision, seed=1, workers=2, seconds_left=seconds_left)

    limited, whole = forecast(timed, 3000.0), forecast(untimed, 3000.0)
    plain = forecast_selection(rule, timed, rule.recommend(timed), strategy_rng(1, 6), max_runs=10)
    assert plain is not None and limited == replace(plain, seconds_per_run=300.0, seconds_left=3000.0)
    assert (limited.high, limited.is_limited) == (10, True)
    assert "50 min of --max-hours" in forecast_text(limited)
    assert whole is not None and whole.high > 10
    assert forecast_text(whole).endswith(")"), "runs of an unknown duration"
    late = forecast(timed, -60.0)
    assert late is not None and (late.low, late.high, late.is_limited, late.prob_decided) == (1, 1, True, 0.0)


def test_a_live_forecast_is_repeated_until_nine_times_its_duration_have_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    moments, forecasts = iter([100.0, 102.0, 119.0, 120.0, 120.5]), iter("ab")
    monkeypatch.setattr(module.time, "monotonic", lambda: next(moments))
    monkeypatch.setattr(module, "forecast_open_selection", lambda: next(forecasts))
    forecast = LiveForecast()
    assert [forecast() for _ in range(3)] == ["a", "a", "b"]


def test_a_candidate_takes_the_units_of_the_others_first() -> None:
    has_number = np.array([[True, True, True], [True, False, True]])
    assert_array_equal(next_units(has_number, 3, shares_units=True), [[3, 4, 5], [1, 3, 4]])
    own = next_units(has_number, 3, shares_units=False)
    assert len(np.unique(own)) == 6
    assert own.min() == 3


@pytest.mark.parametrize("unit_sd", [0.0, 3.0])
def test_long_pilots_are_continued_as_they_began(unit_sd: float) -> None:
    """Means, noise by candidate and effects of units are those of the pilot."""
    rng = np.random.default_rng(1)
    noise_sds, means = np.array([1.0, 1.0, 0.5]), np.array([5.0, 4.0, 3.0])
    effects = unit_sd * rng.normal(size=400)
    pilot = means[:, None] + effects + noise_sds[:, None] * rng.normal(size=(3, 400))
    pilot[0, 300:] = np.nan
    table = Table(pilot[None])
    drawn = draw_continuation(TwoWayModel(table, pool_noise(table)), 200, 300, rng, shares_units=True)
    assert_allclose(drawn.means.mean(axis=0) - drawn.means.mean(), means - means.mean(), atol=0.15)
    known = drawn.numbers[:, 0, :100] - drawn.means[:, [0]]
    assert np.corrcoef(known.mean(axis=0), effects[300:])[0, 1] > 0.9 if unit_sd else True
    differences = drawn.numbers[:, 1] - drawn.numbers[:, 2]
    assert differences.std(axis=1).mean() == pytest.approx(1.25**0.5, rel=0.05)
    assert (drawn.numbers[:, 1].std(axis=1) ** 2).mean() == pytest.approx(pilot[1].var(), rel=0.15)
