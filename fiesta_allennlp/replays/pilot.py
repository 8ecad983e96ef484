"""What a plan is made for: a problem given by numbers, a table of scores, or a selection that has begun."""

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Dict, Mapping

import numpy as np

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.records import History
from fiesta_allennlp.replays.files import read_csv, read_json
from fiesta_allennlp.replays.plan_settings import PlanSettings
from fiesta_allennlp.replays.posterior_scores import PosteriorScores
from fiesta_allennlp.replays.settings import ReplaySettings
from fiesta_allennlp.replays.sources import ScorePreset, ScoreSource
from fiesta_allennlp.replays.table import history_of
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.settings import ChoiceSettings
from fiesta_allennlp.selection.store import reading
from fiesta_allennlp.selection.strategy_building import build_strategy, importing
from fiesta_allennlp.strategies import Strategy
from fiesta_allennlp.strategies.fixed_budget import FixedBudget

MIDDLE = 0.5
"""The best mean where a problem is given by numbers. Only differences count."""

CHOICE = tuple(f.name for f in fields(ChoiceSettings) if f.name != "budget")


@dataclass(frozen=True)
class Problem:
    """What is simulated: the source of scores and the way to choose.

    `noise_sd` is the run-to-run sd on one split. `knows_seconds` tells whether runs have seconds.
    """

    source: ScoreSource
    choice: ReplaySettings
    noise_sd: float
    knows_seconds: bool

    @property
    def num_done(self) -> int:
        """The runs of the pilot."""
        return 0 if self.source.start is None else len(self.source.start.evaluations)


def problem_of(settings: PlanSettings) -> Problem:
    """The problem that the settings describe, read and checked.

    # Raises

    `FiestaError` : where a file or directory is missing, damaged, or has too few runs.
    """
    if settings.source is None:
        return _by_numbers(settings)
    path = Path(settings.source)
    if path.is_dir():
        return _selection(settings, path)
    if path.suffix in (".json", ".csv"):
        return _table(settings, path)
    what = "is neither a directory nor a file that ends with .json or .csv" if path.exists() else "does not exist"
    raise ConfigError(f"{path}: {what}. Give the directory of a selection or a table of scores; or --gap and --sd.")


def _by_numbers(settings: PlanSettings) -> Problem:
    gap, sd = settings.gap or 0.0, settings.sd or 0.0
    names = [f"candidate {number + 1}" for number in range(settings.candidates or 2)]
    means = {name: MIDDLE - (gap if number else 0.0) for number, name in enumerate(names)}
    source = _Numbers("the numbers", means, dict.fromkeys(names, sd), settings.split_sd or 0.0, settings.seconds or 0.0)
    return Problem(source, _choice(settings, {}), sd, settings.seconds is not None)


@dataclass(frozen=True)
class _Numbers(ScorePreset):
    """Normal scores, with the seconds of a run."""

    seconds: float = 0.0

    def draw(self, *args: Any, **kwargs: Any) -> Any:
        return replace(super().draw(*args, **kwargs), seconds=dict.fromkeys(self.means, self.seconds))


def _table(settings: PlanSettings, path: Path) -> Problem:
    if path.suffix == ".csv" and settings.evaluations_per_split is not None:
        raise ConfigError(f"--evaluations-per-split: {path} says itself which scores share a split. Leave it out.")
    table = read_csv(path) if path.suffix == ".csv" else read_json(path, settings.evaluations_per_split or 1)
    minimise = settings.minimise or table.minimise
    return _from_pilot(settings, str(path), history_of(table), _choice(settings, {}), {}, minimise=minimise)


def _selection(settings: PlanSettings, root: Path) -> Problem:
    with reading(RunDirectory(root)) as store:
        meta = store.meta()
        history = store.history(max_failures=int((meta.settings or {}).get("max_failures", 3)))
    if meta.kind == "documents":
        raise ConfigError(f"{root}: fiesta-plan is for selections by training, but this one asks about documents.")
    stored = meta.settings or {}
    choice = _choice(settings, stored)
    minimise = Metric.of(stored.get("metric") or "").minimise
    if settings.minimise and not minimise:
        raise ConfigError(f"--minimise is for tables of scores: the selection in {root} maximises. Leave it out.")
    packages = tuple(stored.get("include_package") or ())
    importing(packages, lambda: build_strategy(choice, list(history.candidates)))
    return _from_pilot(settings, str(root), history, choice, _mean_seconds(history), minimise=minimise)


def _from_pilot(
    settings: PlanSettings,
    name: str,
    history: History,
    choice: ReplaySettings,
    seconds: Mapping[str, float],
    *,
    minimise: bool,
) -> Problem:
    if settings.seconds is not None:
        seconds = dict.fromkeys(history.candidates, settings.seconds)
    strategy = build_strategy(choice, list(history.candidates))
    takes_logits = bool(getattr(strategy.belief, "takes_logits", False))
    source = PosteriorScores(name, renumbered(history), seconds, takes_logits, minimise)
    source.check_runs()
    return Problem(source, choice, source.noise_sd, any(seconds.values()))


def renumbered(history: History) -> History:
    """The finished evaluations with replicates from 0 to n - 1 for each candidate, whatever failed between them."""
    place: Dict[Any, int] = {}
    for name in history.candidates:
        mine = sorted(e.request.replicate for e in history.evaluations if e.request.candidate == name)
        place.update({(name, replicate): number for number, replicate in enumerate(mine)})
    evaluations = tuple(
        replace(e, request=replace(e.request, replicate=place[e.request.key])) for e in history.evaluations
    )
    return replace(history, evaluations=evaluations, pending=(), failures=())


def _mean_seconds(history: History) -> Dict[str, float]:
    """Of a run, by candidate."""
    seconds = {name: [e.seconds for e in history.evaluations if e.request.candidate == name] for name in history.active}
    return {name: float(np.mean(values)) for name, values in seconds.items() if values}


def _choice(settings: PlanSettings, stored: Mapping[str, Any]) -> ReplaySettings:
    """How is chosen: what was given, above what the selection was started with. A plan is for a confidence: of a
    selection with a budget, only the posterior and the splits are kept."""
    kept = CHOICE if stored.get("budget") is None else ("belief",)
    below = {name: stored[name] for name in kept if stored.get(name) is not None}
    given = {name: getattr(settings, name) for name in CHOICE if getattr(settings, name) is not None}
    choice = ReplaySettings(
        **{**below, **given},
        scores=settings.source or "the numbers",
        splits=stored.get("splits", settings.splits),
        batch_size=settings.workers,
        processes=settings.processes,
        entropy=settings.entropy,
    )
    name = choice.strategy_params()["type"]
    if name in Strategy.list_available() and issubclass(Strategy.by_name(name), FixedBudget):
        raise ConfigError(f"--strategy: a plan needs one that stops at a confidence, such as top_two, but got {name}.")
    return choice
