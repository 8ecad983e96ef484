"""Simulates the selection that the settings describe: over existing scores, or to plan one.

A pilot is continued with scores from its posterior: each repetition has its own true means and sds.
"""

import time
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Tuple, cast

import numpy as np
from numpy.random import Generator

from fiesta_allennlp.choosing import Strategy
from fiesta_allennlp.choosing.beliefs.student_t import ModeratedT, ModeratedTPosterior
from fiesta_allennlp.choosing.fixed_confidence import FixedConfidence
from fiesta_allennlp.choosing.forecast import TimeForecast, count_runs, draw_continuation
from fiesta_allennlp.choosing.t_tests import fresh_runs_needed
from fiesta_allennlp.core.choice_settings import INDEPENDENT, MAX_FAILURES, SHARED, ChoiceSettings
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, DataError, full_command
from fiesta_allennlp.core.metrics import METRIC, UNNAMED, Metric
from fiesta_allennlp.core.records import History
from fiesta_allennlp.core.registry import packages_named_in_errors
from fiesta_allennlp.core.texts import count_text
from fiesta_allennlp.selecting.recovery import ScoreThreshold
from fiesta_allennlp.selecting.results.candidate_table import Printable
from fiesta_allennlp.tables import table_settings
from fiesta_allennlp.tables.next_runs import check_tasks
from fiesta_allennlp.tables.run_table import RunTable
from fiesta_allennlp.tables.simulation.score_sources import DrawnScores, Sampling, ScoreSource, number_splits, row_key
from fiesta_allennlp.tables.simulation.simulator import OnRepetitions, Outlook, Simulator, find_best, prepare_simulator
from fiesta_allennlp.tables.table_reader import read_run_table

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
    def settings(self) -> table_settings.ReplaySettings:
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
    settings: table_settings.ReplaySettings,
    *,
    source: Optional[ScoreSource] = None,
    on_repetitions: OnRepetitions = lambda number, total: None,
) -> Simulation:
    """Repeat a selection over a table of scores. The result depends on settings and seed alone.

    An interrupt (`KeyboardInterrupt`) ends it with the repetitions that have finished, and is passed on where there are
    none. `source` takes the place of what `settings.scores` names."""
    start = time.monotonic()
    simulator = prepare_simulator(settings, source)
    (default,) = simulator.run(settings.repetitions, on_repetitions=on_repetitions)
    return Simulation(simulator, default, time.monotonic() - start)


def plan(
    settings: table_settings.PlanSettings, *, on_repetitions: OnRepetitions = lambda number, total: None
) -> Simulation:
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


MIN_RUNS = 2
"""A single run of a candidate gives no estimate of the sd."""


SPLIT_SD, NOISE_SD = 0.0211, 0.0198
"""Standard deviations between splits and within one, over the released scores of the FIESTA paper."""


@dataclass(frozen=True)
class ScorePreset(ScoreSource):
    """Scores mean_i + split_k + noise_ik, normal, with the split's effect shared by all candidates on that split.

    They never run out, and no split comes twice. `noise_sds` are by candidate where they are not `noise_sd`, `split_sd`
    is that of the splits' effects, and `seconds` of a run."""

    name: str
    means: Mapping[str, float]
    noise_sds: Mapping[str, float] = field(default_factory=dict)
    split_sd: float = SPLIT_SD
    seconds: float = 0.0
    noise_sd: float = NOISE_SD

    @property
    def knows_seconds(self) -> bool:
        return self.seconds > 0

    def true_means(self) -> Dict[str, float]:
        return dict(self.means)

    def noise(self, name: str, rng: Generator, length: int) -> np.ndarray:
        """Draw the noise of one candidate's scores beside its mean and the splits' effects. Shape: `(length,)`."""
        return rng.normal(0, self.noise_sds.get(name, self.noise_sd), length)

    def draw(self, sampling: Sampling, *, split_rng: Generator, score_rngs: Mapping[str, Generator]) -> DrawnScores:
        length = sampling.length
        shared = split_rng.normal(0, self.split_sd, length)
        scores: Dict[str, np.ndarray] = {}
        for name, mean in self.means.items():
            rng = score_rngs[name]
            effects = shared if sampling.shared_splits else rng.normal(0, self.split_sd, length)
            scores[name] = mean + effects + self.noise(name, rng, length)
        shared_numbers, own_numbers = dict.fromkeys(scores, np.arange(length)), dict.fromkeys(scores, length)
        splits = shared_numbers if sampling.shared_splits else number_splits(own_numbers)
        return DrawnScores(splits, scores, self.name, seconds=dict.fromkeys(scores, self.seconds))


@dataclass(frozen=True, eq=False)
class PosteriorScores(ScoreSource):
    """Continues a pilot: true means, split effects and sds are one draw from their posterior by `moderated_t`.

    A new run takes the first split of the pilot that its candidate has not used, then new splits. `seconds` is the
    duration of a run, by candidate."""

    name: str
    start: History
    seconds: Mapping[str, float] = field(default_factory=dict)
    metric: Metric = UNNAMED
    notes: Tuple[str, ...] = ()
    read_back: Optional[RunTable] = None
    on_official_splits: bool = False

    @property
    def knows_seconds(self) -> bool:
        return any(self.seconds.values())

    @cached_property
    def posterior(self) -> ModeratedTPosterior:
        """The leads among the candidates."""
        return ModeratedT().posterior(self.start)

    def true_means(self) -> Dict[str, float]:
        return dict(zip(self.start.active, self.posterior.means.tolist(), strict=True))

    @property
    def noise_sd(self) -> float:
        """The pilot's estimate of the run-to-run sd of a typical candidate on one split."""
        return self.posterior.noise_sd

    def draw(self, sampling: Sampling, *, split_rng: Generator, score_rngs: Mapping[str, Generator]) -> DrawnScores:
        names, means = self.start.active, []
        splits: Dict[Any, np.ndarray] = {}
        scores: Dict[Any, np.ndarray] = {}
        for (task, part), model in zip(self.start.by_task.items(), self.posterior.model.tasks, strict=True):
            drawn = draw_continuation(model, 1, sampling.length, split_rng, shares_units=sampling.shared_splits)
            seen = np.unique(np.concatenate(list(map(part.split_seeds, names))))
            # New splits have negative seeds.
            seeds = np.append(seen, -1 - np.arange(drawn.units.max() + 1))[drawn.units]
            for place, name in enumerate(names):
                splits[row_key(name, task)] = np.append(part.split_seeds(name), seeds[place])
                scores[row_key(name, task)] = np.append(part.scores(name), drawn.numbers[0, place])
            means.append(drawn.means[0])
        true_means = dict(zip(names, np.mean(means, axis=0).tolist(), strict=True))
        return DrawnScores(splits, scores, self.name, true_means, self.seconds)


BEST_MEAN = 0.5
"""The best mean of a problem that numbers describe. Only differences count."""

CHOICE_OPTIONS = tuple(f.name for f in fields(ChoiceSettings) if f.name != "budget")


def prepare_plan(settings: table_settings.PlanSettings) -> Simulator:
    """Read and check the problem that the settings describe."""
    path = Path(settings.source or "")
    source: ScoreSource
    stored: Mapping[str, Any] = {}
    if settings.source is None:
        source = _describe_by_numbers(settings)
    elif path.is_dir():
        source, stored = _read_selection(settings, path)
    else:
        table = read_run_table(path, settings)
        table.refuse_single()
        history = ScoreThreshold(settings.min_score, table.metric.minimise).apply_to(table.history(list(table.scores)))
        source = replace(_make_pilot(settings, history, table.metric, table), on_official_splits=not table.has_splits)
    with packages_named_in_errors(stored.get("include_package", ())):
        simulator = prepare_simulator(_choose_settings(settings, stored), source)
    check_tasks(settings, simulator.strategy, simulator.first_history)
    if simulator.strategy.belief.takes_logits:
        name = simulator.settings.strategy_params()["belief"]["type"]
        raise ConfigError(f"--belief {name}: a plan needs a model of the scores, not of their logits. Choose another.")
    return simulator


def _describe_by_numbers(settings: table_settings.PlanSettings) -> ScorePreset:
    numbers = range(settings.candidates or table_settings.DEFAULT_NUM_CANDIDATES)
    means = {f"candidate {number + 1}": BEST_MEAN - (settings.gap or 0.0) * bool(number) for number in numbers}
    split_sd, seconds, noise_sd = (value or 0.0 for value in (settings.split_sd, settings.seconds, settings.sd))
    return ScorePreset("the numbers", means, split_sd=split_sd, seconds=seconds, noise_sd=noise_sd)


def _read_selection(settings: table_settings.PlanSettings, root: Path) -> Tuple[PosteriorScores, Mapping[str, Any]]:
    """Read the runs of a selection, and the settings that it has stored."""
    from fiesta_allennlp.selecting.database import translated_store_errors
    from fiesta_allennlp.selecting.store import open_for_reading  # which plans without a selection do without

    table_settings.refuse_table_options(settings, ("splits", *table_settings.TABLE_OPTIONS), root)
    directory = RunDirectory(root)
    with open_for_reading(directory) as store, translated_store_errors(directory.store):
        meta = store.meta()
        stored = meta.settings or {}
        threshold = ScoreThreshold.from_settings(stored, settings.min_score)
        history = store.history(max_failures=int(stored.get("max_failures", MAX_FAILURES)), score_threshold=threshold)
        metric = Metric.parse(stored.get("metric") or METRIC)
    if meta.kind == "documents":
        raise ConfigError(
            f"{root} was created by {full_command('documents')}, but a plan needs one created by "
            f"{full_command('select')}."
        )
    return _make_pilot(settings, history, metric), stored


def _make_pilot(
    settings: table_settings.PlanSettings, history: History, metric: Metric, read_back: Optional[RunTable] = None
) -> PosteriorScores:
    """Return the runs of a pilot, as reported and numbered from 0, if they are enough for a plan."""
    name, mean_seconds = str(settings.source), history.mean_seconds
    if len(history.active) < 2:
        raise DataError(f"{name}: a plan needs at least two candidates but got {len(history.active)}.")
    for candidate in history.active:
        num_runs = min(part.num_finished(candidate) for part in history.by_task.values())
        if num_runs < MIN_RUNS:
            raise DataError(
                f"{name}: a plan needs at least {MIN_RUNS} runs of every candidate (on every task), but '{candidate}' "
                f"has {num_runs}. Add runs, or plan from --gap and --sd."
            )
    if not np.ptp(np.concatenate([history.scores(candidate) for candidate in history.active])) > 0:
        raise DataError(f"{name}: all scores are equal, so the sd is unknown. Plan from --gap and --sd instead.")
    seconds, finished, notes = {}, [], table_settings.done_note(settings.done)
    for candidate in history.candidates:
        own = sorted(history.evaluations_of(candidate), key=lambda run: run.request.replicate)
        finished += [replace(run, request=replace(run.request, replicate=k)) for k, run in enumerate(own)]
        own_seconds = History((candidate,), tuple(own)).mean_seconds
        seconds[candidate] = settings.seconds or own_seconds or mean_seconds or 0.0
    if num_missed := sum(failure.kind == "score" for failure in history.failures):
        total = count_text(num_missed + len(finished), "run")
        missed = f"{num_missed} of {total} of the pilot missed --min-score. The plan counts only runs that meet it."
        notes = (missed, *notes)
    start = replace(history, evaluations=tuple(finished), pending=(), failures=(), sign=1)
    return PosteriorScores(name, start, seconds, metric, notes, read_back)


def _choose_settings(settings: table_settings.PlanSettings, stored: Mapping[str, Any]) -> table_settings.ReplaySettings:
    """Overlay the settings on those of the selection. From a selection with a budget, keep only the belief."""
    names = CHOICE_OPTIONS if stored.get("budget") is None else ("belief",)
    stored_values = {name: stored[name] for name in names if stored.get(name) is not None}
    requested = {name: getattr(settings, name) for name in CHOICE_OPTIONS if getattr(settings, name) is not None}
    choice = table_settings.ReplaySettings(
        **{**stored_values, **requested},
        scores=settings.source or "the numbers",
        splits=settings.splits or stored.get("splits", SHARED),
        batch_size=settings.workers,
        seed=settings.seed,
        done=settings.done,
    )
    name = choice.strategy_params()["type"]
    strategy_class = Strategy.find(name)
    if strategy_class is not None and not issubclass(strategy_class, FixedConfidence):
        raise ConfigError(
            f"--strategy: a plan needs one that stops at a target confidence, such as top_two, but got {name}."
        )
    return choice
