"""A candidate's model, built once and tried with one batch before the first run."""

import inspect
import math
import tempfile
import traceback
from pathlib import Path
from typing import Any, FrozenSet, Mapping, Tuple

import torch
from allennlp.common import Params
from allennlp.common.util import prepare_environment
from allennlp.training import GradientDescentTrainer

from fiesta_allennlp.errors import ConfigError, FiestaError, ModelError, describe, not_keys
from fiesta_allennlp.records import Request
from fiesta_allennlp.splits import Division
from fiesta_allennlp.trainings.allennlp.evaluator import built, number_of
from fiesta_allennlp.trainings.allennlp.multitask import first_batches
from fiesta_allennlp.trainings.config import Config, evaluation_config
from fiesta_allennlp.trainings.pool import Pool


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
                check_loss(_through(loop.model, batch))
        metrics = {name for name, value in loop.model.get_metrics(reset=True).items() if number_of(value) is not None}
    return sum(p.numel() for p in loop.model.parameters()), frozenset(metrics)


def _through(model: torch.nn.Module, batch: Mapping[str, Any]) -> Mapping[str, Any]:
    """The output of the model for this batch.

    Raises:
        ModelError: of whatever the model raises, but for a lack of the machine and errors of this package.
    """
    try:
        return model(**batch)
    except (FiestaError, OSError, MemoryError):
        raise
    except Exception as error:
        raise ModelError(f"the first batch does not go through {_part(model, error)}: {describe(error)}") from error


def _part(model: torch.nn.Module, error: BaseException) -> str:
    """The innermost part of the model that was at work, as in `_encoder.linear`."""
    names = {part: name for name, part in model.named_modules() if name}
    found = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        owner = frame.f_locals.get("self")
        found = names.get(owner, found) if isinstance(owner, torch.nn.Module) else found
    return f"'{found}' of the model" if found else "the model"


def check_loss(output: Mapping[str, Any]) -> None:
    """Refuse a loss that no training can begin with.

    Raises:
        ConfigError: where it is not a finite number.
    """
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
