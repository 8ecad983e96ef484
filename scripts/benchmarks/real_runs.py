"""Writes what real selections found, in `results/runs`, into the tables of the page:

    python scripts/benchmarks/real_runs.py

It fills the tables below `<!-- compared: NAMES -->`: all runs of these selections beside the scores that the FIESTA
paper released, in `FIESTA_SHARED_DATA`.
"""

import csv
from pathlib import Path
from typing import Dict, List, Mapping, Sequence, Tuple

import numpy as np
from common import EVALUATIONS_PER_SPLIT, REPRODUCTIONS, RESULTS, PageTables, group_by, released_table

KEPT = RESULTS / "runs"
HEADINGS = ("candidate", "runs", "mean", "sd", "paper: mean", "sd", "difference, se", "rank here / paper")


def scores_of(names: Sequence[str], root: Path = KEPT) -> Dict[str, List[float]]:
    """The scores of all finished runs of these selections, by candidate in the order of the first run."""
    rows: List[Dict[str, str]] = []
    for name in names:
        with (root / name / "scores.csv").open(encoding="utf-8", newline="") as file:
            rows += (row for row in csv.DictReader(file) if row["status"] == "finished")
    by_candidate = group_by(rows, lambda row: row["candidate"])
    return {name: [float(row["score"]) for row in own] for name, own in by_candidate.items()}


def compared_rows(
    names: Sequence[str], released: Mapping[str, Sequence[float]], root: Path = KEPT
) -> List[Tuple[str, ...]]:
    """The mean of each candidate here and in the paper, if it is in the paper, and their difference in standard errors
    of both."""
    scores = {name: values for name, values in scores_of(names, root).items() if name in released}
    ours, theirs = (sorted(scores, key=lambda name: -np.mean(table[name])) for table in (scores, released))
    rows: List[Tuple[str, ...]] = [HEADINGS]
    for name in ours:
        own, paper = scores[name], released[name]
        # Five runs share a split, and so part of their luck.
        blocks = np.mean(np.reshape(paper, (-1, EVALUATIONS_PER_SPLIT)), axis=1)
        error = np.hypot(np.std(own, ddof=1) / len(own) ** 0.5, np.std(blocks, ddof=1) / len(blocks) ** 0.5)
        moments = (f"{number:.3f}" for runs in (own, paper) for number in (np.mean(runs), np.std(runs, ddof=1)))
        difference = f"{(np.mean(own) - np.mean(paper)) / error:+.1f}"
        ranks = f"{ours.index(name) + 1} / {theirs.index(name) + 1}"
        rows.append((f"`{name}`", str(len(own)), *moments, difference, ranks))
    return rows


TABLES = PageTables(
    "compared: (?P<names>[^>]+)",
    lambda match: compared_rows(match["names"].split(", "), released_table().scores),
    [REPRODUCTIONS],
)

if __name__ == "__main__":
    TABLES.write()
