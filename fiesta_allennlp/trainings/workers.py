"""Builds the executor that the options name, and checks the GPUs that its runs would use."""

import inspect
import json
import os
from typing import List, Mapping, Sequence, Tuple

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.executors import processes, ray, slurm  # noqa: F401, registered when imported
from fiesta_allennlp.executors.base import Executor
from fiesta_allennlp.records import Candidate
from fiesta_allennlp.registry import build
from fiesta_allennlp.selection.environment import DEVICES, is_gpu, visible_gpus
from fiesta_allennlp.selection.options import flag
from fiesta_allennlp.trainings.candidates import Roster
from fiesta_allennlp.trainings.programs.config import is_program
from fiesta_allennlp.trainings.settings import Settings, executor_options

# Workers import these modules first, and the fork server once for all of them.
OF_ALLENNLP, OF_PROGRAMS = "fiesta_allennlp.trainings.allennlp.loaded", "fiesta_allennlp.trainings.programs.run"


def packages_of(settings: Settings, roster: Roster) -> Tuple[str, ...]:
    """Return what workers import first: AllenNLP if a candidate needs it, and the user's packages."""
    are_programs = all(is_program(config) for config in roster.configs.values())
    return (OF_PROGRAMS if are_programs else OF_ALLENNLP, *settings.include_package)


def build_executor(settings: Settings, directory: RunDirectory, *, packages: Sequence[str]) -> Executor:
    """Return the executor that the settings name, ready to work. Its workers import `packages`."""
    params = settings.executor_params()
    name = params["type"]
    available = Executor.available()
    if name not in available:
        raise ConfigError(f"--executor must be one of {', '.join(available)} but got '{name}'.")
    known = inspect.signature(Executor.by_name(name)).parameters
    wrong = [key for key in params if key in executor_options() and key not in known]
    if wrong:
        raise ConfigError(f"{flag(wrong[0])} cannot be combined with --executor {name}. Remove it.")
    if params.get("cuda_devices"):
        params["cuda_devices"] = _named(params["cuda_devices"])
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


def _named(devices: Sequence[str]) -> List[str]:
    """Return devices as `CUDA_VISIBLE_DEVICES` names them for their runs. Numbers count within the GPUs that this
    process may use. Refuse a device that does not exist, on which a run would silently train on the CPU."""
    visible, known = visible_gpus(), os.environ.get(DEVICES)
    names = dict(zip(map(str, range(len(visible))), visible, strict=True))
    for device in devices:
        if is_gpu(device) and (known is None or device in visible):
            names[device] = device
        if device not in names:
            within = "" if known is None else f" within {DEVICES}={known}"
            raise ConfigError(
                f"--cuda-devices: no GPU '{device}' found; there are {len(visible)}{within}, numbered from 0. Correct "
                "it, or remove the option to let AllenNLP choose."
            )
    return [names[device] for device in devices]


def check_gpus(candidates: Mapping[str, Candidate], executor: Executor) -> None:
    """Refuse a config that asks for a GPU if runs see none, because it would silently train on the CPU; and a config
    that asks for a device that does not exist on this machine, if runs use the device of their config."""
    for name, candidate in candidates.items():
        trainer = candidate.config.get("trainer", {})  # a program has none
        device = trainer.get("cuda_device", -1)
        wrong = f"candidate '{name}': 'trainer.cuda_device' is {json.dumps(device)}, but"
        if executor.hides_gpus and device not in (None, -1, "-1", "cpu"):
            raise ConfigError(
                f"{wrong} runs on a cluster see a GPU only if they request one. Use --gpus-per-evaluation 1, or a "
                "fraction such as 0.25 with Ray; or train on the CPU with --overrides '{\"trainer.cuda_device\": -1}'."
            )
        is_own = trainer.get("type", "gradient_descent") != "gradient_descent"  # which may accept other devices
        is_here = device is None or is_own
        if isinstance(device, int):
            is_here = device < 0 or device < len(visible_gpus())
        if not executor.gives_devices and not is_here:
            raise ConfigError(
                f"{wrong} this machine has {len(visible_gpus())} GPUs, numbered from 0. Correct it, use -1 for the "
                "CPU, or remove the key to let AllenNLP choose."
            )
