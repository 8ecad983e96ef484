"""Simulates the selection that the settings describe: over existing scores, or to plan one and compare other ways."""

import time
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Mapping, Optional, Tuple, cast

from fiesta_allennlp.choosing.fixed_confidence import FixedConfidence
from fiesta_allennlp.choosing.forecast import TimeForecast, count_runs
from fiesta_allennlp.choosing.t_tests import fresh_runs_needed
from fiesta_allennlp.core.choice_settings import INDEPENDENT, SHARED
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.selecting.results.candidate_table import Printable
from fiesta_allennlp.tables.simulation.problems import prepare_plan
from fiesta_allennlp.tables.simulation.score_sources import ScoreSource
from fiesta_allennlp.tables.simulation.simulator import OnRepetitions, Outlook, Simulator, find_best, prepare_simulator
from fiesta_allennlp.tables.table_settings import PlanSettings, ReplaySettings

MARGIN_SHARES = (0.2, 0.4)
"""Margins to compare, in run-to-run sds, where they exceed that of the settings; rounded to one digit."""


@dataclass(frozen=True)
class ClaimCost:
    """What it takes to claim that the best candidate is better than the second: `num_runs` fresh runs, `runs_each` of
    both, which confirm the `gap` of the two true means with probability 0.8. `total_runs` are the median runs of the
    selection and these. Times are of all workers, None if they are unknown."""

    runs_each: int
    num_runs: int
    total_runs: float
    gap: float
    seconds: Optional[float] = None
    total_seconds: Optional[float] = None


@dataclass(frozen=True)
class SimulatedCandidate:
    """One candidate of a simulation. `recommended` is the share of the repetitions that ended with this candidate."""

    name: str
    true_mean: float
    recommended: float


@dataclass(frozen=True, repr=False)
class Simulation(Printable):
    """Simulated selections, by the strategy that was asked for and, in a plan, with larger margins.

    `default` is the strategy that was asked for, `margins` the same with larger margins. `limit` is the most runs of
    the default in a plan, None in a replay. `simulator` has the settings with everything filled in, the source of the
    scores and the true means. `seconds` is wall-clock time, and `max_hours` those for which the outlooks have
    `prob_decided`.
    """

    simulator: Simulator
    default: Outlook
    seconds: float
    limit: Optional[int] = None
    margins: Mapping[float, Outlook] = field(default_factory=dict)
    max_hours: Optional[float] = None

    @cached_property
    def claim(self) -> Optional[ClaimCost]:
        """What a claim adds to a plan on one task; None if the noise is unknown, or too many runs would be needed."""
        best, second = sorted(self.simulator.true_means.values(), reverse=not self.simulator.minimise)[:2]
        gap, noise_sd = abs(best - second), self.source.noise_sd
        if self.limit is None or self.simulator.first_history.tasks or not noise_sd:
            return None
        if self.settings.splits == INDEPENDENT:
            return None
        sds = [noise_sd * 2**0.5] if self.settings.splits == SHARED else [noise_sd, noise_sd]
        runs_each = fresh_runs_needed(gap, sds)
        if runs_each is None:
            return None
        num_runs, runs_before = 2 * runs_each, self.default.runs.median - self.simulator.num_done
        seconds = num_runs * self.seconds_per_run if self.source.knows_seconds else None
        total_seconds = None if seconds is None else self.default.seconds.median + seconds
        return ClaimCost(runs_each, num_runs, runs_before + num_runs, gap, seconds, total_seconds)

    @property
    def seconds_per_run(self) -> float:
        """The mean duration of a further run."""
        return self.default.seconds.mean / max(self.default.runs.mean - self.simulator.num_done, 1)

    @property
    def time_forecast(self) -> Optional[TimeForecast]:
        """What can be decided within `max_hours` from now; None without this limit."""
        if self.max_hours is None or self.default.prob_decided is None:
            return None
        seconds, workers = self.default.seconds, self.settings.batch_size
        seconds_per_run = self.seconds_per_run
        num_runs = count_runs(self.max_hours, seconds_per_run, workers=workers) if seconds_per_run else 0
        hours = (value / workers / 3600 for value in (seconds.low, seconds.median, seconds.high))
        low, median, high = (min(value, self.max_hours) for value in hours)
        return TimeForecast(self.max_hours, num_runs, low, median, high, self.default.prob_decided)

    @property
    def settings(self) -> ReplaySettings:
        return self.simulator.settings

    @property
    def source(self) -> ScoreSource:
        return self.simulator.source

    @property
    def interrupted(self) -> bool:
        return self.default.interrupted

    @property
    def candidates(self) -> Tuple[SimulatedCandidate, ...]:
        means, recommended = self.simulator.true_means, self.default.recommended
        return tuple(SimulatedCandidate(name, mean, recommended.get(name, 0.0)) for name, mean in means.items())

    @property
    def summary(self) -> Mapping[str, Any]:
        settings, source = self.settings, self.source
        return {
            "scores": settings.scores,
            "metric": source.metric.option_text,
            "minimise": self.simulator.minimise,
            "min_score": settings.min_score,
            "best": self.best,
            "candidates": [asdict(candidate) for candidate in self.candidates],
            "sd": source.noise_sd,
            "num_done": self.simulator.num_done,
            "fewest_scores": source.fewest_scores,
            "strategy": settings.strategy_params(),
            "splits": settings.splits,
            "batch_size": settings.batch_size,
            "max_evaluations": self.limit,
            "default": asdict(self.default),
            "margins": [{"margin": margin, **asdict(outlook)} for margin, outlook in self.margins.items()],
            "time": self.time_forecast and asdict(self.time_forecast),
            "claim": self.claim and asdict(self.claim),
            "table": source.read_back and source.read_back.data,
            "notes": list(source.notes),
            "interrupted": self.interrupted,
            "seed": str(settings.seed),
            "seconds": self.seconds,
        }

    @property
    def is_of_numbers(self) -> bool:
        """Whether --gap and --sd describe the problem."""
        return self.limit is not None and self.source.start is None

    @property
    def best(self) -> str:
        """The candidate with the best true mean."""
        return find_best(self.simulator.true_means, 0.0, minimise=self.simulator.minimise)[0]

    def has_wrong_answers(self, margin: float) -> bool:
        """Return whether a winner can be wrong with this margin. It cannot if all candidates are within it, unless each
        repetition has true means of its own."""
        means = self.simulator.true_means
        best_names = find_best(means, margin, minimise=self.simulator.minimise)
        return self.source.start is not None or len(best_names) < len(means)


def replay(
    settings: ReplaySettings,
    *,
    source: Optional[ScoreSource] = None,
    on_repetitions: OnRepetitions = lambda number, total: None,
) -> Simulation:
    """Repeat a selection over a table of scores in parallel. The result depends on settings and seed
    alone.

    An interrupt (`KeyboardInterrupt`) ends it with the repetitions that have finished, and is passed on where there are
    none. `source` takes the place of what `settings.scores` names."""
    start = time.monotonic()
    simulator = prepare_simulator(settings, source)
    (default,) = simulator.run(settings.repetitions, on_repetitions=on_repetitions)
    return Simulation(simulator, default, time.monotonic() - start)


def plan(settings: PlanSettings, *, on_repetitions: OnRepetitions = lambda number, total: None) -> Simulation:
    """Simulate selections of the problem that the settings describe. The result depends on settings and seed alone.

    An interrupt (`KeyboardInterrupt`) ends it with what has finished, and is passed on where that is nothing."""
    start = time.monotonic()
    simulator = prepare_plan(settings)
    rule = cast(FixedConfidence, simulator.strategy)  # checked by `prepare_plan`
    shares = MARGIN_SHARES if rule.belief.has_margin else ()
    sizes = sorted({float(f"{share * (simulator.source.noise_sd or 0.0):.0e}") for share in shares})
    margins = [size for size in sizes if size > simulator.margin]
    max_seconds = None if settings.max_hours is None else 3600 * settings.max_hours * settings.workers
    if max_seconds is not None and not simulator.source.knows_seconds:
        remedy = "Pass --seconds, or name the column of the table that has it: --columns seconds=NAME."
        raise ConfigError(f"--max-hours needs the duration of a run. {remedy}")

    default, *outlooks = simulator.run(
        settings.repetitions, margins=margins, max_seconds=max_seconds, on_repetitions=on_repetitions
    )
    return Simulation(
        simulator,
        default,
        time.monotonic() - start,
        limit=rule.limit_of(simulator.first_history),
        margins=dict(zip(margins, outlooks, strict=True)),
        max_hours=settings.max_hours,
    )
