"""From the options of how to work to a checked executor."""

import inspect
import json
from typing import Any, Dict, List, Mapping

import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import ConfigError, plainly
from fiesta_allennlp.executors.base import Executor
from fiesta_allennlp.selection.settings import OF_EXECUTOR, option
from fiesta_allennlp.trainings.settings import Settings


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
        raise ConfigError(f"--executor {name}: {plainly(error)}") from error


def check_gpus(configs: Mapping[str, Dict[str, Any]], executor: Executor) -> None:
    """Refuse a config that asks for a GPU where no evaluation sees one: it would train on the processor, silently; and
    one that asks for what this machine does not have, where each evaluation takes what its config names.

    # Raises

    `ConfigError` : with the candidate and what to give.
    """
    for name, config in configs.items():
        device = config["trainer"].get("cuda_device", -1)
        if executor.hides_gpus and device not in (None, -1, "-1", "cpu"):
            raise ConfigError(
                f"candidate '{name}': 'trainer.cuda_device' is {json.dumps(device)}, but Ray shows GPUs only to "
                "trainings that ask for some. Give --gpus-per-evaluation 1, or a part of one such as 0.25; or take "
                "the key out, for example with --overrides '{\"trainer.cuda_device\": -1}', to train on the processor."
            )
        if not executor.gives_devices and not _is_there(device, config["trainer"]):
            raise ConfigError(
                f"candidate '{name}': 'trainer.cuda_device' is {json.dumps(device)}, but it must be one number, below "
                f"0 for the processor or that of a device; this machine has {torch.cuda.device_count()}, numbered from "
                "0. Mend it, or take the key out to train on what AllenNLP finds."
            )


def _is_there(device: Any, trainer: Mapping[str, Any]) -> bool:
    """Whether AllenNLP can train on this device. A trainer of one's own may know other things than numbers."""
    if isinstance(device, int):
        return device < torch.cuda.device_count()
    return device is None or trainer.get("type", "gradient_descent") != "gradient_descent"


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
