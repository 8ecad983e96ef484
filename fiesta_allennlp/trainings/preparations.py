"""The result of checking a candidate once, also as plain data for the store."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Dict, FrozenSet, Mapping, Optional, Tuple

from fiesta_allennlp.trainings.pool import Pool

Vectors = Tuple[Tuple[str, str], ...]
"""Pairs of a word-vector file as the config names it and the filtered file to read in its place."""


@dataclass(frozen=True)
class Preparation:
    """The result of building a candidate once: the pool, the parameters and the names of its metrics. Of a program only
    the pool is known.

    `coverage` is, for each file of word vectors, the share of the tokens in the data that have a vector.
    """

    pool: Pool
    num_parameters: Optional[int] = None
    metrics: Optional[FrozenSet[str]] = None
    vectors: Vectors = ()
    coverage: Tuple[float, ...] = ()


def facts_of(preparation: Preparation) -> Dict[str, Any]:
    """A preparation as plain data, for the store. The words of the pool and notes on it are left out."""
    facts = asdict(preparation)
    for name in ("words", "counts", "untrained"):
        del facts["pool"][name]
    return {**facts, "metrics": None if preparation.metrics is None else sorted(preparation.metrics)}


def preparation_of(facts: Mapping[str, Any]) -> Preparation:
    """Back from `facts_of`, without the words."""
    return Preparation(
        pool=Pool(**{**facts["pool"], "pairing": tuple(facts["pool"].get("pairing", ()))}),
        num_parameters=facts["num_parameters"],
        metrics=None if facts["metrics"] is None else frozenset(facts["metrics"]),
        vectors=tuple((original, filtered) for original, filtered in facts["vectors"]),
        coverage=tuple(facts.get("coverage", ())),
    )


def vectors_are_there(preparation: Preparation) -> bool:
    """False where the run directory was moved or cleaned: the vectors are then filtered again."""
    return all(Path(filtered).is_file() for _, filtered in preparation.vectors)
