"""Checks an AllenNLP config before its first run: its data, word vectors, model and trainer."""

from pathlib import Path
from typing import Optional

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.splits import AT_OFFICIAL_RATIOS, Division
from fiesta_allennlp.trainings.allennlp.first_batch import build_once, check_trainer
from fiesta_allennlp.trainings.allennlp.pool_reading import read_pool
from fiesta_allennlp.trainings.allennlp.vectors import coverage_of, filtered_vectors, rows_of, width_of
from fiesta_allennlp.trainings.config import Config, vector_references
from fiesta_allennlp.trainings.pool import Preparation


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
