"""Forecasts the further runs of a selection, cheap enough for a live display, by draws from its two-way model."""

import time
from dataclasses import dataclass, replace
from typing import Any, Optional

import numpy as np

from fiesta_allennlp.choosing.beliefs.student_t import ModeratedTPosterior
from fiesta_allennlp.choosing.fixed_confidence import FixedConfidence
from fiesta_allennlp.choosing.probability.batch import Batch
from fiesta_allennlp.choosing.probability.leads import PRIOR_DF, TwoWayModel
from fiesta_allennlp.choosing.strategy import Decision, Strategy
from fiesta_allennlp.core.records import History
from fiesta_allennlp.core.seeding import strategy_rng

MAX_RUNS = 10**9
"""More runs than any limit allows."""

NUM_DRAWS, MIN_DRAWS, MAX_NUMBERS = 100, 20, 10**7
"""The number of simulated selections: fewer, where they would have more numbers than that to draw."""

QUANTILES = (5, 50, 95)
"""Per cent of the draws below the three numbers of a forecast."""

MAX_CANDIDATES = 30
"""The most candidates of a simulated selection: where there are more, those that are most probably the best. The time
of a forecast rises with the square of their number."""

UNITS_PER_SLOT = 20
"""A simulated selection makes one run at a time for each so many that it begins with, so that a long one takes no
longer."""


@dataclass(frozen=True)
class Forecast:
    """How many more runs a selection will make: the 5, 50 and 95% quantiles of simulated selections.

    `is_limited` is true if the upper end is the most runs that a limit allows. `prob_decided` is the share that named a
    winner by then. `seconds_per_run` counts all workers together and is 0 if it is unknown. `seconds_left` is the rest
    of `--max-hours`, if the forecast ends there.
    """

    low: int
    median: int
    high: int
    is_limited: bool
    prob_decided: float
    seconds_per_run: float = 0.0
    seconds_left: Optional[float] = None

    def at_least(self, num_runs: int) -> "Forecast":
        """Return the forecast of a selection that makes no fewer runs than these."""
        low, median, high = (max(number, num_runs) for number in (self.low, self.median, self.high))
        return replace(self, low=low, median=median, high=high)


@dataclass(frozen=True)
class TimeForecast:
    """What can be decided in `max_hours`, in which `num_runs` fit: `low`, `median` and `high` are the hours after which
    the selection ends, as in `Forecast`.
    """

    max_hours: float
    num_runs: int
    low: float
    median: float
    high: float
    prob_decided: float


def count_runs(hours: float, seconds: float, *, workers: int) -> int:
    """Return how many runs of these seconds `workers` finish in some hours, at most `MAX_RUNS` each."""
    return workers * int(min(3600 * hours / seconds * (1 + 1e-12), MAX_RUNS))


def forecast_selection(
    strategy: Strategy,
    history: History,
    decision: Decision,
    rng: np.random.Generator,
    *,
    max_runs: Optional[int] = None,
) -> Optional[Forecast]:
    """Forecast how many more runs a selection makes, pending ones included, and whether it is decided then.

    Each draw of what is true from the posterior is one simulated selection. It goes on from the present runs, by the
    same rules.

    Returns `None` if the selection is over, if it has no posterior of `moderated_t` yet, or for rules that need the
    history. `max_runs` is the most runs that there is time for.
    """
    posterior = decision.posterior
    if not isinstance(strategy, FixedConfidence) or not isinstance(posterior, ModeratedTPosterior):
        return None
    if decision.stopped_by is not None or posterior.num_tasks > 1 or not posterior.leads.noise.varied[0]:
        return None
    num_left = np.array([strategy.num_left(history, name) + history.num_pending(name) for name in history.active])
    room = int(min(strategy.room(history) + len(history.pending), num_left.sum()))
    (numbers,), (model,) = posterior.numbers, posterior.model.tasks
    num_slots = max(1, int((~np.isnan(numbers)).sum()) // UNITS_PER_SLOT)
    chances = np.where(posterior.leads.is_leader, 1.0, posterior.leads.tails(decision.margin))[0]
    by_chance = np.argsort(-chances, kind="stable")
    likely, others = np.sort(by_chance[:MAX_CANDIDATES]), by_chance[MAX_CANDIDATES:]
    num_missing = np.maximum(0, strategy.num_starts - (~np.isnan(numbers[others])).sum(axis=1))
    num_starts_of_others = int(num_missing[num_left[others] >= 1].sum())
    num_left, numbers = num_left[likely], numbers[likely]
    start = ~np.isnan(numbers), numbers
    rules = strategy.rules(int(start[0].sum()) + room - num_starts_of_others, num_slots)
    if rules is None or room <= num_starts_of_others:
        return None
    limit = room if max_runs is None else min(room, max_runs)
    own_limit = max(0, limit - num_starts_of_others)
    length = own_limit + rules.num_slots
    num_draws = int(np.clip(MAX_NUMBERS // (len(num_left) * length), MIN_DRAWS, NUM_DRAWS))
    shares_units = bool((start[0].sum(axis=0) > 1).any())
    drawn = draw_continuation(model, num_draws, length, rng, shares_units=shares_units, candidates=likely)
    units = np.broadcast_to(drawn.units, drawn.numbers.shape)
    rules = replace(rules, max_runs=own_limit)
    ends = Batch(drawn.numbers, units, rules, is_open=num_left >= 1, start=start).run()
    num_added = ends.num_runs.sum(axis=1) + num_starts_of_others
    low, median, high = np.percentile(num_added, QUANTILES, method="inverted_cdf")
    is_decided = ends.is_named & (num_added <= limit)
    forecast = Forecast(int(low), int(median), int(high), bool(high >= limit), float(is_decided.mean()))
    return forecast.at_least(max(1, len(decision.lacking)))


def forecast_open_selection(
    strategy: Strategy,
    history: History,
    decision: Decision,
    *,
    seed: int,
    workers: int,
    seconds_left: Optional[float] = None,
) -> Optional[Forecast]:
    """Forecast the further runs of a selection, within the rest of `--max-hours`.

    The draws depend on the number of finished runs, so the same history gives the same forecast. Without `workers`,
    runs take no time.
    """
    seconds_per_run = (history.mean_seconds or 0.0) / workers if workers else 0.0
    max_runs = None
    if seconds_left is not None and seconds_per_run:
        max_runs = count_runs(max(0.0, seconds_left) / 3600, seconds_per_run, workers=1)
    rng = strategy_rng(seed, len(history.evaluations))
    forecast = forecast_selection(strategy, history, decision, rng, max_runs=max_runs)
    return forecast and replace(forecast, seconds_per_run=seconds_per_run, seconds_left=seconds_left)


SHARE_OF_FORECASTS = 0.1


class LiveForecast:
    """Forecasts a running selection after its runs. Forecasts take a tenth of its time at most, so the last one is
    repeated after runs of less than a second or two."""

    def __init__(self) -> None:
        self._last: Optional[Forecast] = None
        self._due_at = 0.0

    def __call__(self, *args: Any, **options: Any) -> Optional[Forecast]:
        """Return what `forecast_open_selection` returns for these arguments, or returned before."""
        begin = time.monotonic()
        if begin >= self._due_at:
            self._last = forecast_open_selection(*args, **options)
            end = time.monotonic()
            self._due_at = end + (end - begin) * (1 / SHARE_OF_FORECASTS - 1)
        return self._last


@dataclass(frozen=True, eq=False)
class Continuation:
    """Further numbers of candidates, in several draws of what is true.

    Attributes:
        means: true means. Shape: `(size, num_candidates)`.
        numbers: shape `(size, num_candidates, length)`.
        units: the unit of each number, the same in every draw: from 0 those that exist, then new ones. Shape:
            `(num_candidates, length)`.
    """

    means: np.ndarray
    numbers: np.ndarray
    units: np.ndarray


def draw_continuation(
    model: TwoWayModel,
    size: int,
    length: int,
    rng: np.random.Generator,
    *,
    shares_units: bool,
    candidates: Optional[np.ndarray] = None,
) -> Continuation:
    """Draw true means, noise and effects of units from their posterior by the model, and numbers from these.

    The noise variance of a candidate is drawn from its residuals and d0 degrees of freedom of the pooled noise.

    Args:
        model: two-way model of one selection.
        shares_units: whether candidates share units. A candidate then takes the units that others have and it lacks
            first. If not, each number is of a unit of its own.
        candidates: the indices of the candidates to return; all by default.
    """
    chosen: Any = slice(None) if candidates is None else candidates
    known_effects = model.unit_weights[0, 0] * model.residuals[0].sum(axis=0)
    noise = model.residuals[0] - model.is_there[0] * known_effects
    squares = (noise**2 / (1 - model.unit_weights[0])).sum(axis=1)
    df = PRIOR_DF + model.num_units[0] - 1
    noise_sds = np.sqrt((PRIOR_DF * model.noise.variance[0] + squares) / rng.chisquare(df, size=(size, len(df))))
    spread = rng.normal(size=noise_sds.shape) @ np.linalg.cholesky(model.covariance[0]).T
    means = (model.means[0] + noise_sds * spread)[:, chosen]
    units = next_units(model.is_there[0, chosen] > 0, length, shares_units=shares_units)
    variance, share = model.noise.variance[0], model.noise.unit_share[0]
    num_new = max(0, int(units.max(initial=-1)) + 1 - len(known_effects))  # units that the model does not know
    variances = np.append(variance * model.unit_weights[0, 0], np.full(num_new, variance * share / (1 - share)))
    location = np.append(known_effects, np.zeros(num_new))
    effects = location + np.sqrt(variances) * rng.normal(size=(size, len(location)))
    new_noise = rng.normal(size=(size, *units.shape)) * noise_sds[:, chosen, None]
    return Continuation(means, means[:, :, None] + effects[:, units] + new_noise, units)


def next_units(has_number: np.ndarray, length: int, *, shares_units: bool) -> np.ndarray:
    """Return the units of the next numbers of each candidate. Shape: `(num_candidates, length)`.

    Args:
        has_number: whether a candidate has a number of a unit. Shape: `(num_candidates, num_units)`.
    """
    num_candidates, num_units = has_number.shape
    if not shares_units:
        return num_units + np.arange(num_candidates)[:, None] + num_candidates * np.arange(length)
    new = num_units + np.arange(length)
    return np.stack([np.concatenate([np.flatnonzero(~row), new])[:length] for row in has_number])
