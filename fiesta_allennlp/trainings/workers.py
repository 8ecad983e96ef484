"""Builds the executor that the options name, and checks the GPUs that its runs would use."""

import inspect
import os
from typing import List, Mapping, Sequence, Tuple

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.records import Candidate
from fiesta_allennlp.core.registry import build
from fiesta_allennlp.executors import processes, ray, slurm, workers  # noqa: F401, registered when imported
from fiesta_allennlp.executors.base import Executor
from fiesta_allennlp.selection.environment import DEVICES_VARIABLE, is_gpu, visible_gpus
from fiesta_allennlp.selection.options import flag
from fiesta_allennlp.trainings.candidate_types import type_of
from fiesta_allennlp.trainings.candidates import Roster
from fiesta_allennlp.trainings.settings import Settings, executor_options


def packages_of(settings: Settings, roster: Roster) -> Tuple[str, ...]:
    """Return what workers import first: AllenNLP if a candidate needs it, and the user's packages. The fork server
    imports the modules of this package once for all workers."""
    modules = sorted({type_of(config).worker_module for config in roster.configs.values()})
    return (*modules, *settings.include_package)


def build_executor(settings: Settings, directory: RunDirectory, *, packages: Sequence[str]) -> Executor:
    """Return the executor that the settings name, ready to work. Its workers import `packages`."""
    params = settings.executor_params()
    name = params["type"]
    available = Executor.available()
    if name not in available:
        raise ConfigError(f"--executor must be one of {', '.join(available)} but got '{name}'.")
    parameters = inspect.signature(Executor.by_name(name)).parameters
    foreign_keys = [key for key in params if key in executor_options() and key not in parameters]
    if foreign_keys:
        raise ConfigError(f"{flag(foreign_keys[0])} cannot be combined with --executor {name}. Remove it.")
    if params.get("cuda_devices"):
        params["cuda_devices"] = named_devices(params["cuda_devices"], "--cuda-devices")
    common = {
        "workers": settings.workers,
        "time_limit": settings.time_limit,
        "num_threads": settings.threads_per_worker,
        "packages": tuple(packages),
    }
    try:
        return build(Executor, params, directory=directory, **common)
    except ConfigError as error:
        raise ConfigError(f"--executor {name}: {error}") from error


def named_devices(devices: Sequence[str], option_name: str) -> List[str]:
    """Return devices as `CUDA_VISIBLE_DEVICES` names them for their runs. Numbers count within the GPUs that this
    process may use. Refuse a device that does not exist, on which a run would silently train on the CPU."""
    visible, visible_names = visible_gpus(), os.environ.get(DEVICES_VARIABLE)
    names = dict(zip(map(str, range(len(visible))), visible, strict=True))
    for device in devices:
        if is_gpu(device) and (visible_names is None or device in visible):
            names[device] = device
        if device not in names:
            within = "" if visible_names is None else f" within {DEVICES_VARIABLE}={visible_names}"
            raise ConfigError(
                f"{option_name}: no GPU '{device}' found; there are {len(visible)}{within}, numbered from 0. Correct "
                "it, or remove the option to let AllenNLP choose."
            )
    return [names[device] for device in devices]


def check_gpus(candidates: Mapping[str, Candidate], executor: Executor) -> None:
    """Refuse a candidate that asks for a device which its runs would not see."""
    for name, candidate in candidates.items():
        try:
            type_of(candidate.config).check_device(executor)
        except ConfigError as error:
            raise ConfigError(f"candidate '{name}': {error}") from error
