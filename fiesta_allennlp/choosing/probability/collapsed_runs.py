"""Which runs of a candidate lie so far below its others that they have probably failed: median and MAD with a floor."""

from collections import Counter
from dataclasses import dataclass
from itertools import compress
from typing import Dict, List, Mapping, Tuple

import numpy as np

from fiesta_allennlp.core.records import Evaluation, History

LIMIT_SDS = 6.0
"""Robust sds below the median from which on a run of many has collapsed."""

SMALL_SAMPLE_FACTOR = 16.0
"""How much farther a run of few must lie: the limit is `LIMIT_SDS` (1 + `SMALL_SAMPLE_FACTOR` / (n - 2)^2)."""

MIN_RELATIVE_SD = 0.005
"""The least robust sd, as a share of the median. Without it, one wrong answer of a test set collapses a candidate whose
other runs are all equal."""


MAX_SDS = 1e6
"""The largest distance in robust sds, where the others are equal and near 0. It bounds the ratio, which cannot
overflow."""


def flag_collapsed(scores: np.ndarray) -> np.ndarray:
    """Return which runs of one candidate lie far below its others. Shape: that of `scores`, `(num_runs,)`; bool.

    Higher scores are better. With m the median and n the number of runs, run
    k has collapsed if::

        m - x_k > 6 (1 + 16 / (n - 2)^2) max(1.4826 median|x - m|, 0.005 |m|)

    A mean and an sd would follow the outlier, and hide it among few runs: no run of n can lie more than
    (n - 1) / sqrt(n) sds below their mean. The median and the MAD follow the others. The limit is 102 robust sds for 3
    runs, 17 for 5, 7 for 12 and 6 for 50, because the MAD of few runs is small by chance. In less than 1% of normal
    samples of 3 to 50 runs, a run collapses. Skewed scores have more. Equal scores and fewer than 3 runs have none.

    `find_collapsed_runs` applies it to a selection.
    """
    num_runs = len(scores)
    if num_runs < 3:
        return np.zeros(num_runs, dtype=bool)
    return np.asarray(robust_sds_below(scores) > LIMIT_SDS * (1 + SMALL_SAMPLE_FACTOR / (num_runs - 2) ** 2))


def robust_sds_below(scores: np.ndarray) -> np.ndarray:
    """Return how many robust sds each run lies below the median, at most `MAX_SDS`. Shape: that of `scores`, at least
    one."""
    median = np.median(scores)
    deviations = median - np.asarray(scores, dtype=float)
    distances = np.abs(deviations)
    floors = MIN_RELATIVE_SD * abs(float(median)), float(distances.max()) / MAX_SDS
    sd = max(1.4826 * float(np.median(distances)), *floors)
    return np.asarray(deviations / sd) if sd else np.zeros(len(deviations))


@dataclass(frozen=True)
class CollapsedRuns:
    """The runs of a candidate that lie far below (for a minimized metric, above) its others: their `scores` by name, as
    the metric reports them, and the largest distance from the median in robust sds. `num_runs` counts all its runs."""

    candidate: str
    num_runs: int
    scores: Mapping[str, float]
    sds: float


def find_collapsed_runs(history: History) -> Tuple[CollapsedRuns, ...]:
    """Return the collapsed runs of every candidate that has one, by replicate.

    On a split on which more than half of the runs of at least two candidates lie far below, the split is hard and no
    run has collapsed. Answers that are right or wrong, with scores of 1 and 0, do not collapse.
    """
    if {run.score for run in history.evaluations} == {0.0, 1.0}:
        return ()
    collapsed: Dict[str, List[Evaluation]] = {}
    for name in history.candidates:
        runs = sorted(history.evaluations_of(name), key=lambda run: run.request.replicate)
        collapsed[name] = list(compress(runs, flag_collapsed(history.scores(name))))
    num_collapsed = Counter(run.request.split_seed for runs in collapsed.values() for run in runs)
    num_runs = Counter(run.request.split_seed for run in history.evaluations)
    hard_splits = {split for split, number in num_collapsed.items() if number > 1 and 2 * number > num_runs[split]}
    found: List[CollapsedRuns] = []
    for name, runs in collapsed.items():
        scores = {run.request.name: run.score for run in runs if run.request.split_seed not in hard_splits}
        if scores:
            sds = float(robust_sds_below(history.scores(name)).max())
            found.append(CollapsedRuns(name, num_runs=history.num_finished(name), scores=scores, sds=sds))
    return tuple(found)
