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
    plainly,
)
from fiesta_allennlp.executors.processes import num_workers, run_apart
from fiesta_allennlp.isolation.worker import WorkerSettings
from fiesta_allennlp.listeners.progress import counting
from fiesta_allennlp.records import Candidate
from fiesta_allennlp.splits import Division
from fiesta_allennlp.trainings.candidate_values import read_place
from fiesta_allennlp.trainings.candidates import Roster
from fiesta_allennlp.trainings.config import Config, keys_of
from fiesta_allennlp.trainings.data_files import missing_file
from fiesta_allennlp.trainings.evaluator_choice import packages_of
from fiesta_allennlp.trainings.pool import check_same_pool
from fiesta_allennlp.trainings.preparations import Preparation
from fiesta_allennlp.trainings.programs.config import is_program
from fiesta_allennlp.trainings.programs.pool import program_pool
from fiesta_allennlp.trainings.settings import Settings


def prepare_all(
    candidates: Mapping[str, Candidate],
    roster: Roster,
    settings: Settings,
    directory: RunDirectory,
    place: RunDirectory,
    console: Console,
) -> Dict[str, Preparation]:
    """Build each of these candidates of the roster once, in a process of its own. What they print goes to `checks/` of
    `place`, and word vectors to `vectors/`; they are found in `directory` afterwards.

    Raises:
        ConfigError: naming each candidate that is wrong, and what is wrong with it.
    """
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
    check_same_pool({name: result.pool for name, result in results.items()})
    return {name: _found_in(directory, result) for name, result in results.items()}


def _refusal(candidate: Candidate, error: BaseException, place: RunDirectory) -> str:
    """The message about a candidate that cannot be built, with its name."""
    log = place.check_log(candidate.name)
    says_all = isinstance(error, FiestaError) and not isinstance(error, (ModelError, ReaderError))
    where = "" if says_all or not place.store.exists() or not log.exists() else f" The log is {log}."
    path = read_place(candidate.source).path
    keys = keys_of(candidate.config)
    said = missing_file(candidate.config, describe(error), path) or f"{plainly(error, keys=keys)}{where}"
    return f"candidate '{candidate.name}' ({candidate.source}): {said}"


def _found_in(directory: RunDirectory, preparation: Preparation) -> Preparation:
    """The preparation with its word vectors where they are found afterwards."""
    vectors = directory.vectors.resolve()
    found = tuple((original, str(vectors / Path(filtered).name)) for original, filtered in preparation.vectors)
    return replace(preparation, vectors=found)


def _at_once(settings: Settings) -> int:
    """No more than this machine has cores for, wherever the trainings will run."""
    room = num_workers("auto", settings.threads_per_worker)
    return room if settings.workers == "auto" else min(room, settings.workers)


def _prepare_task(config: Config, group_by: Optional[str], division: Division, data: str, vectors: Path) -> Preparation:
    if is_program(config):
        return Preparation(program_pool(config, group_by, data=data, division=division))
    from fiesta_allennlp.trainings.allennlp.preparing import prepare_candidate

    return prepare_candidate(config, group_by=group_by, division=division, data=data, vectors_directory=vectors)
