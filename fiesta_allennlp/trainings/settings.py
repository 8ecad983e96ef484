"""The options of `fiesta select`. They import neither torch nor AllenNLP, so that usage errors appear immediately."""

import argparse
import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Callable, ClassVar, Dict, List, Optional, Tuple

from fiesta_allennlp.core.defaults import METRIC
from fiesta_allennlp.core.errors import ConfigError, DataError
from fiesta_allennlp.core.files import refuse_repeated_keys
from fiesta_allennlp.core.splits import SET_NAMES, Division, check_ratios
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.options import (
    RESOURCES_GROUP,
    SELECTION_GROUP,
    check_values,
    declared_options,
    flag,
    option,
    resource_option,
)
from fiesta_allennlp.selection.settings import (
    CONFIG_METAVAR,
    SelectionSettings,
    fill_options,
    max_failures_option,
    min_score_option,
    preset_option,
    seed_option,
    splits_option,
    to_config,
)

SCORING_GROUP = "Data and scoring"
DEFAULT_TOP = 8
CLUSTER_GROUP = "Cluster (with --executor ray or slurm)"
RAY_GROUP = "Ray (with --executor ray)"
SLURM_GROUP = "Slurm (with --executor slurm)"
CLUSTER_GROUPS = (CLUSTER_GROUP, RAY_GROUP, SLURM_GROUP)

COMMON_EXECUTOR_ARGUMENTS = ("workers", "time_limit", "num_threads", "packages")  # arguments with options of their own

FORMAT_BY_SUFFIX = {f".{name}": name for name in ("jsonl", "csv", "tsv", "conll")}
FORMAT_BY_SUFFIX.update({".json": "jsonl", ".txt": "lines"})


def _parse_option(convert: Callable[[str], Any], description: str, text: str) -> Any:
    try:
        return convert(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be {description} but got '{text}'") from None


_workers = partial(_parse_option, lambda text: text if text == "auto" else int(text), "a whole number or auto")
_numbers = partial(_parse_option, lambda text: tuple(map(float, text.split(","))), "numbers such as 0.64,0.16,0.2")
_list = partial(json.loads, object_pairs_hook=refuse_repeated_keys)
_points = partial(_parse_option, lambda text: _list(text) if text.strip()[:1] == "[" else text, "a file or a JSON list")

_scoring_option = partial(option, group=SCORING_GROUP)
_fixed_option = partial(_scoring_option, is_fixed=True)


def _executor_option(help: str, group: str, **declared: Any) -> Any:
    """Declare an option that belongs to one executor or another."""
    return option(None, help, group=group, is_of_executor=True, **declared)


_cluster_option = partial(_executor_option, group=CLUSTER_GROUP)
_slurm_option = partial(_executor_option, group=SLURM_GROUP)


@dataclass(frozen=True)
class TrainingSettings(SelectionSettings):
    """The settings that a selection and a search have in common: how runs are made, scored and compared.

    `points` is a JSONL file or a list. `executor` is a registered name or a JSON object with a `type`, `workers` a
    number or `auto`. The options of a single executor are named after the arguments of its constructor.
    """

    GROUPS: ClassVar[Tuple[str, ...]] = (SCORING_GROUP, SELECTION_GROUP, RESOURCES_GROUP, *CLUSTER_GROUPS)

    workers: Any = resource_option(1, "parallel runs; auto: as many as fit", metavar="N|auto", parse=_workers)
    executor: Any = resource_option(
        "processes",
        "processes on this machine, ray, slurm, or workers (see `fiesta worker`); or JSON",
        metavar=CONFIG_METAVAR,
    )
    threads_per_worker: int = resource_option(1, "CPU threads per run, also as OMP_NUM_THREADS for programs")
    cuda_devices: Optional[str] = _executor_option(
        "GPUs of the runs, such as 0,1: numbers within CUDA_VISIBLE_DEVICES, or names", RESOURCES_GROUP
    )
    runs_per_gpu: Optional[int] = _executor_option(
        "with --cuda-devices: number of parallel runs on each GPU", RESOURCES_GROUP, least=1
    )
    time_limit: Optional[float] = resource_option(None, "kill a run after this many seconds and count it as failed")
    cpus_per_evaluation: Optional[float] = _cluster_option("CPUs to reserve per run (default: --threads-per-worker)")
    gpus_per_evaluation: Optional[float] = _cluster_option("GPUs to reserve per run (default 0), such as 0.25 with Ray")
    memory_per_evaluation: Optional[float] = _cluster_option("GiB of memory to reserve per run (default none)")
    ray_address: Optional[str] = _executor_option(
        "auto (default): this machine's cluster; local: a new one on this machine; or HOST:PORT", RAY_GROUP
    )
    ship_data: Optional[bool] = _executor_option("send the data files to nodes that do not have them", RAY_GROUP)
    runs_per_job: Optional[int] = _slurm_option("runs per job, one after the other (default 1)", least=1)
    array_size: Optional[int] = _slurm_option("maximum number of jobs in a job array (default 1)", least=1)
    partition: Optional[str] = _slurm_option("partition of the jobs (default: the cluster's)")
    account: Optional[str] = _slurm_option("account that the jobs are charged to (default: yours)")
    job_time: Optional[str] = _slurm_option(
        "time limit of a job, such as 30, 4:00:00 or 2-12 (default: the partition's)", metavar="MINUTES|H:M:S|D-H"
    )
    slurm: Optional[Tuple[str, ...]] = _slurm_option(
        "any other option of sbatch, such as --slurm qos=long; repeatable", metavar="KEY=VALUE", is_repeated=True
    )
    metric: Optional[str] = _fixed_option(
        None, f"metric to compare (default: {METRIC}, or the only one of all candidates); --metric=-NAME minimizes it"
    )
    points: Any = option(
        None,
        'JSONL file or JSON list of objects such as {"lr": 0.01}: each makes a candidate from the config; or `none`',
        group=SCORING_GROUP,
        metavar="FILE.jsonl|JSON",
        parse=_points,
    )
    preset: Optional[str] = preset_option()
    splits: str = splits_option(SCORING_GROUP)
    split_ratios: Tuple[float, ...] = _fixed_option(
        (),
        "shares of the sets in random splits, such as 0.64,0.16,0.2, or 0.8,0.2 for two (default: the official sizes)",
        metavar="TRAIN,VALIDATION,TEST",
        parse=_numbers,
    )
    score: str = _fixed_option(
        "test", "the set to score: test, or validation if the test labels are hidden", choices=SET_NAMES[:0:-1]
    )
    group_by: Optional[str] = _fixed_option(
        None,
        "keep instances with equal values of this metadata key together; `none` for no groups (default: the reader's)",
    )
    allow_pretrained_on_pool: bool = _scoring_option(
        False, "with random splits: accept candidates whose starting weights were trained on the same files"
    )
    allow_unseeded: bool = resource_option(
        False, "accept a program whose command does not use {seed}, and runs of a candidate that report equal metrics"
    )
    min_score: Optional[float] = min_score_option(SCORING_GROUP)
    max_hours: Optional[float] = resource_option(None, "stop as inconclusive after this many hours in total", above=0)
    max_failures: int = max_failures_option()
    keep: str = resource_option(
        "none", "trained models to keep: none, best (of the winner), or all", choices=("none", "best", "all")
    )
    overrides: str = _fixed_option("", "a Jsonnet object with values for every config", short="-o")
    seed: Optional[int] = seed_option(SCORING_GROUP)
    include_package: Tuple[str, ...] = option((), "packages to import first")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.workers != "auto" and (not isinstance(self.workers, int) or isinstance(self.workers, bool)):
            raise ConfigError(f"--workers must be a whole number or auto but got {json.dumps(self.workers)}.")
        if self.metric is not None and not Metric.parse(self.metric).name:
            raise ConfigError(f"--metric must be a name, or -NAME to minimize it, but got '{self.metric}'.")
        for name in ("split_ratios", "group_by") if self.on_official_splits else ():
            if getattr(self, name):
                raise ConfigError(f"{flag(name)} applies only to random splits. Remove it, or --splits official.")
        if self.split_ratios:
            try:
                check_ratios(self.split_ratios, self.division.set_names)
            except DataError as error:
                raise ConfigError(f"--split-ratios with --score {self.score}: {error}") from error

    def executor_params(self) -> Dict[str, Any]:
        """Return the executor as a config, with its own options filled in, without the common ones."""
        params = to_config(self.executor, "--executor")
        for key in COMMON_EXECUTOR_ARGUMENTS:
            if key in params:
                raise ConfigError(f"remove '{key}' from --executor. It has an option of its own.")
        fill_options(params, {name: getattr(self, name) for name in executor_options()}, "--executor")
        check_values({"runs_per_gpu": params.get("runs_per_gpu")}, type(self))
        devices, runs_per_gpu = params.get("cuda_devices"), params.pop("runs_per_gpu", None)
        if devices is not None:
            device_list = devices.split(",") if isinstance(devices, str) else devices
            params["cuda_devices"] = [str(device).strip() for device in device_list] * (runs_per_gpu or 1)
        elif runs_per_gpu is not None:
            raise ConfigError("--runs-per-gpu needs --cuda-devices, such as --cuda-devices 0,1.")
        return params

    @property
    def keeps_models(self) -> bool:
        return self.keep != "none"

    @property
    def division(self) -> Division:
        has_validation = self.score == "validation" or len(self.split_ratios) != len(SET_NAMES) - 1
        ratios = tuple(map(float, self.split_ratios))
        return Division(self.on_official_splits, ratios, self.score, has_validation=has_validation)

    @property
    def data_of_commands(self) -> Optional[Dict[str, str]]:
        """The `data` of a program that is a command without a config; None if it splits its data itself."""
        return None

    @property
    def scored_by(self) -> Metric:
        """The metric with its direction; the default metric while `metric` is None."""
        return Metric.parse(self.metric or METRIC)


@dataclass(frozen=True)
class Settings(TrainingSettings):
    """The settings of `fiesta select`, with the names and defaults of the command's options.

    `candidates` are configs, written as `CONFIG_METAVAR` or `NAME=CONFIG`, with or without `?NAME=VALUE,...` behind; or
    the commands of programs, written as `NAME=COMMAND`, with `data` as their files.
    """

    candidates: Tuple[str, ...] = option(
        (),
        "two or more configs for `allennlp train` or for programs. A candidate is named after its file, without the "
        "extension; NAME=PATH sets another name. 'PATH?lr=0.01,model.dropout=0.5' sets external variables and "
        "overrides of one candidate. 'NAME=python train.py {train} {test} {seed}' is a program without a config",
        metavar="CANDIDATE.jsonnet",
    )
    study: Optional[str] = _scoring_option(
        None,
        "an Optuna study, as an SQLite file, a journal file or a URL: its best trials make the candidates from the "
        "config or command, whose {placeholders} they fill",
        metavar="STORAGE[#NAME]",
    )
    top: Optional[int] = _scoring_option(
        None, f"with --study: number of its best trials to take (default {DEFAULT_TOP})", least=2
    )
    data: Tuple[str, ...] = _scoring_option(
        (),
        "a data file for candidates that are commands: .jsonl, .json, .csv, .tsv, .conll or .txt. Repeat it for the "
        "training and test set (with --score validation: training and validation set), or for all three sets; or pass "
        "one file with --split-ratios",
        metavar="FILE",
        is_repeated=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.data) > len(SET_NAMES):
            raise ConfigError(f"--data takes at most 3 files ({', '.join(SET_NAMES)}) but got {len(self.data)}.")
        if self.top is not None and self.study is None:
            raise ConfigError("--top is for the best trials of a study. Add --study STORAGE.")
        if self.points is not None and self.study is not None:
            raise ConfigError("--points and --study both make the candidates of the template. Use one or the other.")

    @property
    def data_of_commands(self) -> Optional[Dict[str, str]]:
        if not self.data:
            return None
        suffix = Path(self.data[0]).suffix.lower()
        if suffix not in FORMAT_BY_SUFFIX:
            suffixes = ", ".join(FORMAT_BY_SUFFIX)
            raise ConfigError(f"--data {self.data[0]}: use one of {suffixes}, or a config with 'data.format'.")
        set_names = {1: SET_NAMES[:1], 2: (SET_NAMES[0], self.score), 3: SET_NAMES}[len(self.data)]
        return {**dict(zip(set_names, self.data, strict=True)), "format": FORMAT_BY_SUFFIX[suffix]}


def executor_options() -> List[str]:
    """Return the names of the settings that belong to one executor or another."""
    return [name for name, declaration in declared_options(TrainingSettings) if declaration.is_of_executor]
