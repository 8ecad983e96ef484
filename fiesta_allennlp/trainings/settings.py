"""The options of `fiesta-select`. They need neither torch nor AllenNLP, so that usage errors come at once."""

import argparse
import json
from dataclasses import dataclass
from typing import Any, ClassVar, Dict, List, Mapping, Optional, Tuple, Union

from fiesta_allennlp.errors import ConfigError, DataError
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.options import flag, option, options_of
from fiesta_allennlp.selection.settings import (
    CHOOSING,
    OFFICIAL,
    SelectionSettings,
    fill,
    overlay,
    registered,
    splits_option,
)
from fiesta_allennlp.splits import PARTS, Division, check_ratios

SCORING = "what to train and score"
WORKING = "how to work"
RAY = "with --executor ray"

DEFAULT_METRIC = "macro_f1"

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


def _numbers(text: str) -> Tuple[float, ...]:
    try:
        return tuple(float(number) for number in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be numbers with commas, such as 0.64,0.16,0.2, but got '{text}'"
        ) from None


def _points(text: str) -> Any:
    if not text.lstrip().startswith("["):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}' is not valid JSON: {error}") from None


@dataclass(frozen=True)
class Settings(SelectionSettings):
    """What `allennlp fiesta-select` can be told. Names and defaults are those of the command's options.

    `candidates` are configs, each as `CONFIG` or `NAME=CONFIG`, with or without `?NAME=VALUE,...` behind. `points` is a
    JSONL file or a list of objects. `executor` is a registered name or a JSON object
    with a `type`. `workers` is a number or `auto`.
    """

    GROUPS: ClassVar[Tuple[str, ...]] = (CHOOSING, SCORING, WORKING, RAY)

    candidates: Tuple[str, ...] = option(
        (),
        "two or more configs for `allennlp train`; the file's name without its ending names the candidate, or write "
        "NAME=PATH; 'PATH?lr=0.01,model.dropout=0.5' gives external variables and overrides of one candidate",
        metavar="CANDIDATE.jsonnet",
    )
    points: Any = option(
        None,
        'a JSONL file: the values of each line, {"lr": 0.01}, make a candidate of the one config that is given without '
        "values; or a JSON list of such objects; none for none",
        group=SCORING,
        metavar="FILE.jsonl|JSON",
        parse=_points,
    )
    metric: Optional[str] = option(
        None,
        "the metric to compare, as the model names it (default macro_f1, or the only one that all candidates "
        "report); --metric=-NAME where less is better, as in --metric=-perplexity",
        group=SCORING,
        is_fixed=True,
    )
    splits: str = splits_option(SCORING)
    split_ratios: Tuple[float, ...] = option(
        (),
        "shares of the sets in random splits, such as 0.64,0.16,0.2, instead of the official ones; with --score "
        "validation two numbers. Needed where the data come as one file",
        group=SCORING,
        metavar="TRAIN,VALIDATION,TEST",
        parse=_numbers,
        is_fixed=True,
    )
    score: str = option(
        "test",
        "test (default): score each run on the test set; validation: on the validation set, for tasks whose test "
        "labels are hidden",
        group=SCORING,
        metavar="test|validation",
        choices=PARTS[:0:-1],
        is_fixed=True,
    )
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
        if self.metric is not None and not Metric.of(self.metric).name:
            raise ConfigError(f"--metric must be a name, or -NAME to minimise it, but got '{self.metric}'.")
        if self.workers != "auto" and (not isinstance(self.workers, int) or isinstance(self.workers, bool)):
            raise ConfigError(f"--workers must be a whole number or auto but got {json.dumps(self.workers)}.")
        self._check_splits()

    def _check_splits(self) -> None:
        """Refuse options of random splits beside official ones, and ratios that are none."""
        for name in ("split_ratios", "group_by") if self.on_official_splits else ():
            if getattr(self, name):
                raise ConfigError(
                    f"{flag(name)} is about random splits, but --splits official takes every set as the config gives "
                    "it. Leave one of the two out."
                )
        for value in self.split_ratios:
            if not isinstance(value, (int, float)) or not 0 < value < 1:
                raise ConfigError(f"--split-ratios must be numbers above 0 and below 1 but got {json.dumps(value)}.")
        if self.split_ratios:
            try:
                check_ratios(self.split_ratios, self.division.parts)
            except DataError as error:
                raise ConfigError(f"--split-ratios with --score {self.score}: {error}") from error

    @property
    def on_official_splits(self) -> bool:
        return self.splits == OFFICIAL

    @property
    def division(self) -> Division:
        """How the sets of a run come about."""
        return Division(self.on_official_splits, tuple(map(float, self.split_ratios)), self.score)

    @property
    def scored_by(self) -> Metric:
        """The metric, with its direction. While `metric` is None, the default one."""
        return Metric.of(self.metric or DEFAULT_METRIC)

    def executor_params(self) -> Dict[str, Any]:
        """The executor as a config, with the options that belong to it filled in; those that all have are left out.

        # Raises

        `ConfigError` : where options contradict the executor's own entries.
        """
        params = registered(self.executor, "--executor")
        for key, typed in OF_EVERY_EXECUTOR.items():
            if key in params:
                raise ConfigError(f"{typed} is an option of its own: take '{key}' out of --executor.")
        fill(params, {name: getattr(self, name) for name in executor_options()}, "--executor")
        devices = params.get("cuda_devices")
        if devices is not None:
            given = devices.split(",") if isinstance(devices, str) else devices
            params["cuda_devices"] = [str(device).strip() for device in given]
        return params


def executor_options() -> List[str]:
    """The settings that are options of one executor or the other."""
    return [name for name, declared in options_of(Settings) if declared.is_of_executor]


def merge(*layers: Mapping[str, Any]) -> Settings:
    """Settings from layers of given values, later ones winning; see `overlay`."""
    return Settings(**overlay(*layers, of=Settings))
