"""The options of `fiesta select`. They import neither torch nor AllenNLP, so that usage errors appear immediately."""

import argparse
import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Callable, ClassVar, Dict, Optional, Tuple

from fiesta_allennlp.candidates.splits import SET_NAMES, Division, check_ratios
from fiesta_allennlp.core import choice_settings
from fiesta_allennlp.core.errors import ConfigError, DataError
from fiesta_allennlp.core.files import refuse_repeated_keys
from fiesta_allennlp.core.metrics import METRIC, Metric
from fiesta_allennlp.core.options import RESOURCES_GROUP, SELECTION_GROUP, flag, option, resource_option
from fiesta_allennlp.selecting.objections import allow_option

SCORING_GROUP = "Data and scoring"
DEFAULT_TOP = 8

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


@dataclass(frozen=True)
class Settings(choice_settings.SelectionSettings):
    """The settings of `fiesta select`, with the names and defaults of the command's options.

    `candidates` are configs, written as `PATH` or `NAME=PATH`, or the commands of programs, written as `NAME=COMMAND`,
    with `data` as their files. `points` is a JSONL file or a list. `executor` is a registered name, `workers` a number
    or `auto`. The keys of `executor_option` are those of the engine, or the arguments of the constructor of another
    executor.
    """

    GROUPS: ClassVar[Tuple[str, ...]] = (SCORING_GROUP, SELECTION_GROUP, RESOURCES_GROUP)

    candidates: Tuple[str, ...] = option(
        (),
        "two or more configs for `allennlp train` or for programs. A candidate is named after its file, without the "
        "extension; NAME=PATH sets another name. 'NAME=python train.py {train} {test} {seed}' is a program without a "
        "config",
        metavar="CANDIDATE.jsonnet",
    )
    study: Optional[str] = _scoring_option(
        None,
        "an Optuna study, as an SQLite file, a journal file or a URL: its best trials make the candidates from the "
        "config or command, whose {placeholders} they fill",
        metavar="STORAGE[#NAME]",
    )
    top: Optional[int] = _scoring_option(
        None, f"with --study: number of its best trials to take (default {DEFAULT_TOP})", least=2, is_rare=True
    )
    data: Tuple[str, ...] = _scoring_option(
        (),
        "a data file for candidates that are commands: .jsonl, .json, .csv, .tsv, .conll or .txt. Repeat it for the "
        "training and test set (with --score validation: training and validation set), or for all three sets; or pass "
        "one file with --split-ratios",
        metavar="FILE",
        is_repeated=True,
    )

    workers: Any = resource_option(1, "parallel runs; auto: as many as fit", metavar="N|auto", parse=_workers)
    executor: str = resource_option("processes", "processes on this machine, slurm or ray", metavar="NAME")
    executor_option: Tuple[str, ...] = resource_option(
        (),
        "an option in the executor's own words: partition=gpu for Slurm's sbatch, num_gpus=1 for a task of Ray, or "
        "num_threads=4 for processes; repeatable",
        metavar="KEY=VALUE",
        is_repeated=True,
        is_rare=True,
    )
    cuda_devices: Optional[str] = resource_option(
        None,
        "with --executor processes: GPUs of the runs, such as 0,1, or 0,0 for two runs on one: numbers within "
        "CUDA_VISIBLE_DEVICES, or names",
    )
    time_limit: Optional[float] = resource_option(
        None, "kill a run after this many seconds and count it as failed", is_rare=True
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
    preset: Optional[str] = choice_settings.preset_option()
    splits: str = choice_settings.splits_option(SCORING_GROUP)
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
        is_rare=True,
    )
    allow: Tuple[str, ...] = allow_option(RESOURCES_GROUP)
    min_score: Optional[float] = choice_settings.min_score_option(SCORING_GROUP)
    max_hours: Optional[float] = resource_option(None, "stop after this many hours in total", above=0, is_rare=True)
    max_failures: int = choice_settings.max_failures_option()
    keep: str = resource_option(
        "none",
        "trained models to keep: none, best (of the winner), or all",
        choices=("none", "best", "all"),
        is_rare=True,
    )
    overrides: str = _fixed_option("", "a Jsonnet object with values for every config", short="-o")
    seed: Optional[int] = choice_settings.seed_option(SCORING_GROUP)
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
        if len(self.data) > len(SET_NAMES):
            raise ConfigError(f"--data takes at most 3 files ({', '.join(SET_NAMES)}) but got {len(self.data)}.")
        if self.top is not None and self.study is None:
            raise ConfigError("--top is for the best trials of a study. Add --study STORAGE.")
        if self.points is not None and self.study is not None:
            raise ConfigError("--points and --study both make the candidates of the template. Use one or the other.")

    @property
    def executor_options(self) -> Dict[str, str]:
        """The options of the executor, by key."""
        pairs = [text.strip().lstrip("-").partition("=") for text in self.executor_option]
        return {key.strip(): value for key, _, value in pairs}

    @property
    def division(self) -> Division:
        has_validation = self.score == "validation" or len(self.split_ratios) != len(SET_NAMES) - 1
        ratios = tuple(map(float, self.split_ratios))
        return Division(self.on_official_splits, ratios, self.score, has_validation=has_validation)

    @property
    def data_of_commands(self) -> Optional[Dict[str, str]]:
        """The `data` of a program that is a command without a config; None if it splits its data itself."""
        if not self.data:
            return None
        suffix = Path(self.data[0]).suffix.lower()
        if suffix not in FORMAT_BY_SUFFIX:
            suffixes = ", ".join(FORMAT_BY_SUFFIX)
            raise ConfigError(f"--data {self.data[0]}: use one of {suffixes}, or a config with 'data.format'.")
        set_names = {1: SET_NAMES[:1], 2: (SET_NAMES[0], self.score), 3: SET_NAMES}[len(self.data)]
        return {**dict(zip(set_names, self.data, strict=True)), "format": FORMAT_BY_SUFFIX[suffix]}

    @property
    def scored_by(self) -> Metric:
        """The metric with its direction; the default metric while `metric` is None."""
        return Metric.parse(self.metric or METRIC)
