"""Builds and checks the executor that the options of `fiesta-select` name, and the devices that it needs."""

import inspect
import json
from typing import Any, List, Mapping, Sequence

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.executors import processes, ray, slurm  # noqa: F401, registered when imported
from fiesta_allennlp.executors.base import Executor
from fiesta_allennlp.records import Candidate
from fiesta_allennlp.registry import build
from fiesta_allennlp.selection.environment import gpus
from fiesta_allennlp.selection.options import flag
from fiesta_allennlp.trainings.executor_settings import ExecutorSettings, executor_options


def build_executor(settings: ExecutorSettings, directory: RunDirectory, *, packages: Sequence[str]) -> Executor:
    """The executor, ready to work. Its workers import `packages`.

    Raises:
        ConfigError: where its name or an entry is unknown, or a value cannot work on this machine.
    """
    params = settings.executor_params()
    name = params["type"]
    available = Executor.available()
    if name not in available:
        raise ConfigError(f"--executor must be one of {', '.join(available)} but got '{name}'.")
    known = inspect.signature(Executor.by_name(name)).parameters
    wrong = [key for key in params if key in executor_options() and key not in known]
    if wrong:
        raise ConfigError(f"{flag(wrong[0])} cannot be combined with --executor {name}. Leave it out.")
    check_devices(params.get("cuda_devices") or [])
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


def check_gpus(candidates: Mapping[str, Candidate], executor: Executor) -> None:
    """Refuse a config that asks for a GPU where no evaluation sees one: it would train on the processor, silently; and
    one that asks for what this machine does not have, where each evaluation takes what its config names.

    Raises:
        ConfigError: with the candidate and what to give.
    """
    for name, candidate in candidates.items():
        trainer = candidate.config.get("trainer", {})  # a program has none
        device = trainer.get("cuda_device", -1)
        if executor.hides_gpus and device not in (None, -1, "-1", "cpu"):
            raise ConfigError(
                f"candidate '{name}': 'trainer.cuda_device' is {json.dumps(device)}, but a cluster shows GPUs only to "
                "runs that ask for some. Give --gpus-per-evaluation 1, or a fraction such as 0.25 with Ray; or "
                "remove the key, for example with --overrides '{\"trainer.cuda_device\": -1}', to train on the CPU."
            )
        if not executor.gives_devices and not _is_there(device, trainer):
            raise ConfigError(
                f"candidate '{name}': 'trainer.cuda_device' is {json.dumps(device)}, but it must be a single number: "
                f"negative for the CPU, or the number of a device; this machine has {_num_devices()}, numbered from "
                "0. Fix it, or remove the key to train on what AllenNLP finds."
            )


def _is_there(device: Any, trainer: Mapping[str, Any]) -> bool:
    """Return whether AllenNLP can train on this device. A trainer of one's own may know other things than numbers."""
    if isinstance(device, int):
        return device < 0 or device < _num_devices()
    return device is None or trainer.get("type", "gradient_descent") != "gradient_descent"


def _num_devices() -> int:
    try:
        import torch
    except ModuleNotFoundError:  # a selection among programs needs no torch
        return len(gpus("name"))
    return torch.cuda.device_count()


def check_devices(devices: List[str]) -> None:
    """Refuse CUDA devices that this machine does not have: a training would go on without one, on the processor.

    Raises:
        ConfigError: with the number of devices there are.
    """
    num_devices = _num_devices() if devices else 0
    for device in devices:
        if not device.isdigit() or int(device) >= num_devices:
            raise ConfigError(
                f"--cuda-devices: no device '{device}' found; this machine has {num_devices} GPUs, numbered from 0. "
                "Leave the option out to train on what AllenNLP finds."
            )
