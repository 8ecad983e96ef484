"""Seeds that are looked up by key and never drawn in turn, so that nothing depends on the order of work.

Every number comes from `SeedSequence(seed, spawn_key=(stream, candidate, replicate))`. A candidate's key is a hash of
its name, so its seeds do not depend on the other candidates.
"""

import hashlib
import secrets
from typing import Optional

import numpy as np

from fiesta_allennlp.core.records import Request

SPLIT_STREAM = 0
TRAINING_STREAM = 1
STRATEGY_STREAM = 2
REPLAY_SPLITS_STREAM = 3
REPLAY_SCORES_STREAM = 4
REPLAY_STRATEGY_STREAM = 5
DOCUMENTS_STREAM = 6

SEED_BITS = 31
"""AllenNLP hands seeds to `numpy.random.seed` and to `torch.manual_seed`; 31 bits suit both, and JSON."""


def fresh_seed() -> int:
    """Return 128 bits from the operating system, for a selection without a given seed."""
    return secrets.randbits(128)


def candidate_key(name: Optional[str]) -> int:
    """Return a 32-bit key that depends only on the name; 0 for all candidates together."""
    return 0 if name is None else int.from_bytes(hashlib.sha256(name.encode("utf-8")).digest()[:4], "little")


def _seed_sequence(seed: int, stream: int, candidate: Optional[str], number: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed, spawn_key=(stream, candidate_key(candidate), number))


def _draw_seeds(sequence: np.random.SeedSequence, count: int) -> "list[int]":
    return [int(word) >> (32 - SEED_BITS) for word in sequence.generate_state(count, np.uint32)]


def split_seed(seed: int, replicate: int, candidate: Optional[str] = None) -> int:
    """Return the seed of split `replicate`, of all candidates or of `candidate` alone."""
    return _draw_seeds(_seed_sequence(seed, SPLIT_STREAM, candidate, replicate), 1)[0]


def make_request(seed: int, candidate: str, replicate: int, *, shared_splits: bool) -> Request:
    """Return the request for one run with all of its seeds. With `shared_splits`, replicate k of every candidate is
    trained on split k."""
    sequence = _seed_sequence(seed, TRAINING_STREAM, candidate, replicate)
    random_seed, numpy_seed, pytorch_seed = _draw_seeds(sequence, 3)
    return Request(
        candidate=candidate,
        replicate=replicate,
        split_seed=split_seed(seed, replicate, None if shared_splits else candidate),
        random_seed=random_seed,
        numpy_seed=numpy_seed,
        pytorch_seed=pytorch_seed,
    )


def document_order(seed: int, num_documents: int, candidate: Optional[str] = None) -> np.ndarray:
    """Return the random order of the documents, for all candidates or for `candidate` alone. Shape:
    `(num_documents,)`."""
    return np.random.default_rng(_seed_sequence(seed, DOCUMENTS_STREAM, candidate, 0)).permutation(num_documents)


def strategy_rng(seed: int, num_reserved: int) -> np.random.Generator:
    """Return the generator for the strategy's next choice. It is keyed by how many runs were ever reserved, so a
    resumed selection makes the same draw."""
    return np.random.default_rng(_seed_sequence(seed, STRATEGY_STREAM, None, num_reserved))


def replay_rng(seed: int, stream: int, repetition: int, candidate: Optional[str] = None) -> np.random.Generator:
    """Return a generator for one repetition of a replay, or `candidate`'s own. Replays with equal seeds meet the same
    scores whatever their strategies, so they can be compared in pairs."""
    return np.random.default_rng(_seed_sequence(seed, stream, candidate, repetition))
