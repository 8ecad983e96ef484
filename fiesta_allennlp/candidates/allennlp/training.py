"""Prepares an AllenNLP config before its first run - its data, word vectors, model and trainer - and trains it.

Word-vector files are cut down to the words of the pool, so that millions of rows are read once, not once per run.

Importing this module also patches AllenNLP 2.10.1 in two places for newer versions of torch and transformers, which
Python 3.11 and later need. With the versions that AllenNLP pins, nothing changes.
"""

import gc
import hashlib
import inspect
import json
import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import AbstractSet, Any, Dict, FrozenSet, List, Mapping, Optional, Tuple

import torch
from allennlp.commands.train import TrainModel
from allennlp.common import Params, cached_transformers
from allennlp.common.meta import META_NAME, Meta
from allennlp.common.util import prepare_environment
from allennlp.data.vocabulary import DEFAULT_OOV_TOKEN, DEFAULT_PADDING_TOKEN
from allennlp.models.archival import CONFIG_NAME, archive_model
from allennlp.modules.token_embedders.embedding import EmbeddingsTextFile
from allennlp.training import GradientDescentTrainer
from allennlp.training.learning_rate_schedulers import LearningRateScheduler
from allennlp.training.learning_rate_schedulers.pytorch_lr_schedulers import ReduceOnPlateauLearningRateScheduler
from filelock import FileLock

from fiesta_allennlp.candidates.allennlp.instances import read_pool
from fiesta_allennlp.candidates.candidate import is_number, to_plain_metrics
from fiesta_allennlp.candidates.config import Config, evaluation_config, leaves_of, vector_files
from fiesta_allennlp.candidates.splits import Division, Pool, Preparation
from fiesta_allennlp.core import errors
from fiesta_allennlp.core.files import atomic_replacement
from fiesta_allennlp.core.records import Request


def train(config: Config, directory: Path, *, keep_archive: bool = False) -> Dict[str, Any]:
    """Train as `allennlp train` does, and return all metrics. Leave the trained model in an archive, or not at all."""
    loop = build_train_model(config, directory)
    original_get_metrics = loop.model.get_metrics
    # AllenNLP can write no other numbers to `metrics.json`.
    loop.model.get_metrics = lambda *args, **kwargs: to_plain_metrics(original_get_metrics(*args, **kwargs))
    gc.freeze()  # the data stay until the end: garbage collections that search them take a tenth of a small training
    metrics = loop.run()
    loop.finish(metrics)
    if keep_archive:
        archive_model(str(directory), include_in_archive=config.get("include_in_archive"))
    for path in directory.glob("*.th"):
        path.unlink()
    shutil.rmtree(directory / "vocabulary", ignore_errors=True)
    return metrics


def build_train_model(config: Config, directory: Path) -> TrainModel:
    """Set the seeds, and build everything that the config describes, to train in this process. The config and the
    versions are in the directory first, as in `allennlp train`, because some callbacks read them when they are built.
    """
    params = Params(json.loads(json.dumps(config)))
    params.to_file(str(directory / CONFIG_NAME))
    Meta.new().to_file(directory / META_NAME)
    prepare_environment(params)
    for key in ("evaluation", "include_in_archive", "distributed"):  # which AllenNLP reads before it builds the rest
        params.pop(key, None)
    return TrainModel.from_params(params=params, serialization_dir=str(directory), local_rank=0)


# Before the first run.


def filtered_vectors(uri: str, words: AbstractSet[str], directory: Path) -> Path:
    """Write the rows of `uri` whose word is in `words` to a file in `directory`, unless it exists, and return its path.

    Rows are copied unchanged and in order, so a model gets the same matrix as from the original. This includes the
    random rows of words without a vector, which AllenNLP draws from the mean and the standard deviation of the rows
    that it finds.
    """
    digest = hashlib.sha256(uri.encode("utf-8"))
    if os.path.exists(uri):
        status = os.stat(uri)
        digest.update(f"{status.st_size} {status.st_mtime_ns}".encode())
    digest.update("\n".join(sorted(words)).encode("utf-8"))
    target = directory / f"{Path(uri).name.split('.')[0]}-{digest.hexdigest()[:12]}.txt"
    directory.mkdir(parents=True, exist_ok=True)
    with FileLock(str(target) + ".lock"):
        if not target.exists():
            _copy_rows(uri, words, target)
    return target


def _copy_rows(uri: str, words: AbstractSet[str], target: Path) -> None:
    num_rows = 0
    matching_rows: List[str] = []
    try:
        with EmbeddingsTextFile(uri) as rows:
            for row in rows:
                num_rows += 1
                if row.split(" ", 1)[0] in words:
                    matching_rows.append(row if row.endswith("\n") else row + "\n")
    except StopIteration:
        raise errors.DataError(f"{uri}: the file of word vectors is empty.") from None
    except (OSError, ValueError, EOFError) as error:
        raise errors.DataError(f"{uri} cannot be read as a file of word vectors: {error}") from error
    if not matching_rows:
        raise errors.DataError(f"{uri}: none of its {num_rows} words occurs in the data. Check its format and case.")
    with atomic_replacement(target) as temporary_path:
        temporary_path.write_text("".join(matching_rows), encoding="utf-8", newline="\n")


def prepare_candidate(config: Config, *, group_by: Optional[str], division: Division, vectors: Path) -> Preparation:
    """Read the pool, filter the word vectors into the directory `vectors`, build the model and its trainer, and run one
    batch through it."""
    pool, counts = read_pool(config, group_by, division=division)
    words = _special_words(config).union(*counts.values())
    filtered_by_uri, leaves = {}, dict(leaves_of(config))
    for path, uri in vector_files(config).items():
        vectors_file = filtered_vectors(uri, words, vectors)
        rows = vectors_file.read_text(encoding="utf-8").splitlines()
        filtered_by_uri[uri] = str(vectors_file.resolve())
        ((width, _),) = Counter(row.rstrip().count(" ") for row in rows).most_common(1)  # as in most rows
        holder = path.rpartition(".")[0]
        if (dim := leaves.get(f"{holder}.embedding_dim", width)) != width:  # AllenNLP would skip every row
            raise errors.ConfigError(f"'embedding_dim' is {dim}. Set it to {width}, the width of {uri}.")
    num_parameters, metrics = build_and_try(config, pool, filtered_by_uri, division)
    return Preparation(pool, num_parameters, sorted(metrics), tuple(sorted(filtered_by_uri.items())))


def _special_words(config: Config) -> FrozenSet[str]:
    """Return the words of the vocabulary that are not in the data: added words, padding and the unknown word."""
    vocabulary = config.get("vocabulary") or {}
    special = {vocabulary.get("padding_token", DEFAULT_PADDING_TOKEN), vocabulary.get("oov_token", DEFAULT_OOV_TOKEN)}
    return frozenset(special).union(*(vocabulary.get("tokens_to_add") or {}).values())


def build_and_try(
    config: Config, pool: Pool, vectors: Mapping[str, str], division: Division
) -> Tuple[int, FrozenSet[str]]:
    """Build the model and its trainer, and run one batch. Return the number of parameters and the
    names of the metrics. Raise a `ModelError` if the batch fails."""
    if config["trainer"].get("type", "gradient_descent") == "gradient_descent":  # which ignores unknown keys
        parameters = inspect.signature(GradientDescentTrainer.from_partial_objects).parameters
        errors.check_known_keys(config["trainer"], "'trainer'", ["type", "run_sanity_checks", *parameters])
    any_request = Request("", 0, split_seed=0, random_seed=0, numpy_seed=0, pytorch_seed=0)
    run_config = evaluation_config(config, any_request, group_by=pool.group_by, vectors=vectors, division=division)
    run_config["trainer"]["cuda_device"] = -1
    with tempfile.TemporaryDirectory() as scratch:
        loop = build_train_model(run_config, Path(scratch))
        loop.model.eval()
        with torch.no_grad():
            batch = next(iter(loop.trainer.data_loader), None)
            if batch is None:
                raise errors.ConfigError(
                    "'data_loader' makes no batches. Set a smaller 'batch_size', or remove 'drop_last'."
                )
            try:
                loop.model(**batch)
            except (errors.FiestaError, OSError, MemoryError):  # an error of the machine is not the model's fault
                raise
            except Exception as error:
                reason = errors.describe_with_line(error)
                raise errors.ModelError(f"the model fails on the first batch: {reason}") from error
        metrics = to_plain_metrics(loop.model.get_metrics())
    num_parameters = sum(parameter.numel() for parameter in loop.model.parameters())
    return num_parameters, frozenset(name for name, value in metrics.items() if is_number(value))


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
