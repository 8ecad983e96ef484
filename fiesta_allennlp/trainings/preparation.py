"""Everything that can be found wrong with a candidate before its first run."""

from dataclasses import replace
from pathlib import Path
from typing import Dict, Mapping, Optional

from rich.console import Console

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import (
    ConfigError,
    FiestaError,
    ModelError,
    ReaderError,
    all_in_one,
    describe,
    did_you_mean,
    plainly,
)
from fiesta_allennlp.executors.processes import num_workers, run_apart
from fiesta_allennlp.isolation.worker import WorkerSettings
from fiesta_allennlp.listeners.progress import counting
from fiesta_allennlp.records import Candidate
from fiesta_allennlp.selection.metrics import Metric, check_sign
from fiesta_allennlp.splits import Division
from fiesta_allennlp.trainings.candidate_values import read_place
from fiesta_allennlp.trainings.candidates import Roster
from fiesta_allennlp.trainings.config import Config
from fiesta_allennlp.trainings.config_checks import check_direction
from fiesta_allennlp.trainings.data_files import missing_file
from fiesta_allennlp.trainings.pool import Preparation
from fiesta_allennlp.trainings.programs.config import is_program
from fiesta_allennlp.trainings.programs.pool import program_pool
from fiesta_allennlp.trainings.settings import DEFAULT_METRIC, Settings
from fiesta_allennlp.trainings.workers import packages_of


def prepare_all(
    candidates: Mapping[str, Candidate],
    roster: Roster,
    settings: Settings,
    directory: RunDirectory,
    place: RunDirectory,
    console: Console,
) -> Dict[str, Preparation]:
    """Build each of these candidates once, in a process of its own. Output goes to `checks/` of `place`, and word
    vectors to `vectors/`; both are found in `directory` afterwards. Raise a `ConfigError` with all candidates that are
    wrong."""
    num_tasks = f"{len(candidates)} candidates" if len(candidates) > 1 else "1 candidate"
    are_built = not all(is_program(candidate.config) for candidate in candidates.values())
    building = " and building each model once" if are_built else ""
    console.print(f"Checking {num_tasks}: reading the data{building} ...", highlight=False)
    given = (settings.group_by, roster.division)
    tasks = {
        name: (candidate.config, *given, roster.data[name].fingerprint, place.vectors)
        for name, candidate in candidates.items()
    }
    with counting(console, len(candidates)) as checked:
        results = run_apart(
            _prepare_task,
            tasks,
            logs={name: place.check_log(name) for name in candidates},
            settings=WorkerSettings(settings.threads_per_worker, packages_of(settings, roster)),
            at_once=_at_once(settings),
            on_done=checked,
        )
    wrong = {name: result for name, result in results.items() if isinstance(result, BaseException)}
    if wrong:
        refusals = [_refusal(candidates[name], error, place) for name, error in wrong.items()]
        raise ConfigError(all_in_one(refusals, what="candidates are wrong")) from next(iter(wrong.values()))
    return {name: _found_in(directory, result) for name, result in results.items()}


def _refusal(candidate: Candidate, error: BaseException, place: RunDirectory) -> str:
    log = place.check_log(candidate.name)
    says_all = isinstance(error, FiestaError) and not isinstance(error, (ModelError, ReaderError))
    where = "" if says_all or not place.store.exists() or not log.exists() else f" The log is {log}."
    path = read_place(candidate.source).path
    said = missing_file(candidate.config, describe(error), path) or f"{plainly(error)}{where}"
    return f"candidate '{candidate.name}' ({candidate.source}): {said}"


def _found_in(directory: RunDirectory, preparation: Preparation) -> Preparation:
    vectors = directory.vectors.resolve()
    found = tuple((original, str(vectors / Path(filtered).name)) for original, filtered in preparation.vectors)
    return replace(preparation, vectors=found)


def _at_once(settings: Settings) -> int:
    """Return at most as many processes as this machine has cores for, wherever the runs will be made."""
    room = num_workers("auto", settings.threads_per_worker)
    return room if settings.workers == "auto" else min(room, settings.workers)


def _prepare_task(config: Config, group_by: Optional[str], division: Division, data: str, vectors: Path) -> Preparation:
    if is_program(config):
        return Preparation(program_pool(config, group_by, data=data, division=division))
    from fiesta_allennlp.trainings.allennlp.preparing import prepare_candidate

    return prepare_candidate(config, group_by=group_by, division=division, data=data, vectors_directory=vectors)


# The metric that the candidates are compared by.

LOSS = "loss"
"""The metric that AllenNLP's trainer reports for every model."""


def with_metric(
    settings: Settings,
    candidates: Mapping[str, Candidate],
    preparations: Mapping[str, Preparation],
    console: Console,
) -> Settings:
    """Return the settings with a metric that every candidate reports: the given one, the default, or else the only one
    that all of them report, which the console then prints."""
    if settings.metric is None:
        settings = replace(settings, metric=_metric_of(candidates, preparations, console))
    refusals = [_metric_refusal(name, preparation, settings.scored_by) for name, preparation in preparations.items()]
    told = [refusal for refusal in refusals if refusal]
    if told:
        raise ConfigError(all_in_one(told, what="candidates are wrong"))
    return settings


def _metric_of(candidates: Mapping[str, Candidate], preparations: Mapping[str, Preparation], console: Console) -> str:
    reported = [preparation.metrics for preparation in preparations.values() if preparation.metrics is not None]
    if len(reported) < len(preparations):
        raise ConfigError(
            "--metric is missing. What a program reports is not known before its first run, so name the metric: "
            "--metric NAME, or --metric=-NAME where lower is better."
        )
    shared = frozenset.intersection(*reported)
    if DEFAULT_METRIC in shared or len(shared) != 1:
        return DEFAULT_METRIC
    (found,) = shared
    check_sign(found)
    for candidate in candidates.values():
        check_direction(dict(candidate.config), Metric(found))
    console.print(f"Comparing by {found}, the only metric that all candidates report.", markup=False, highlight=False)
    return found


def _metric_refusal(name: str, preparation: Preparation, metric: Metric) -> Optional[str]:
    """Return the refusal of a model that does not report the metric; None if it does, or that is not known. The trainer
    reports the loss of every model."""
    if preparation.metrics is None:
        return None
    reported = sorted(preparation.metrics | {LOSS})
    if metric.name in reported:
        return None
    return (
        f"candidate '{name}': its model does not report the metric '{metric.name}'. It reports: "
        f"{', '.join(reported)}.{did_you_mean(metric.name, reported)} Choose one of these with --metric NAME, or with "
        "--metric=-NAME where lower is better."
    )
