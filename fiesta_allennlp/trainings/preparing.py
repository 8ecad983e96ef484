"""From the settings to checked candidates: all that is done before the first training."""

from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Tuple

from rich.console import Console

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import ConfigError, DataError, FiestaError, plainly
from fiesta_allennlp.executors.processes import num_workers, run_apart
from fiesta_allennlp.isolation.worker import WorkerSettings
from fiesta_allennlp.selection.environment import with_this
from fiesta_allennlp.selection.store import RunStore
from fiesta_allennlp.trainings.candidates import Roster
from fiesta_allennlp.trainings.config import Config, load_config, official_paths
from fiesta_allennlp.trainings.config_checks import check_config
from fiesta_allennlp.trainings.data_files import DataMark, mark_data
from fiesta_allennlp.trainings.pool import Pool, data_fingerprint
from fiesta_allennlp.trainings.preparation import Preparation, check_metric, check_same_pool, prepare_candidate
from fiesta_allennlp.trainings.settings import Settings, named_candidates


def load_candidates(settings: Settings, *, least: int = 2) -> Dict[str, Config]:
    """The configs of the candidates by name, with the overrides applied, in the order given.

    # Raises

    `ConfigError` : on the first candidate that is wrong, or where there are fewer than `least`.
    """
    named = named_candidates(settings.candidates, least=least)
    return {name: _checked(path, settings) for name, path in named.items()}


def _checked(path: Path, settings: Settings) -> Config:
    config = load_config(path, settings.overrides)
    try:
        check_config(config, metric=settings.metric, group_by=settings.group_by)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    return config


def prepare(
    configs: Mapping[str, Config], settings: Settings, directory: RunDirectory, console: Console
) -> Dict[str, Preparation]:
    """Build every candidate once, in processes of their own. What they print goes to `checks/`.

    # Raises

    `ConfigError` : naming the candidate and what is wrong.
    """
    num_tasks = f"{len(configs)} candidates" if len(configs) > 1 else "1 candidate"
    console.print(f"Checking {num_tasks}: reading the data and building each model once ...", highlight=False)
    results = run_apart(
        _prepare_task,
        {name: (config, settings.group_by, directory.vectors) for name, config in configs.items()},
        logs={name: directory.check_log(name) for name in configs},
        settings=WorkerSettings(num_threads=settings.threads_per_worker, packages=settings.include_package),
        at_once=_at_once(settings),
        on_done=lambda name: console.print(f"  {name}", markup=False),
    )
    sources = named_candidates(settings.candidates)
    for name, result in results.items():
        if isinstance(result, BaseException):
            log = directory.check_log(name)
            where = "" if isinstance(result, FiestaError) or not directory.store.exists() else f" The log is {log}."
            raise ConfigError(f"candidate '{name}' ({sources[name]}): {plainly(result)}{where}") from result
        check_metric(name, result, settings.metric)
    check_same_pool(results)
    return results


def _at_once(settings: Settings) -> int:
    """No more than this machine has cores for, wherever the trainings will run."""
    room = num_workers("auto", settings.threads_per_worker)
    return room if settings.workers == "auto" else min(room, settings.workers)


def _prepare_task(config: Config, group_by: Optional[str], vectors: Path) -> Preparation:
    return prepare_candidate(config, group_by=group_by, vectors_directory=vectors)


def prepare_stored(
    roster: Roster, settings: Settings, store: RunStore, directory: RunDirectory, console: Console
) -> Dict[str, Preparation]:
    """What `prepare` tells, from the store for candidates that stand there, made for new ones; removed ones included.

    # Raises

    `ConfigError` : as `prepare`.
    """
    known = {name: _preparation(candidate["facts"]) for name, candidate in roster.stored.items()}
    fresh = {
        name: config
        for name, config in roster.given.items()
        if name not in known or not _vectors_are_there(known[name])
    }
    if fresh:
        known.update(prepare(fresh, settings, directory, console))
        check_same_pool({name: known[name] for name in roster.given})
    return known


def write_down(
    roster: Roster, preparations: Mapping[str, Preparation], settings: Settings, store: RunStore, *, entropy: int
) -> None:
    """Write everything that a selection is about into the store, all or none: from then on it can be recovered.

    Where it is resumed on another machine or with other versions, these are added to those of the start.
    """
    sources = named_candidates(settings.candidates)
    store.put_candidates(
        [
            {"name": name, "source": str(sources[name]), "config": config, "facts": _facts(preparations[name])}
            for name, config in roster.given.items()
        ],
        removed=sorted(roster.removed),
        settings=settings.as_json(),
        entropy=str(entropy),
        environments=with_this(store.get_meta("environments") or [], settings.include_package),
    )


def mark_unchanged(configs: Mapping[str, Config], preparations: Mapping[str, Preparation]) -> Dict[str, DataMark]:
    """By what every evaluation knows the data of these candidates again.

    # Raises

    `DataError` : where they have changed since the candidates were checked.
    """
    known: Dict[str, Tuple[DataMark, str]] = {}
    marks: Dict[str, DataMark] = {}
    for name, config in configs.items():
        paths = official_paths(config)
        if repr(paths) not in known:  # marked before the digest is taken, so that no change falls between the two
            known[repr(paths)] = mark_data(list(paths.values())), data_fingerprint(config)
        marks[name], fingerprint = known[repr(paths)]
        if fingerprint != preparations[name].pool.data:
            raise DataError(
                f"candidate '{name}': the contents of {', '.join(map(str, paths.values()))} changed while they were "
                "being checked. Give the command again once they are complete."
            )
    return marks


def _vectors_are_there(preparation: Preparation) -> bool:
    """False where the run directory was moved or cleaned: the vectors are then filtered again."""
    return all(Path(filtered).is_file() for _, filtered in preparation.vectors)


def _facts(preparation: Preparation) -> Dict[str, Any]:
    facts = asdict(preparation)
    del facts["pool"]["words"]
    return {**facts, "metrics": sorted(preparation.metrics)}


def _preparation(facts: Mapping[str, Any]) -> Preparation:
    return Preparation(
        pool=Pool(**facts["pool"]),
        num_parameters=facts["num_parameters"],
        metrics=frozenset(facts["metrics"]),
        vectors=tuple((original, filtered) for original, filtered in facts["vectors"]),
    )
