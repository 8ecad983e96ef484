"""Checks an AllenNLP config before its first run: its data, word vectors, model and trainer.

Word-vector files are cut down to the words of the pool, so that millions of rows are read once, not once per run."""

import hashlib
import inspect
import os
import tempfile
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import AbstractSet, Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

import torch
from allennlp.common import Params
from allennlp.common.util import prepare_environment
from allennlp.models import Model
from allennlp.modules.token_embedders.embedding import EmbeddingsTextFile
from filelock import FileLock

from fiesta_allennlp.candidates.allennlp.allennlp_run import build_train_model, to_number
from fiesta_allennlp.candidates.allennlp.instances import read_pool
from fiesta_allennlp.candidates.config import Config, evaluation_config, leaves_of, vector_files
from fiesta_allennlp.candidates.pool import Pool, Preparation
from fiesta_allennlp.candidates.splits import OFFICIAL_RATIOS_DIVISION, Division
from fiesta_allennlp.core.errors import ConfigError, DataError, FiestaError, ModelError, describe_with_line
from fiesta_allennlp.core.files import atomic_replacement
from fiesta_allennlp.core.records import Request


def filtered_vectors(uri: str, words: AbstractSet[str], directory: Path) -> Path:
    """Write the rows of `uri` whose word is in `words` to a file in `directory`, unless it exists, and return its path.

    Rows are copied unchanged and in order, so a model gets the same matrix as from the original. This includes the
    random rows of words without a vector, which AllenNLP draws from the mean and the standard deviation of the rows
    that it finds.
    """
    target = directory / f"{Path(uri).name.split('.')[0]}-{_vectors_digest(uri, words)}.txt"
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
        raise DataError(f"{uri}: the file of word vectors is empty.") from None
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{uri} cannot be read as a file of word vectors: {error}") from error
    if not matching_rows:
        raise DataError(f"{uri}: none of its {num_rows} words occurs in the data. Check its format and case.")
    with atomic_replacement(target) as temporary_path:
        temporary_path.write_text("".join(matching_rows), encoding="utf-8", newline="\n")


def coverage_of(rows: Sequence[str], counts: Mapping[str, int]) -> float:
    """Return the share of tokens with a row; 1 if there are no tokens. `counts` is how often each word occurs. A row of
    another width than most does not count, because AllenNLP skips it."""
    width = width_of(rows)
    words = {row.split(" ", 1)[0] for row in rows if row.rstrip().count(" ") == width}
    total = sum(counts.values())
    return sum(number for word, number in counts.items() if word in words) / total if total else 1.0


def width_of(rows: Sequence[str]) -> int:
    """Return the numbers in a row, as in most of them."""
    return Counter(row.rstrip().count(" ") for row in rows).most_common(1)[0][0]


def _vectors_digest(uri: str, words: AbstractSet[str]) -> str:
    """Return a digest of the file (path, size, time of change) and the words."""
    digest = hashlib.sha256(uri.encode("utf-8"))
    if os.path.exists(uri):
        status = os.stat(uri)
        digest.update(f"{status.st_size} {status.st_mtime_ns}".encode())
    digest.update("\n".join(sorted(words)).encode("utf-8"))
    return digest.hexdigest()[:12]


def prepare_candidate(
    config: Config,
    *,
    group_by: Optional[str],
    vectors_directory: Path,
    data: str = "",
    division: Division = OFFICIAL_RATIOS_DIVISION,
) -> Preparation:
    """Read the pool, filter the word vectors, build the model and its trainer, and run one batch through it.
    `data` and `division` are arguments of `read_pool`."""
    pool = read_pool(config, group_by, data=data, division=division)
    vectors, coverage = {}, {}
    leaves = dict(leaves_of(config))
    for path, uri in vector_files(config).items():
        vectors_file = filtered_vectors(uri, pool.words, vectors_directory)
        rows = vectors_file.read_text(encoding="utf-8").splitlines()
        vectors[uri] = str(vectors_file.resolve())
        holder, width = path.rpartition(".")[0], width_of(rows)
        if (dim := leaves.get(f"{holder}.embedding_dim", width)) != width:  # AllenNLP would skip every row
            raise ConfigError(f"'embedding_dim' is {dim}. Set it to {width}, the width of {uri}.")
        counts = pool.counts.get(leaves.get(f"{holder}.vocab_namespace", "tokens"), {})
        coverage[uri] = coverage_of(rows, counts)
    num_parameters, metrics = build_and_try(config, pool, vectors, division)
    shares = tuple(coverage[uri] for uri in sorted(vectors))
    return Preparation(pool, num_parameters, sorted(metrics), tuple(sorted(vectors.items())), shares)


def build_and_try(
    config: Config, pool: Pool, vectors: Mapping[str, str], division: Division
) -> Tuple[int, FrozenSet[str]]:
    """Build the model and its trainer, and run one batch. Return the number of parameters and the
    names of the metrics. Raise a `ModelError` if the batch fails."""
    any_request = Request("", 0, split_seed=0, random_seed=0, numpy_seed=0, pytorch_seed=0)
    run_config = evaluation_config(config, any_request, group_by=pool.group_by, vectors=vectors, division=division)
    run_config["trainer"]["cuda_device"] = -1
    params = Params(deepcopy(run_config))
    prepare_environment(params)
    with tempfile.TemporaryDirectory() as scratch:
        loop = build_train_model(params, Path(scratch), run_config)
        loop.model.eval()
        with torch.no_grad():
            batch = next(iter(loop.trainer.data_loader), None)
            if batch is None:
                raise ConfigError("'data_loader' makes no batches. Set a smaller 'batch_size', or remove 'drop_last'.")
            _check_model(loop.model, batch)
        metrics = _numeric_metrics(loop.model)
        if division.scored == "test":
            _check_metrics_accumulate(loop.model, metrics)
    return sum(p.numel() for p in loop.model.parameters()), frozenset(metrics)


def _numeric_metrics(model: Model) -> Dict[str, float]:
    """Return the metrics that are numbers, as AllenNLP asks for them after each batch of an evaluation."""
    numbers = {name: to_number(value) for name, value in model.get_metrics().items()}
    return {name: number for name, number in numbers.items() if number is not None}


def _check_metrics_accumulate(model: Model, metrics: Mapping[str, float]) -> None:
    """Refuse a model whose metrics start over when they are read: its test scores would be those of no batch at all.
    While all metrics are 0, the default of `reset` tells."""
    reset = inspect.signature(model.get_metrics).parameters.get("reset")
    starts_over = bool(metrics) and reset is not None and reset.default is True
    if starts_over or repr(_numeric_metrics(model)) != repr(metrics):
        code = inspect.unwrap(type(model).get_metrics).__code__
        raise ConfigError(
            f"{type(model).__name__} resets its metrics in every call of get_metrics(), so test scores would cover "
            f"no data. Set the default `reset: bool = False` in {code.co_filename}, line {code.co_firstlineno}; or "
            "use --score validation."
        )


def _check_model(model: torch.nn.Module, batch: Mapping[str, Any]) -> None:
    """Refuse a model that fails on this batch. An error of the machine is not the model's fault."""
    try:
        model(**batch)
    except (FiestaError, OSError, MemoryError):
        raise
    except Exception as error:
        raise ModelError(f"the model fails on the first batch: {describe_with_line(error)}") from error
