"""The options that say where and how many runs are made, whichever executor makes them."""

import argparse
import json
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple, Union

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.selection.options import check_values, option, options_of
from fiesta_allennlp.selection.settings import RESOURCES, SelectionSettings, fill, registered

CLUSTER = "Cluster (with --executor ray or slurm)"
RAY = "Ray (with --executor ray)"
SLURM = "Slurm (with --executor slurm)"

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
class ExecutorSettings(SelectionSettings):
    """Settings of how runs are made. `executor` is a registered name or a JSON object with a `type`, `workers` a number
    or `auto`. The options of a single executor are named as the arguments of its constructor."""

    workers: Any = option(
        1,
        "number of runs at once (default 1); auto: as many as the machine has room for",
        group=RESOURCES,
        metavar="N|auto",
        parse=_number_or_auto,
    )
    executor: Any = option(
        "processes",
        "processes (default) on this machine, ray or slurm for a cluster, or a JSON object with a `type`",
        group=RESOURCES,
        metavar="NAME|JSON",
    )
    threads_per_worker: int = option(1, "torch threads per run (default 1)", group=RESOURCES)
    cuda_devices: Optional[str] = option(
        None,
        "GPUs to distribute over the workers, such as 0,1",
        group=RESOURCES,
        is_of_executor=True,
    )
    runs_per_gpu: Optional[int] = option(
        None,
        "with --cuda-devices: runs that share each GPU (default 1 with --workers auto)",
        group=RESOURCES,
        least=1,
        is_of_executor=True,
    )
    time_limit: Optional[float] = option(
        None, "kill a run after this number of seconds and count it as failed", group=RESOURCES
    )
    cpus_per_evaluation: Optional[float] = option(
        None, "CPUs to reserve per run (default: --threads-per-worker)", group=CLUSTER, is_of_executor=True
    )
    gpus_per_evaluation: Optional[float] = option(
        None, "GPUs to reserve per run (default 0); 0.25 puts four runs on one GPU", group=CLUSTER, is_of_executor=True
    )
    memory_per_evaluation: Optional[float] = option(
        None, "GiB of memory to reserve per run (default none)", group=CLUSTER, is_of_executor=True
    )
    ray_address: Optional[str] = option(
        None,
        "auto (default): the cluster that this machine belongs to; local: start one on this machine alone; or "
        "HOST:PORT",
        group=RAY,
        is_of_executor=True,
    )
    ship_data: Optional[bool] = option(
        None, "send the data files to nodes that do not have them", group=RAY, is_of_executor=True
    )
    runs_per_job: Optional[int] = option(
        None,
        "runs that a job makes, one after the other (default 1)",
        group=SLURM,
        least=1,
        is_of_executor=True,
    )
    array_size: Optional[int] = option(
        None, "jobs to submit as one job array, at most (default 1)", group=SLURM, least=1, is_of_executor=True
    )
    partition: Optional[str] = option(
        None, "partition of the jobs (default: the cluster's)", group=SLURM, is_of_executor=True
    )
    account: Optional[str] = option(
        None, "account that the jobs are charged to (default: yours)", group=SLURM, is_of_executor=True
    )
    job_time: Optional[str] = option(
        None,
        "time limit of a job, as in 30, 4:00:00 or 2-12 (default: the partition's)",
        group=SLURM,
        metavar="MINUTES|H:M:S|D-H",
        is_of_executor=True,
    )
    slurm: Optional[Tuple[str, ...]] = option(
        None,
        "any other option of sbatch, as in --slurm qos=long; repeat it for more",
        group=SLURM,
        metavar="KEY=VALUE",
        is_repeated=True,
        is_of_executor=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.workers != "auto" and (not isinstance(self.workers, int) or isinstance(self.workers, bool)):
            raise ConfigError(f"--workers must be a whole number or auto but got {json.dumps(self.workers)}.")

    def executor_params(self) -> Dict[str, Any]:
        """Return the executor as a config, with its own options filled in and the common ones left out."""
        params = registered(self.executor, "--executor")
        for key, typed in OF_EVERY_EXECUTOR.items():
            if key in params:
                raise ConfigError(f"use {typed} instead: remove '{key}' from --executor.")
        fill(params, {name: getattr(self, name) for name in executor_options()}, "--executor")
        check_values({"runs_per_gpu": params.get("runs_per_gpu")}, type(self))
        devices, runs_per_gpu = params.get("cuda_devices"), params.pop("runs_per_gpu", None)
        if devices is not None:
            given = devices.split(",") if isinstance(devices, str) else devices
            params["cuda_devices"] = [str(device).strip() for device in given] * (runs_per_gpu or 1)
        elif runs_per_gpu is not None:
            raise ConfigError("--runs-per-gpu needs --cuda-devices. Add it, as in --cuda-devices 0,1.")
        return params


def executor_options() -> List[str]:
    """Return the settings that belong to one executor or another."""
    return [name for name, declared in options_of(ExecutorSettings) if declared.is_of_executor]
