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

OF_EVERY_EXECUTOR = ("workers", "time_limit", "num_threads", "packages")  # arguments with options of their own


def _number_or_auto(text: str) -> Union[int, str]:
    try:
        return "auto" if text == "auto" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number or auto but got '{text}'") from None


def _own(help: str, group: str, **declared: Any) -> Any:
    """Declare an option that belongs to one executor or another."""
    return option(None, help, group=group, is_of_executor=True, **declared)


@dataclass(frozen=True)
class ExecutorSettings(SelectionSettings):
    """Settings of how runs are made. `executor` is a registered name or a JSON object with a `type`, `workers` a number
    or `auto`. The options of a single executor are named after the arguments of its constructor."""

    workers: Any = option(
        1,
        "number of parallel runs (default 1); auto: as many as the machine has room for",
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
    cuda_devices: Optional[str] = _own("GPUs to distribute over the workers, such as 0,1", RESOURCES)
    runs_per_gpu: Optional[int] = _own(
        "with --cuda-devices: runs that share each GPU (default 1 with --workers auto)", RESOURCES, least=1
    )
    time_limit: Optional[float] = option(
        None, "kill a run after this number of seconds and count it as failed", group=RESOURCES
    )
    cpus_per_evaluation: Optional[float] = _own("CPUs to reserve per run (default: --threads-per-worker)", CLUSTER)
    gpus_per_evaluation: Optional[float] = _own(
        "GPUs to reserve per run (default 0); 0.25 puts four runs on one GPU", CLUSTER
    )
    memory_per_evaluation: Optional[float] = _own("GiB of memory to reserve per run (default none)", CLUSTER)
    ray_address: Optional[str] = _own(
        "auto (default): the cluster that this machine belongs to; local: start a cluster on this machine alone; or "
        "HOST:PORT",
        RAY,
    )
    ship_data: Optional[bool] = _own("send the data files to nodes that do not have them", RAY)
    runs_per_job: Optional[int] = _own("runs per job, one after the other (default 1)", SLURM, least=1)
    array_size: Optional[int] = _own("maximum number of jobs in a job array (default 1)", SLURM, least=1)
    partition: Optional[str] = _own("partition of the jobs (default: the cluster's)", SLURM)
    account: Optional[str] = _own("account that the jobs are charged to (default: yours)", SLURM)
    job_time: Optional[str] = _own(
        "time limit of a job, such as 30, 4:00:00 or 2-12 (default: the partition's)",
        SLURM,
        metavar="MINUTES|H:M:S|D-H",
    )
    slurm: Optional[Tuple[str, ...]] = _own(
        "any other option of sbatch, such as --slurm qos=long; repeatable", SLURM, metavar="KEY=VALUE", is_repeated=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.workers != "auto" and (not isinstance(self.workers, int) or isinstance(self.workers, bool)):
            raise ConfigError(f"--workers must be a whole number or auto but got {json.dumps(self.workers)}.")

    def executor_params(self) -> Dict[str, Any]:
        """Return the executor as a config, with its own options filled in, without the common ones."""
        params = registered(self.executor, "--executor")
        for key in OF_EVERY_EXECUTOR:
            if key in params:
                raise ConfigError(f"remove '{key}' from --executor. It has an option of its own.")
        fill(params, {name: getattr(self, name) for name in executor_options()}, "--executor")
        check_values({"runs_per_gpu": params.get("runs_per_gpu")}, type(self))
        devices, runs_per_gpu = params.get("cuda_devices"), params.pop("runs_per_gpu", None)
        if devices is not None:
            given = devices.split(",") if isinstance(devices, str) else devices
            params["cuda_devices"] = [str(device).strip() for device in given] * (runs_per_gpu or 1)
        elif runs_per_gpu is not None:
            raise ConfigError("--runs-per-gpu needs --cuda-devices, such as --cuda-devices 0,1.")
        return params


def executor_options() -> List[str]:
    """Return the names of the settings that belong to one executor or another."""
    return [name for name, declared in options_of(ExecutorSettings) if declared.is_of_executor]
