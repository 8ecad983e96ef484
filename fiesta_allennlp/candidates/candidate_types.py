"""The types of candidates: AllenNLP configs, programs, and those that your own packages register.

Nothing else asks for the type of a candidate. `type_of` returns the object that answers for one config.
"""

import json
from abc import abstractmethod
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Sequence, Type, Union

from fiesta_allennlp.candidates.candidate import AnyCandidate, CandidateRun, ReportedMetrics, to_plain_metrics
from fiesta_allennlp.candidates.config import Config, evaluation_config, leaves_of, official_paths, readers_of
from fiesta_allennlp.candidates.programs import program  # noqa: F401, registers its type
from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.candidates.splits import Division, Preparation
from fiesta_allennlp.core.errors import ALLENNLP_MISSING_MESSAGE, ConfigError
from fiesta_allennlp.core.files import flatten
from fiesta_allennlp.core.options import option_words
from fiesta_allennlp.core.records import Request
from fiesta_allennlp.core.registry import build
from fiesta_allennlp.version import PLUGIN_MODULE


@CandidateRun.register("candidate_type")
@dataclass(frozen=True)
class CandidateTypeRun(CandidateRun):
    """Makes a run of a `CandidateType`. Numbers may be scalars of numpy or torch, and nested."""

    def make_run(self, request: Request, directory: Path) -> ReportedMetrics:
        candidate: Any = type_of(self.config)
        result = candidate.run(request, directory)
        metrics = dict(flatten(result if isinstance(result, Mapping) else {self.metric: result}))
        return ReportedMetrics(to_plain_metrics(metrics), "the value that run() returned")


class CandidateType(AnyCandidate):
    """A type of your own, for candidates that split their data themselves by the `split_seed` of each request.

    A subclass needs `run`. The keys of its config, apart from `type`, are the arguments of its constructor.
    """

    run_class = CandidateTypeRun

    @classmethod
    def of(cls, config: Config) -> AnyCandidate:
        candidate = build(AnyCandidate, config)
        candidate.config = config
        return candidate

    @abstractmethod
    def run(self, request: Request, directory: Path) -> Union[float, Mapping[str, Any]]:
        """Make one run with the seeds of the request, and return its score, or its metrics by name.

        It runs in a fresh process, in the current directory of the command. Write files into `directory`.
        """


INSTANCE_SKIPPING_KEYS = ("batches_per_epoch", "instances_per_epoch", "drop_last")
"""Keys of data loaders that skip instances."""

REFUSED_READERS = {
    "resplit": "is a resplit reader, but the selection draws the splits itself. Use its 'reader', its 'paths' as "
    "'train_data_path' and so on, and --group-by.",
    "multitask": "reads several tasks. Let a program train on all of them, and report the mean.",
}

REQUIRED_KEYS = ("dataset_reader", "model", "data_loader", "trainer")

METRIC_PREFIXES = {"test": "test", "validation": "best_validation"}  # of AllenNLP's metrics, by the set that is scored


@CandidateRun.register("allennlp")
@dataclass(frozen=True)
class AllenNLPRun(CandidateRun):
    """Trains a candidate with AllenNLP on one split and scores its best epoch on the test or the validation set.

    A run leaves `config.json`, `metrics.json`, `meta.json` and `outcome.json`, and with `keep_models` also
    `model.tar.gz`. A trial has one epoch.
    """

    def make_run(self, request: Request, directory: Path) -> ReportedMetrics:
        from fiesta_allennlp.candidates.allennlp.training import train

        config = evaluation_config(
            limit_to_one_epoch(self.config) if self.is_trial else self.config,
            request,
            group_by=self.group_by,
            vectors=self.vectors,
            free_device=self.free_device,
            division=self.division,
        )
        return ReportedMetrics(train(config, directory, keep_archive=self.keep_models), "metrics.json")

    @property
    def metric_name(self) -> str:
        return f"{METRIC_PREFIXES[self.division.scored]}_{self.metric}"


def limit_to_one_epoch(config: Config) -> Config:
    """Return an AllenNLP config with one epoch, unless its trainer counts none."""
    trainer = config["trainer"]
    has_epochs = "num_epochs" in trainer or trainer.get("type", "gradient_descent") == "gradient_descent"
    return {**config, "trainer": {**trainer, "num_epochs": 1}} if has_epochs else config


@AnyCandidate.register("allennlp")
class AllenNLPCandidate(AnyCandidate):
    """A candidate that is a complete config for `allennlp train`."""

    run_class = AllenNLPRun
    worker_module = "fiesta_allennlp.candidates.allennlp.loaded"
    data_key = "{}_data_path"

    def _check_keys(self) -> None:
        """Refuse an AllenNLP config that lacks a key, or has one that the selection sets."""
        for key in (*REQUIRED_KEYS, "train_data_path"):
            if self.config.get(key) is None:
                program = ' For a program, set "type": "program".' if "command" in self.config else ""
                raise ConfigError(f"'{key}' is missing. A candidate is a complete `allennlp train` config.{program}")
        for key in (*REQUIRED_KEYS, "validation_dataset_reader"):
            if not isinstance(self.config.get(key) or {}, dict):
                found = json.dumps(self.config[key])
                raise ConfigError(f"'{key}' must be an object such as {{\"type\": ...}} but is {found}.")
        for key, reader in readers_of(self.config).items():
            if reader.get("type") in REFUSED_READERS:
                raise ConfigError(f"'{key}' {REFUSED_READERS[reader['type']]}")
        if self.config.get("distributed") is not None:
            # AllenNLP 2.10 evaluates the test set in the first process alone, where metrics wait for all.
            raise ConfigError(
                "'distributed' is not supported, because AllenNLP cannot score the test set of a distributed run. "
                "Remove it, and use --cuda-devices to train several models in parallel."
            )

    def check(self, settings: Settings) -> None:
        self._check_keys()
        division, metric = settings.division, settings.scored_by
        if not division.has_validation:
            raise ConfigError("AllenNLP configs need a validation set: use three numbers in --split-ratios.")
        self.check_sets(division)
        # AllenNLP scores the test set with the loader for validation, or else with the loader for training.
        loader = "data_loader" if self.config.get("validation_data_loader") is None else "validation_data_loader"
        for key, value in leaves_of(self.config[loader], loader):
            if key.rpartition(".")[2] in INSTANCE_SKIPPING_KEYS and value is not None and value is not False:
                raise ConfigError(
                    f"'{key}' is {json.dumps(value)}, so scores would cover only part of the test set. Remove it, or "
                    "add a 'validation_data_loader' without it."
                )
        # With a metric that the trainer optimises in the opposite direction, the worst candidate would win.
        tracked_metric = self.config.get("trainer", {}).get("validation_metric")
        opposite = ("+" if metric.minimise else "-") + metric.name
        if opposite in (tracked_metric if isinstance(tracked_metric, list) else [tracked_metric]):
            raise ConfigError(
                f"'trainer.validation_metric' is {json.dumps(tracked_metric)}, which contradicts --metric="
                f"{metric.option_text}. Use --metric={opposite}, or correct 'trainer.validation_metric'."
            )

    @property
    def data_paths(self) -> Dict[str, Any]:
        return official_paths(self.config)

    def check_installed(self) -> None:
        if find_spec("allennlp") is None:
            raise ConfigError(ALLENNLP_MISSING_MESSAGE)

    def prepare(self, *, group_by: Optional[str], division: Division, vectors: Path) -> Preparation:
        from fiesta_allennlp.candidates.allennlp.training import prepare_candidate

        return prepare_candidate(self.config, group_by=group_by, division=division, vectors=vectors)

    @classmethod
    def repeat_command(cls, packages: Sequence[str]) -> str:
        options = " ".join(option_words("include_package", (PLUGIN_MODULE, *packages)))
        file = "DIR/evaluations/CANDIDATE-REPLICATE/config.json"
        return f"OMP_NUM_THREADS=1 allennlp train {file} -s NEW {options}"


def type_of(config: Mapping[str, Any]) -> AnyCandidate:
    """Return the object that answers for a config. Raise a `ConfigError` if its type is not registered, or its keys are
    wrong."""
    return _build_candidate(AnyCandidate.by_name(_type_name(config)), json.dumps(config))


@cache
def _build_candidate(candidate_class: Type[AnyCandidate], config_text: str) -> AnyCandidate:
    """Build the object of a config once, although a start asks for it many times."""
    return candidate_class.of(json.loads(config_text))


def stored_type_of(config: Mapping[str, Any]) -> Type[AnyCandidate]:
    """Return the class of a config, or `CandidateType` for that of a package which is not imported."""
    return AnyCandidate.find(_type_name(config)) or CandidateType


def _type_name(config: Mapping[str, Any]) -> Any:
    """Return the type in a config. An AllenNLP config may also have a `type`, of its training loop."""
    is_loop = "model" in config and AnyCandidate.find(config.get("type")) is None
    return AnyCandidate.default if is_loop else config.get("type", AnyCandidate.default)
