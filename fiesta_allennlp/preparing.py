"""From the settings to checked candidates and a checked strategy: all that is done before the first training."""

import copy
import inspect
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from rich.console import Console

from fiesta_allennlp.errors import ConfigError, FiestaError, describe
from fiesta_allennlp.evaluators.config import Config, first_difference, load_config
from fiesta_allennlp.evaluators.pool import Pool, data_fingerprint
from fiesta_allennlp.evaluators.preparation import Preparation, check_metric, check_same_pool, prepare_candidate
from fiesta_allennlp.executors.base import Executor
from fiesta_allennlp.executors.processes import num_workers, run_apart
from fiesta_allennlp.executors.worker import WorkerSettings
from fiesta_allennlp.run_directory import RunDirectory
from fiesta_allennlp.run_store import RunStore
from fiesta_allennlp.settings import OF_EXECUTOR, Settings, named_candidates, option
from fiesta_allennlp.strategies.base import Strategy
from fiesta_allennlp.strategies.stopping import FixedBudget


def load_candidates(settings: Settings) -> Dict[str, Config]:
    """The configs of the candidates by name, with the overrides applied, in the order given.

    # Raises

    `ConfigError` : on the first candidate that is wrong.
    """
    named = named_candidates(settings.candidates)
    return {name: load_config(path, settings.overrides) for name, path in named.items()}


def build_strategy(settings: Settings, names: List[str]) -> Strategy:
    """The strategy with its belief, checked for these candidates.

    # Raises

    `ConfigError` : where its name or an entry is unknown, or a value cannot work.
    """
    params = settings.strategy_params()
    _check_kind(params)
    try:
        strategy = Strategy.from_params(Params(copy.deepcopy(params)))
    except (ConfigurationError, TypeError) as error:
        raise ConfigError(f"--strategy {params['type']} with --belief {params['belief']['type']}: {error}") from error
    strategy.check(names)
    return strategy


def _check_kind(params: Dict[str, Any]) -> None:
    """Refuse an option of the one kind of strategy that was given for the other."""
    name = params["type"]
    if name not in Strategy.list_available():
        return
    fixed_budget = issubclass(Strategy.by_name(name), FixedBudget)
    if fixed_budget and "budget" not in params:
        raise ConfigError(f"--strategy {name} spends a budget: say how many trainings with --budget N.")
    wrong = [key for key in ("confidence", "margin", "max_evaluations") if key in params] if fixed_budget else []
    if wrong:
        raise ConfigError(
            f"{option(wrong[0])} does not go with --strategy {name}, which spends a budget. Leave it out."
        )
    if not fixed_budget and "budget" in params:
        raise ConfigError(
            f"--budget does not go with --strategy {name}, which stops at a confidence. Limit it with "
            "--max-evaluations, or choose sequential_halving or non_adaptive_fb."
        )


def build_executor(settings: Settings, directory: RunDirectory) -> Executor:
    """The executor, ready to work.

    # Raises

    `ConfigError` : where its name or an entry is unknown, or a value cannot work on this machine.
    """
    params = settings.executor_params()
    name = params["type"]
    available = sorted(Executor.list_available())
    if name not in available:
        raise ConfigError(f"--executor must be one of {', '.join(available)} but got '{name}'.")
    known = inspect.signature(Executor.by_name(name)).parameters
    wrong = [key for key in params if key in OF_EXECUTOR and key not in known]
    if wrong:
        raise ConfigError(f"{option(wrong[0])} does not go with --executor {name}. Leave it out.")
    check_devices(params.get("cuda_devices") or [])
    common = {
        "workers": settings.workers,
        "time_limit": settings.time_limit,
        "num_threads": settings.threads_per_worker,
        "packages": settings.include_package,
    }
    try:
        return Executor.from_params(Params(params), directory=directory, **common)
    except (ConfigurationError, TypeError) as error:
        raise ConfigError(f"--executor {name}: {error}") from error


def check_devices(devices: List[str]) -> None:
    """Refuse CUDA devices that this machine does not have: a training would go on without one, on the processor.

    # Raises

    `ConfigError` : with the number of devices there are.
    """
    num_devices = torch.cuda.device_count() if devices else 0
    for device in devices:
        if not device.isdigit() or int(device) >= num_devices:
            raise ConfigError(
                f"--cuda-devices: there is no device '{device}'; this machine has {num_devices}, numbered from 0. "
                "Leave the option out to train on what AllenNLP finds."
            )


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
            raise ConfigError(f"candidate '{name}' ({sources[name]}): {describe(result)}{where}") from result
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
    configs: Mapping[str, Config], settings: Settings, store: RunStore, directory: RunDirectory, console: Console
) -> Dict[str, Preparation]:
    """What `prepare` tells, from the store for candidates that stand there, made and written down for new ones.

    # Raises

    `ConfigError` : where a candidate of the store is gone or its config has changed, with the first key that differs.
    """
    stored = {candidate["name"]: candidate for candidate in store.candidates()}
    if stored:
        _check_unchanged(configs, stored, directory)
    known = {name: _preparation(stored[name]["facts"]) for name in stored}
    known = {name: preparation for name, preparation in known.items() if _vectors_are_there(preparation)}
    fresh = {name: config for name, config in configs.items() if name not in known}
    if fresh:
        known.update(prepare(fresh, settings, directory, console))
        check_same_pool({name: known[name] for name in configs})
    sources = named_candidates(settings.candidates)
    store.put_candidates(
        [
            {"name": name, "source": str(sources[name]), "config": configs[name], "facts": _facts(known[name])}
            for name in fresh
        ]
    )
    return {name: known[name] for name in configs}


def _check_unchanged(configs: Mapping[str, Config], stored: Mapping[str, Any], directory: RunDirectory) -> None:
    """Refuse to go on with other candidates, other configs or other data than at the start.

    # Raises

    `ConfigError` : naming the candidate and the first thing that differs.
    """
    for name in configs:
        if name not in stored:
            raise ConfigError(
                f"candidate '{name}' does not belong to the selection in {directory.root}. Leave it out, or start anew "
                "in another directory."
            )
    for name, candidate in stored.items():
        who = f"candidate '{name}' ({candidate['source']})"
        if name not in configs:
            raise ConfigError(
                f"{who} belongs to the selection in {directory.root} but is not given. Give the same candidates again, "
                "or none to take all of them from the store."
            )
        difference = first_difference(candidate["config"], configs[name])
        if difference is None and data_fingerprint(configs[name]) != candidate["facts"]["pool"]["data"]:
            difference = "the contents of its data files have changed"
        if difference is not None:
            raise ConfigError(
                f"{who} is not what it was when the selection in {directory.root} began: {difference}. Undo the "
                "change, or start anew with another directory or --force."
            )


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
