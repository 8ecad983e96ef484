"""Tiers: candidates that share a letter are not told apart by what is there."""

from string import ascii_lowercase
from typing import FrozenSet, Iterator, List, Sequence

import numpy as np


def tell_apart(tails: np.ndarray, level: float) -> np.ndarray:
    """Return which pairs of candidates are told apart, by Holm's method over all pairs (Holm, 1979).

    The p-value of a pair is 2 min(p, 1 - p), with p the probability that the second is better. The i-th smallest of m
    is compared with level / (m - i + 1), up to the first that is larger. Shape: `(num_candidates, num_candidates)`.

    Args:
        tails: in row i, the tails of the leads of candidate i. Shape of the result.
        level: 1 - confidence.
    """
    pairs = np.triu_indices(len(tails), 1)
    p_values = 2 * np.minimum(tails[pairs], 1 - tails[pairs])
    order = np.argsort(p_values, kind="stable")
    is_small = p_values[order] <= level / (len(order) - np.arange(len(order)))
    rejected = order[: len(order) if is_small.all() else int(is_small.argmin())]
    apart = np.zeros(tails.shape, dtype=bool)
    apart[pairs[0][rejected], pairs[1][rejected]] = True
    return apart | apart.T


def tier_letters(apart: np.ndarray, means: np.ndarray) -> List[str]:
    """Return the letters of each candidate: two share one unless they are told apart. The best has an `a`.

    The letters are the largest groups in which no two are told apart (Piepho, 2004).

    Args:
        apart: see `tell_apart`.
        means: higher is better. Shape: `(num_candidates,)`.
    """
    ranks = np.argsort(np.argsort(-means, kind="stable"), kind="stable")
    together = [frozenset(np.flatnonzero(~row).tolist()) - {index} for index, row in enumerate(apart)]
    everybody = frozenset(range(len(means)))
    groups = sorted(_largest_groups(together, frozenset(), everybody), key=lambda group: sorted(ranks[list(group)]))
    names = [f"{ascii_lowercase[number % 26]}{number // 26 or ''}" for number in range(len(groups))]
    pairs = list(zip(names, groups, strict=True))
    return ["".join(name for name, group in pairs if index in group) for index in range(len(means))]


def _largest_groups(
    together: Sequence[FrozenSet[int]],
    chosen: FrozenSet[int],
    open_ones: FrozenSet[int],
    seen: FrozenSet[int] = frozenset(),
) -> Iterator[FrozenSet[int]]:
    """Yield the largest groups that contain those chosen, others that are open, and none that is seen (Bron and
    Kerbosch, 1973)."""
    if not open_ones and not seen:
        yield chosen
        return
    pivot = max(open_ones | seen, key=lambda index: len(together[index] & open_ones))
    for index in sorted(open_ones - together[pivot]):
        own = together[index]
        yield from _largest_groups(together, chosen | {index}, open_ones & own, seen & own)
        open_ones, seen = open_ones - {index}, seen | {index}
