"""Counts of right and wrong answers, which some runs report with their score."""

from dataclasses import dataclass
from typing import Mapping, Sequence, Tuple

import numpy as np

COUNT_PREFIX = "count:"
"""The prefix of metrics that count right and wrong answers, for beliefs that use them."""


@dataclass(frozen=True, eq=False)
class Counts:
    """The answers of each kind that the runs of a candidate counted.

    `kinds` are the names of the metrics without `count:`, sorted. `values` has a row for each finished run by
    replicate, with 0 for a kind that a run does not report; shape `(num_finished, num_kinds)`. It is read only.
    `num_without` runs reported no counts at all.
    """

    kinds: Tuple[str, ...]
    values: np.ndarray
    num_without: int

    def __post_init__(self) -> None:
        self.values.flags.writeable = False

    def for_kinds(self, kinds: Sequence[str]) -> np.ndarray:
        """Return `values` with these columns, 0 for unknown kinds. Shape: `(num_finished, len(kinds))`."""
        columns = dict(zip(self.kinds, self.values.T, strict=True))
        absent = np.zeros(len(self.values))
        return np.array([columns.get(kind, absent) for kind in kinds]).T.reshape(len(self.values), len(kinds))


def counts_in(metrics_by_run: Sequence[Mapping[str, float]]) -> Counts:
    keys = sorted({key for metrics in metrics_by_run for key in metrics if key.startswith(COUNT_PREFIX)})
    rows = [[metrics.get(key, 0) for key in keys] for metrics in metrics_by_run]
    values = np.array(rows, dtype=float).reshape(len(metrics_by_run), len(keys))
    num_without = sum(metrics.keys().isdisjoint(keys) for metrics in metrics_by_run)
    return Counts(tuple(key[len(COUNT_PREFIX) :] for key in keys), values, num_without=num_without)
