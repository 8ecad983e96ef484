"""Reads the problem of a plan: numbers, a table of scores, or a selection that has begun.

A pilot is continued with scores from its posterior: each repetition has its own true means and sds.
"""

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Tuple

import numpy as np
from numpy.random import Generator

from fiesta_allennlp.choosing import Strategy
from fiesta_allennlp.choosing.beliefs.moderated_t import ModeratedTPosterior, numbers_by_unit
from fiesta_allennlp.choosing.fixed_confidence import FixedConfidence
from fiesta_allennlp.choosing.forecast import draw_continuation
from fiesta_allennlp.choosing.strategy import build_strategy
from fiesta_allennlp.core.choice_settings import MAX_FAILURES, OFFICIAL, SHARED, ChoiceSettings
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, DataError, full_command
from fiesta_allennlp.core.metrics import METRIC, UNNAMED, Metric
from fiesta_allennlp.core.records import History
from fiesta_allennlp.core.registry import packages_named_in_errors
from fiesta_allennlp.core.texts import count_text
from fiesta_allennlp.selecting.database import translated_store_errors
from fiesta_allennlp.selecting.failures import ScoreThreshold
from fiesta_allennlp.selecting.store import open_for_reading
from fiesta_allennlp.tables.next_runs import check_tasks
from fiesta_allennlp.tables.run_table import RunTable
from fiesta_allennlp.tables.simulation.score_sources import DrawnScores, Sampling, ScoreSource, number_splits
from fiesta_allennlp.tables.simulation.simulator import Simulator, prepare_simulator
from fiesta_allennlp.tables.table_reader import read_run_table
from fiesta_allennlp.tables.table_settings import (
    DEFAULT_NUM_CANDIDATES,
    TABLE_OPTIONS,
    PlanSettings,
    ReplaySettings,
    done_note,
    refuse_table_options,
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
        if sampling.shared_splits:
            splits: Mapping[str, np.ndarray] = dict.fromkeys(scores, np.arange(length))
        else:
            splits = number_splits(dict.fromkeys(scores, length))
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

    @property
    def knows_seconds(self) -> bool:
        return any(self.seconds.values())

    def check_runs(self) -> None:
        """Refuse fewer than two candidates, too few runs of one, or equal scores."""
        if len(self.start.active) < 2:
            raise DataError(f"{self.name}: a plan needs at least two candidates but got {len(self.start.active)}.")
        for name in self.start.active:
            num_runs = min(part.num_finished(name) for part in self.start.by_task.values())
            if num_runs < MIN_RUNS:
                raise DataError(
                    f"{self.name}: a plan needs at least {MIN_RUNS} runs of every candidate (on every task), but "
                    f"'{name}' has {num_runs}. Add runs, or plan from --gap and --sd."
                )
        if not np.ptp(np.concatenate([self.start.scores(name) for name in self.start.active])) > 0:
            raise DataError(
                f"{self.name}: all scores are equal, so the sd is unknown. Plan from --gap and --sd instead."
            )

    @cached_property
    def posterior(self) -> ModeratedTPosterior:
        """The leads among the candidates."""
        parts = self.start.by_task.values()
        return ModeratedTPosterior([numbers_by_unit(part, list(map(part.scores, part.active))) for part in parts])

    def true_means(self) -> Dict[str, float]:
        return dict(zip(self.start.active, self.posterior.means.tolist(), strict=True))

    @property
    def noise_sd(self) -> float:
        """The pilot's estimate of the run-to-run sd of a typical candidate on one split."""
        return self.posterior.noise_sd

    def draw(self, sampling: Sampling, *, split_rng: Generator, score_rngs: Mapping[str, Generator]) -> DrawnScores:
        names, parts, length = self.start.active, self.start.by_task, sampling.length
        drawn = [
            draw_continuation(model, 1, length, split_rng, shares_units=sampling.shared_splits)
            for model in self.posterior.model.tasks
        ]
        splits, scores = {}, {}
        for place, name in enumerate(names):
            for (task, part), new in zip(parts.items(), drawn, strict=True):
                key = (name, task) if task else name
                # New splits have negative seeds.
                seeds = np.append(self._splits_of_tasks[task], -1 - np.arange(new.units.max() + 1))
                splits[key] = np.append(part.split_seeds(name), seeds[new.units[place]])
                scores[key] = np.append(part.scores(name), new.numbers[0, place])
        means = np.mean([new.means[0] for new in drawn], axis=0)
        return DrawnScores(splits, scores, self.name, dict(zip(names, means.tolist(), strict=True)), self.seconds)

    @cached_property
    def _splits_of_tasks(self) -> Dict[str, np.ndarray]:
        parts = self.start.by_task.items()
        return {task: np.unique(np.concatenate(list(map(part.split_seeds, part.active)))) for task, part in parts}


BEST_MEAN = 0.5
"""The best mean of a problem that numbers describe. Only differences count."""

CHOICE_OPTIONS = tuple(f.name for f in fields(ChoiceSettings) if f.name != "budget")


def prepare_plan(settings: PlanSettings) -> Simulator:
    """Read and check the problem that the settings describe."""
    path = Path(settings.source or "")
    if settings.source is None:
        simulator = _plan_from_numbers(settings)
    else:
        simulator = _read_selection(settings, path) if path.is_dir() else _read_table(settings, path)
    if simulator.strategy.belief.takes_logits:
        name = simulator.settings.strategy_params()["belief"]["type"]
        raise ConfigError(f"--belief {name}: a plan needs a model of the scores, not of their logits. Choose another.")
    return simulator


def _plan_from_numbers(settings: PlanSettings) -> Simulator:
    names = [f"candidate {number + 1}" for number in range(settings.candidates or DEFAULT_NUM_CANDIDATES)]
    means = {name: BEST_MEAN - (settings.gap or 0.0) * bool(number) for number, name in enumerate(names)}
    source = ScorePreset(
        "the numbers",
        means,
        split_sd=settings.split_sd or 0.0,
        seconds=settings.seconds or 0.0,
        noise_sd=settings.sd or 0.0,
    )
    return prepare_simulator(_choose_settings(settings, {}), source)


def _read_table(settings: PlanSettings, path: Path) -> Simulator:
    table = read_run_table(path, settings)
    table.refuse_single()
    if not table.has_splits:
        settings = replace(settings, splits=OFFICIAL)
    history = ScoreThreshold(settings.min_score, table.metric.minimise).apply_to(table.history(list(table.scores)))
    pilot = PosteriorScores(str(path), history, metric=table.metric, read_back=table)
    return _plan_from_pilot(settings, pilot, _choose_settings(settings, {}))


def _read_selection(settings: PlanSettings, root: Path) -> Simulator:
    refuse_table_options(settings, ("splits", *TABLE_OPTIONS), root)
    directory = RunDirectory(root)
    with open_for_reading(directory) as store, translated_store_errors(directory.store):
        meta = store.meta()
        stored = meta.settings or {}
        score_threshold = ScoreThreshold.from_settings(stored, settings.min_score)
        history = store.history(
            max_failures=int(stored.get("max_failures", MAX_FAILURES)), score_threshold=score_threshold
        )
        metric = Metric.parse(stored.get("metric") or METRIC)
    if meta.kind == "documents":
        raise ConfigError(
            f"{root} was created by {full_command('documents')}, but a plan needs one created by "
            f"{full_command('select')}."
        )
    choice = _choose_settings(settings, stored)
    with packages_named_in_errors(stored.get("include_package", ())):
        build_strategy(choice, list(history.candidates))
    return _plan_from_pilot(settings, PosteriorScores(str(root), history, metric=metric), choice)


def _plan_from_pilot(settings: PlanSettings, pilot: PosteriorScores, choice: ReplaySettings) -> Simulator:
    names = list(pilot.start.candidates)
    seconds = _mean_run_seconds(pilot.start) if settings.seconds is None else dict.fromkeys(names, settings.seconds)
    source = replace(
        pilot,
        start=renumber_replicates(pilot.start),
        seconds=seconds,
        notes=(*_missed_runs_notes(pilot.start), *done_note(settings.done)),
    )
    source.check_runs()
    simulator = prepare_simulator(choice, source)
    check_tasks(settings, simulator.strategy, source.start)
    return simulator


def _missed_runs_notes(pilot: History) -> Tuple[str, ...]:
    number = sum(failure.kind == "score" for failure in pilot.failures)
    if not number:
        return ()
    total = count_text(number + len(pilot.evaluations), "run")
    return (f"{number} of {total} of the pilot missed --min-score. The plan counts only runs that meet it.",)


def renumber_replicates(history: History) -> History:
    """Return the finished evaluations, with replicates from 0 to n - 1 for each candidate, and scores as reported."""
    rank: Dict[Any, int] = {}
    for name in history.candidates:
        keys = sorted(e.request.key for e in history.evaluations_of(name))
        rank.update(zip(keys, range(len(keys)), strict=True))
    evaluations = (replace(e, request=replace(e.request, replicate=rank[e.request.key])) for e in history.evaluations)
    return replace(history, evaluations=tuple(evaluations), pending=(), failures=(), sign=1)


def _mean_run_seconds(history: History) -> Dict[str, float]:
    """Return the mean duration of each candidate's runs. One without any has the mean of all."""
    if history.mean_seconds is None:
        return {}
    restricted = {name: History((name,), tuple(history.evaluations_of(name))) for name in history.active}
    return {name: own.mean_seconds or history.mean_seconds for name, own in restricted.items()}


def _choose_settings(settings: PlanSettings, stored: Mapping[str, Any]) -> ReplaySettings:
    """Overlay the settings on those of the selection. From a selection with a budget, keep only the belief."""
    names = CHOICE_OPTIONS if stored.get("budget") is None else ("belief",)
    stored_values = {name: stored[name] for name in names if stored.get(name) is not None}
    requested = {name: getattr(settings, name) for name in CHOICE_OPTIONS if getattr(settings, name) is not None}
    choice = ReplaySettings(
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
