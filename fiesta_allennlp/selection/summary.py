"""Facts about the runs of a selection, as data; `evaluations.csv` and `selection.json` on the disk."""

import csv
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from scipy.special import stdtrit

from fiesta_allennlp.core.files import atomic_replacement, to_csv_cell
from fiesta_allennlp.core.records import History
from fiesta_allennlp.probability.collapsed import collapsed_runs, robust_sds_below

INTERVAL_LEVEL = 0.95
"""The probability of every interval in a result."""


MIN_NUM_SCORES = 3
"""With fewer scores or pairs, an interval or a rank correlation is meaningless."""


Interval = Tuple[float, float]
"""Lower and upper end."""


def compute_mean_interval(values: np.ndarray) -> Optional[Interval]:
    """Compute mean -+ t(.975; n - 1) s / sqrt(n) of values of shape `(n,)`, its 95% interval; None for fewer than 3."""
    if len(values) < MIN_NUM_SCORES:
        return None
    mean, standard_error = float(np.mean(values)), np.std(values, ddof=1) / np.sqrt(len(values))
    half_width = float(stdtrit(len(values) - 1, (1 + INTERVAL_LEVEL) / 2) * standard_error)
    return mean - half_width, mean + half_width


SplitScores = Tuple[Sequence[int], Sequence[float]]
"""Split seeds and scores of a candidate, equally long."""


def differences_on_shared_splits(first: SplitScores, second: SplitScores) -> np.ndarray:
    """Return the differences of mean scores on the splits that both candidates have, in the first one's order."""
    first_means, second_means = _means_by_split(first), _means_by_split(second)
    return np.array([first_means[seed] - second_means[seed] for seed in first_means if seed in second_means])


def _means_by_split(split_scores: SplitScores) -> Dict[int, float]:
    scores_by_split: Dict[int, List[float]] = {}
    for seed, score in zip(*split_scores, strict=True):
        scores_by_split.setdefault(seed, []).append(score)
    return {seed: float(np.mean(scores)) for seed, scores in scores_by_split.items()}


SEED_COLUMNS = ("split_seed", "random_seed", "numpy_seed", "pytorch_seed")
ORIGIN_COLUMNS = ("file", "host", "gpu", "gpu_names", "job", "python", "versions")
CSV_COLUMNS = (
    *("candidate", "replicate", "status", "score", "metric", "seconds", *SEED_COLUMNS, "started_at"),
    *ORIGIN_COLUMNS,
    "error",
)


def find_collapsed_runs(history: History, *, minimise: bool) -> Tuple[Dict[str, Any], ...]:
    """Return the runs that lie far below (for a minimized metric, above) their candidate's others, by candidate.

    `sds` is the largest distance from the median in robust sds; `collapsed_runs` has the rule.
    """
    signed_history = history.negated if minimise else history
    entries: List[Dict[str, Any]] = []
    for name, runs in collapsed_runs(signed_history).items():
        scores = {run.request.name: -run.score if minimise else run.score for run in runs}
        sds = float(robust_sds_below(signed_history.scores(name)).max())
        entries.append({"candidate": name, "num_runs": history.num_finished(name), "scores": scores, "sds": sds})
    return tuple(entries)


def compare_on_shared_splits(history: History, best: Optional[str], sign: int = 1) -> Optional[Dict[str, Any]]:
    """Compare `best` on shared splits with its rival, the other active candidate of the best mean.

    The result has the rival, whether its mean over all its runs is better, the number of shared splits, and the mean
    difference on these. It is None if they share fewer than two splits, or if `best` is not ahead there.
    """
    means = {name: sign * history.scores(name).mean() for name in history.active if len(history.scores(name))}
    if best not in means or len(means) < 2:
        return None
    rival = max((name for name in means if name != best), key=means.__getitem__)
    split_scores = [(history.split_seeds(name), history.scores(name)) for name in (best, rival)]
    differences = differences_on_shared_splits(*split_scores)
    difference = sign * float(differences.mean()) if len(differences) > 1 else 0.0
    if difference <= 0:
        return None
    better = bool(means[rival] > means[best])
    return {"of": rival, "has_better_mean": better, "num_splits": len(differences), "difference": difference}


def write_json(content: Mapping[str, Any], path: Path) -> None:
    """Write a file in one step, so that a reader never sees half a file. Records become plain data."""
    with atomic_replacement(path) as file:
        file.write_text(json.dumps(content, indent=2, allow_nan=False, default=asdict) + "\n", encoding="utf-8")


def write_csv(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write `evaluations.csv` from the rows of a store, one line for every outcome, in order of finishing."""
    metrics: List[Dict[str, Any]] = [json.loads(row.get("metrics") or "{}") for row in rows]
    names = sorted({name for run_metrics in metrics for name in run_metrics})
    with atomic_replacement(path) as file, file.open("w", encoding="utf-8", newline="") as csv_file:
        writer = csv.writer(csv_file, lineterminator="\n")
        writer.writerow([*CSV_COLUMNS, *(to_csv_cell(f"metric:{name}") for name in names)])
        for row, run_metrics in zip(rows, metrics, strict=True):
            origin = json.loads(row.get("origin") or "{}")
            versions = ", ".join(f"{package} {version}" for package, version in origin.get("versions", {}).items())
            values = {**row, **origin, "versions": versions}
            if origin.get("file"):  # whose seeds are unknown
                values.update(dict.fromkeys(SEED_COLUMNS[1:]))
            writer.writerow(
                [to_csv_cell(value) for value in (*map(values.get, CSV_COLUMNS), *map(run_metrics.get, names))]
            )
