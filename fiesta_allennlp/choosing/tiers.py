"""Tiers: candidates that share a letter are not told apart by what is there."""

from string import ascii_lowercase
from typing import List, Mapping, Optional, Sequence

import numpy as np

from fiesta_allennlp.choosing.beliefs.belief import Posterior
from fiesta_allennlp.choosing.t_tests import holm

MAX_TIERED = 100
"""The most candidates whose pairs are all compared for tiers, which takes a tenth of a second."""


def find_tiers(posterior: Optional[Posterior], names: Sequence[str], confidence: float) -> Mapping[str, str]:
    """Return the tier of each candidate; empty without a posterior, or with more than `MAX_TIERED` candidates."""
    if posterior is None or len(names) > MAX_TIERED:
        return {}
    leads = [posterior.leads_of(index) for index in range(len(names))]
    apart = tell_apart(np.array([each.tails()[0] for each in leads]), 1 - confidence)
    return dict(zip(names, tier_letters(apart, -leads[0].difference[0]), strict=True))


def tell_apart(tails: np.ndarray, level: float) -> np.ndarray:
    """Return which pairs of candidates are told apart, by Holm's method over all pairs (Holm, 1979).

    The p-value of a pair is 2 min(p, 1 - p), with p the probability that the second is better. Shape:
    `(num_candidates, num_candidates)`.

    Args:
        tails: in row i, the tails of the leads of candidate i. Shape of the result.
        level: 1 - confidence.
    """
    pairs = np.triu_indices(len(tails), 1)
    apart = np.zeros(tails.shape, dtype=bool)
    apart[pairs] = np.array(holm(2 * np.minimum(tails[pairs], 1 - tails[pairs]))) <= level
    return apart | apart.T


def tier_letters(apart: np.ndarray, means: np.ndarray) -> List[str]:
    """Return the letters of each candidate: two share one unless they are told apart. The best has an `a`.

    The letters are the largest groups in which no two are told apart: each pair that is splits the groups that contain
    both, and a group within another one goes (Piepho, 2004).

    Args:
        apart: see `tell_apart`.
        means: higher is better. Shape: `(num_candidates,)`.
    """
    order = np.argsort(-means, kind="stable")
    groups = [frozenset(range(len(order)))]
    for pair in np.argwhere(np.triu(apart[np.ix_(order, order)])).tolist():
        split = [group for group in groups if group.issuperset(pair)]
        groups = [group for group in groups if not group.issuperset(pair)]
        for smaller in (group - {place} for group in split for place in pair):
            if not any(smaller <= group for group in groups):
                groups.append(smaller)
    letters = [""] * len(order)
    for number, group in enumerate(sorted(map(sorted, groups))):
        for place in group:
            letters[order[place]] += f"{ascii_lowercase[number % 26]}{number // 26 or ''}"
    return letters
