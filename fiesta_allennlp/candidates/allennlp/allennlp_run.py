"""Trains one config on one split with given seeds and returns one score.

Importing this module also patches AllenNLP 2.10.1 in two places for newer versions of torch and transformers, which
Python 3.11 and later need. With the versions that AllenNLP pins, nothing changes.
"""

import gc
import json
import shutil
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

import numpy as np
import torch
from allennlp.commands.train import TrainModel
from allennlp.common import Params, cached_transformers
from allennlp.common.meta import META_NAME, Meta
from allennlp.common.util import prepare_environment
from allennlp.models.archival import CONFIG_NAME, archive_model
from allennlp.training.learning_rate_schedulers import LearningRateScheduler
from allennlp.training.learning_rate_schedulers.pytorch_lr_schedulers import ReduceOnPlateauLearningRateScheduler

from fiesta_allennlp.candidates.candidate_run import CandidateRun, ReportedMetrics
from fiesta_allennlp.candidates.config import Config, evaluation_config, vector_files
from fiesta_allennlp.core.files import read_json
from fiesta_allennlp.core.records import Request
from fiesta_allennlp.core.settings.jsonnet import apply_overrides


def to_number(value: Any) -> Optional[float]:
    """Return a metric as a number; None for anything else, such as a text or a truth value."""
    if isinstance(value, (np.ndarray, torch.Tensor)) and value.ndim == 0:
        value = value.item()
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else None


def to_plain_metrics(metrics: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the metrics with Python's numbers, because AllenNLP cannot write others to `metrics.json`."""
    numbers = {name: to_number(value) for name, value in metrics.items() if not isinstance(value, int)}
    return {**metrics, **{name: number for name, number in numbers.items() if number is not None}}


METRIC_PREFIXES = {"test": "test", "validation": "best_validation"}  # of AllenNLP's metrics, by the set that is scored


@CandidateRun.register("allennlp")
@dataclass(frozen=True)
class AllenNLPRun(CandidateRun):
    """Trains a candidate with AllenNLP on one split and scores its best epoch on the test or the validation set.

    A run leaves `config.json`, `metrics.json`, `meta.json` and `outcome.json`, and with `keep_archives` also
    `model.tar.gz`. With `free_device` it trains on the worker's own device, whatever the config says. `vectors` are the
    word-vector files to read instead of the files in the config.
    """

    vectors: Mapping[str, str] = field(default_factory=dict)
    keep_archives: bool = False
    free_device: bool = False

    def run_config(self, request: Request) -> Config:
        """Return the config that repeats this run with plain `allennlp train`."""
        return evaluation_config(
            self.config,
            request,
            group_by=self.group_by,
            vectors=self.vectors,
            free_device=self.free_device,
            division=self.division,
        )

    def make_run(self, request: Request, directory: Path) -> ReportedMetrics:
        config = self.run_config(request)
        metrics = train(config, directory)
        if self.keep_archives:
            archive_model(str(directory), include_in_archive=config.get("include_in_archive"))
        for path in directory.glob("*.th"):
            path.unlink()
        shutil.rmtree(directory / "vocabulary", ignore_errors=True)
        return ReportedMetrics(metrics, "metrics.json")

    @property
    def metric_name(self) -> str:
        return f"{METRIC_PREFIXES[self.division.scored]}_{self.metric}"

    def describe(self, request: Request) -> Dict[str, Any]:
        """Return nothing, because `config.json` repeats the run."""
        return {}

    def is_directory_of(self, directory: Path, request: Request) -> bool:
        """Compare the configs. The run directory with its word vectors may have moved since."""
        return _with_bare_vectors(read_json(directory / CONFIG_NAME)) == _with_bare_vectors(self.run_config(request))


def _with_bare_vectors(config: Config) -> Config:
    """Return the config with the bare names of its word-vector files, which identify their contents."""
    plain = json.loads(json.dumps(config))
    return apply_overrides(plain, {path: Path(file).name for path, file in vector_files(plain).items()})


def train(config: Config, directory: Path) -> Dict[str, Any]:
    """Train as `allennlp train` does, without an archive, and return all metrics."""
    params = Params(json.loads(json.dumps(config)))
    prepare_environment(params)
    loop = build_train_model(params, directory, config)
    original_get_metrics = loop.model.get_metrics
    loop.model.get_metrics = lambda *args, **kwargs: to_plain_metrics(original_get_metrics(*args, **kwargs))
    gc.freeze()  # the data stay until the end: garbage collections that search them take a tenth of a small training
    metrics = loop.run()
    loop.finish(metrics)
    return metrics


def build_train_model(params: Params, directory: Path, config: Config) -> TrainModel:
    """Build everything that `params` describe, to train in this process. They are consumed. `config` and the versions
    are in the directory first, as in `allennlp train`, because some callbacks read them when they are built."""
    Params(json.loads(json.dumps(config))).to_file(str(directory / CONFIG_NAME))
    Meta.new().to_file(directory / META_NAME)
    for key in ("evaluation", "include_in_archive", "distributed"):  # which AllenNLP reads before it builds the rest
        params.pop(key, None)
    return TrainModel.from_params(params=params, serialization_dir=str(directory), local_rank=0)


# AllenNLP with newer libraries.

_get_tokenizer = cached_transformers.get_tokenizer


def get_tokenizer(model_name: str, **kwargs: Any) -> Any:
    """Drop `add_special_tokens`, which `PretrainedTransformerTokenizer` passes without effect, and which transformers
    4.45 refuses."""
    kwargs.pop("add_special_tokens", None)
    return _get_tokenizer(model_name, **kwargs)


cached_transformers.get_tokenizer = get_tokenizer


@LearningRateScheduler.register("reduce_on_plateau", exist_ok=True)
class ReduceOnPlateau(ReduceOnPlateauLearningRateScheduler):
    """AllenNLP's scheduler without `verbose`, which torch 2.12 refuses. Here the argument has no effect.

    AllenNLP finds the other arguments in the constructor of the base class."""

    def __init__(self, optimizer: torch.optim.Optimizer, verbose: bool = False, **kwargs: Any) -> None:
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **kwargs)
        super(ReduceOnPlateauLearningRateScheduler, self).__init__(scheduler)
