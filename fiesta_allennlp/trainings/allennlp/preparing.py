"""Checks an AllenNLP config before its first run: its data, word vectors, model and trainer."""

import inspect
import math
import tempfile
from pathlib import Path
from typing import Any, FrozenSet, Mapping, Optional, Tuple

import torch
from allennlp.common import Params
from allennlp.common.util import prepare_environment
from allennlp.training import GradientDescentTrainer

from fiesta_allennlp.errors import ConfigError, FiestaError, ModelError, describe, not_keys
from fiesta_allennlp.records import Request
from fiesta_allennlp.splits import AT_OFFICIAL_RATIOS, Division
from fiesta_allennlp.trainings.allennlp.evaluator import built, number_of
from fiesta_allennlp.trainings.allennlp.multitask import first_batches
from fiesta_allennlp.trainings.allennlp.pool_reading import read_pool
from fiesta_allennlp.trainings.allennlp.vectors import coverage_of, filtered_vectors, rows_of, width_of
from fiesta_allennlp.trainings.config import Config, evaluation_config, vector_references
from fiesta_allennlp.trainings.pool import Pool, Preparation


def prepare_candidate(
    config: Config,
    *,
    group_by: Optional[str],
    vectors_directory: Path,
    data: str = "",
    division: Division = AT_OFFICIAL_RATIOS,
) -> Preparation:
    """Read the pool, filter the word vectors, build the model and its trainer, and run one batch, or one of each task,
    through it. `data` and `division` are those of `read_pool`.

    Raises:
        Exception: `FiestaError`, AllenNLP's `ConfigurationError` or whatever the candidate's own code raises.
    """
    pool = read_pool(config, group_by, data=data, division=division)
    vectors, coverage = {}, {}
    for holder, key in vector_references(config):
        uri = holder[key]
        filtered = filtered_vectors(uri, pool.words, vectors_directory)
        rows = rows_of(filtered)
        _check_width(holder, uri, width_of(rows))
        vectors[uri] = str(filtered.resolve())
        counts = pool.counts.get(holder.get("vocab_namespace", "tokens"), {})
        coverage[uri] = coverage_of(rows, counts)
    num_parameters, metrics = build_once(config, pool, vectors, division)
    check_trainer(config["trainer"], metrics)
    shares = tuple(coverage[uri] for uri in sorted(vectors))
    return Preparation(pool, num_parameters, metrics, tuple(sorted(vectors.items())), shares)


def _check_width(holder: Config, uri: str, width: int) -> None:
    """Refuse an embedding of another width than its vectors, of which AllenNLP would pass over every row."""
    dim = holder.get("embedding_dim", width)
    if dim != width:
        raise ConfigError(
            f"'embedding_dim' is {dim} but the rows of {uri} have {width} numbers. Write {width}, or give another file."
        )


def build_once(
    config: Config, pool: Pool, vectors: Mapping[str, str], division: Division
) -> Tuple[int, FrozenSet[str]]:
    """Build the model and its trainer, and put one batch through, or one of each task. Return the number of parameters
    and what the metrics are called.

    Raises:
        Exception: `ModelError` for the batch; what the candidate's own code or AllenNLP raises while building.
    """
    any_request = Request("", 0, split_seed=0, random_seed=0, numpy_seed=0, pytorch_seed=0)
    made = evaluation_config(config, any_request, group_by=pool.group_by, vectors=vectors, division=division)
    made["trainer"]["cuda_device"] = -1
    params = Params(made)
    prepare_environment(params)
    with tempfile.TemporaryDirectory() as scratch:
        loop = built(params, Path(scratch))
        loop.model.eval()
        with torch.no_grad():
            for batch in first_batches(loop.trainer.data_loader):
                _check_loss(_through(loop.model, batch))
        metrics = {name for name, value in loop.model.get_metrics(reset=True).items() if number_of(value) is not None}
    return sum(p.numel() for p in loop.model.parameters()), frozenset(metrics)


def _through(model: torch.nn.Module, batch: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the output of the model for this batch. A lack of the machine is no fault of the model."""
    try:
        return model(**batch)
    except (FiestaError, OSError, MemoryError):
        raise
    except Exception as error:
        raise ModelError(f"the model fails on the first batch: {describe(error)}") from error


def _check_loss(output: Mapping[str, Any]) -> None:
    """Refuse a loss that is not a finite number, with which no training can begin."""
    loss = output.get("loss")
    if loss is not None and not math.isfinite(loss):
        raise ConfigError(
            f"the loss of its first batch is {float(loss):g} before any training, so no run could learn. Look for an "
            "infinite or undefined number in the initial weights, the word vectors, the features or the loss."
        )


def check_trainer(trainer: Config, metrics: FrozenSet[str]) -> None:
    """Refuse what AllenNLP lets pass until the first epoch is over, or for ever.

    Raises:
        ConfigError: on a key that the gradient descent trainer does not have, or a validation metric that the model
            does not report.
    """
    if trainer.get("type", "gradient_descent") == "gradient_descent":
        known = {
            "type",
            "run_sanity_checks",
            *inspect.signature(GradientDescentTrainer.from_partial_objects).parameters,
        }
        unknown = sorted(set(trainer) - known)
        if unknown:
            raise ConfigError(not_keys(unknown, "'trainer'", sorted(known)))
    metrics = metrics | {"loss"}
    wanted = trainer.get("validation_metric", "-loss")
    for name in [wanted] if isinstance(wanted, str) else wanted:
        if name[:1] in "+-" and name[1:] not in metrics:
            raise ConfigError(
                f"'trainer.validation_metric' is '{name}' but the model does not report that. It reports: "
                f"{', '.join(sorted(metrics))}."
            )
