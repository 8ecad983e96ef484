"""The options of `fiesta-select`, and the executor that they ask for."""

import argparse
import inspect
import json
from dataclasses import dataclass
from typing import Any, ClassVar, Dict, List, Mapping, Optional, Tuple, Union

from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import ConfigError, plainly
from fiesta_allennlp.executors.base import Executor
from fiesta_allennlp.records import Candidate
from fiesta_allennlp.selection.options import flag, option, options_of
from fiesta_allennlp.selection.settings import CHOOSING, SelectionSettings, fill, overlay, registered, splits_option

SCORING = "what to train and score"
WORKING = "how to work"
RAY = "with --executor ray"

OF_EVERY_EXECUTOR = {
    "workers": "--workers",
    "time_limit": "--time-limit",
    "num_threads": "--threads-per-worker",
    "packages": "--include-package",
}
"""Arguments of every executor and where they come from."""


def _number_or_auto(text: str) -> Union[int, str]:
    try:
        return "auto" if text == "auto" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number or auto but got '{text}'") from None


@dataclass(frozen=True)
class Settings(SelectionSettings):
    """What `allennlp fiesta-select` can be told. Names and defaults are those of the command's options.

    `candidates` are config files, each as `PATH` or `NAME=PATH`. `executor` is a registered name or a JSON object
    with a `type`. `workers` is a number or `auto`.
    """

    GROUPS: ClassVar[Tuple[str, ...]] = (CHOOSING, SCORING, WORKING, RAY)

    candidates: Tuple[str, ...] = option(
        (),
        "two or more configs for `allennlp train`; the file's name without its ending names the candidate, or write "
        "NAME=PATH",
        metavar="CANDIDATE.jsonnet",
    )
    metric: str = option(
        "macro_f1", "the test metric to compare, as the model names it (default macro_f1)", group=SCORING, is_fixed=True
    )
    splits: str = splits_option(SCORING)
    group_by: Optional[str] = option(
        None,
        "metadata key whose equal values stay on one side of a split; `none` for none; by default what the reader "
        "says, such as sentence_id",
        group=SCORING,
        is_fixed=True,
    )
    workers: Any = option(
        1,
        "how many trainings at once (default 1), or auto for as many as there is room for",
        group=WORKING,
        metavar="N|auto",
        parse=_number_or_auto,
    )
    executor: Any = option(
        "processes",
        "processes (default) on this machine, or ray for a cluster; or a JSON object with a `type`",
        group=WORKING,
        metavar="NAME|JSON",
    )
    threads_per_worker: int = option(1, "torch threads of each training (default 1)", group=WORKING)
    cuda_devices: Optional[str] = option(
        None, "devices to hand out to the workers, such as 0,1", group=WORKING, is_of_executor=True
    )
    ray_address: Optional[str] = option(
        None,
        "auto (default) for the cluster of this machine, local to start one on this machine alone, or HOST:PORT",
        group=RAY,
        is_of_executor=True,
    )
    cpus_per_evaluation: Optional[float] = option(
        None, "CPUs to set aside for each (default as --threads-per-worker)", group=RAY, is_of_executor=True
    )
    gpus_per_evaluation: Optional[float] = option(
        None, "GPUs likewise (default 0); 0.25 puts four on one card", group=RAY, is_of_executor=True
    )
    memory_per_evaluation: Optional[float] = option(
        None, "GiB of memory likewise (default none)", group=RAY, is_of_executor=True
    )
    ship_data: Optional[bool] = option(
        None, "send the data files along, for machines that lack them", group=RAY, is_of_executor=True
    )
    time_limit: Optional[float] = option(
        None, "seconds after which a training is killed and counts as failed", group=WORKING
    )
    max_hours: Optional[float] = option(
        None, "stop undecided after so many hours in all, earlier sessions included", group=WORKING, above=0
    )
    max_failures: int = option(
        3, "withdraw a candidate after so many failed trainings (default 3)", group=WORKING, least=1
    )
    keep: str = option(
        "none",
        "trained models to keep: none (default), the best one, or all",
        group=WORKING,
        metavar="none|best|all",
        choices=("none", "best", "all"),
    )
    tensorboard: bool = option(
        False, "write how it goes for TensorBoard, into the directory's `tensorboard`", group=WORKING
    )
    overrides: str = option(
        "", "a JSON(net) structure laid over every config", group=SCORING, short="-o", is_fixed=True
    )
    entropy: Optional[int] = option(
        None,
        "the root of all seeds, to repeat a selection; by default fresh and recorded",
        group=SCORING,
        least=0,
        is_fixed=True,
    )
    include_package: Tuple[str, ...] = option(
        (),
        "additional packages to include",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.workers != "auto" and (not isinstance(self.workers, int) or isinstance(self.workers, bool)):
            raise ConfigError(f"--workers must be a whole number or auto but got {json.dumps(self.workers)}.")

    def executor_params(self) -> Dict[str, Any]:
        """The executor as a config, with the options that belong to it filled in; those that all have are left out.

        # Raises

        `ConfigError` : where options contradict the executor's own entries.
        """
        params = registered(self.executor, "--executor")
        for key, typed in OF_EVERY_EXECUTOR.items():
            if key in params:
                raise ConfigError(f"{typed} is an option of its own: take '{key}' out of --executor.")
        fill(params, {name: getattr(self, name) for name in _of_executor()}, "--executor")
        devices = params.get("cuda_devices")
        if devices is not None:
            given = devices.split(",") if isinstance(devices, str) else devices
            params["cuda_devices"] = [str(device).strip() for device in given]
        return params


def _of_executor() -> List[str]:
    return [name for name, declared in options_of(Settings) if declared.is_of_executor]


def merge(*layers: Mapping[str, Any]) -> Settings:
    """Settings from layers of given values, later ones winning; see `overlay`."""
    return Settings(**overlay(*layers, of=Settings))


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
    wrong = [key for key in params if key in _of_executor() and key not in known]
    if wrong:
        raise ConfigError(f"{flag(wrong[0])} does not go with --executor {name}. Leave it out.")
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


def check_gpus(candidates: Mapping[str, Candidate], executor: Executor) -> None:
    """Refuse a config that asks for a GPU where no evaluation sees one: it would train on the processor, silently; and
    one that asks for what this machine does not have, where each evaluation takes what its config names.

    # Raises

    `ConfigError` : with the candidate and what to give.
    """
    for name, candidate in candidates.items():
        trainer = candidate.config["trainer"]
        device = trainer.get("cuda_device", -1)
        if executor.hides_gpus and device not in (None, -1, "-1", "cpu"):
            raise ConfigError(
                f"candidate '{name}': 'trainer.cuda_device' is {json.dumps(device)}, but Ray shows GPUs only to "
                "trainings that ask for some. Give --gpus-per-evaluation 1, or a part of one such as 0.25; or take "
                "the key out, for example with --overrides '{\"trainer.cuda_device\": -1}', to train on the processor."
            )
        if not executor.gives_devices and not _is_there(device, trainer):
            raise ConfigError(
                f"candidate '{name}': 'trainer.cuda_device' is {json.dumps(device)}, but it must be one number, below "
                f"0 for the processor or that of a device; this machine has {_num_devices()}, numbered from 0. Mend "
                "it, or take the key out to train on what AllenNLP finds."
            )


def _is_there(device: Any, trainer: Mapping[str, Any]) -> bool:
    """Whether AllenNLP can train on this device. A trainer of one's own may know other things than numbers."""
    if isinstance(device, int):
        return device < 0 or device < _num_devices()
    return device is None or trainer.get("type", "gradient_descent") != "gradient_descent"


def _num_devices() -> int:
    import torch

    return torch.cuda.device_count()


def check_devices(devices: List[str]) -> None:
    """Refuse CUDA devices that this machine does not have: a training would go on without one, on the processor.

    # Raises

    `ConfigError` : with the number of devices there are.
    """
    num_devices = _num_devices() if devices else 0
    for device in devices:
        if not device.isdigit() or int(device) >= num_devices:
            raise ConfigError(
                f"--cuda-devices: there is no device '{device}'; this machine has {num_devices}, numbered from 0. "
                "Leave the option out to train on what AllenNLP finds."
            )
