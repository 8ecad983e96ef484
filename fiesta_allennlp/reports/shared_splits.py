"""Two candidates on the splits that both have seen."""

from typing import Dict, List, Sequence, Tuple

import numpy as np

OnSplits = Tuple[Sequence[int], Sequence[float]]
"""Split seeds and scores of a candidate, equally long."""


def shared_splits(first: OnSplits, second: OnSplits) -> Tuple[Tuple[int, ...], np.ndarray]:
    """The splits that both have, in the order of the first one's scores, and the differences of mean scores on them."""
    mine, theirs = _means_by_split(first), _means_by_split(second)
    seeds = tuple(seed for seed in mine if seed in theirs)
    return seeds, np.array([mine[seed] - theirs[seed] for seed in seeds])


def _means_by_split(scored: OnSplits) -> Dict[int, float]:
    by_split: Dict[int, List[float]] = {}
    for seed, score in zip(*scored, strict=True):
        by_split.setdefault(seed, []).append(score)
    return {seed: float(np.mean(scores)) for seed, scores in by_split.items()}
