"""Writes what real selections found, in `results/runs`, into the tables of the page:

    python scripts/benchmarks/real_runs.py

It fills the tables below `<!-- compared: NAMES -->`: all runs of these selections beside the scores that the FIESTA
paper released, in `FIESTA_SHARED_DATA`.
"""

import csv
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Dict, List, Sequence, Tuple

import numpy as np
from common import BENCHMARKS, EVALUATIONS_PER_SPLIT, RELEASED, replace_tables, write_tables

KEPT = BENCHMARKS / "results" / "runs"
PAGE = BENCHMARKS / "reproduce.md"
TABLE_PATTERN = re.compile(r"(<!-- compared: ([^>]+) -->\n).*?(<!-- end -->)", flags=re.S)


def scores_of(names: Sequence[str], root: Path = KEPT) -> Dict[str, List[float]]:
    """The scores of all finished runs of these selections, by candidate in the order of the first run."""
    scores_by_name: Dict[str, List[float]] = defaultdict(list)
    for name in names:
        with (root / name / "scores.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["status"] == "finished":
                    scores_by_name[row["candidate"]].append(float(row["score"]))
    return scores_by_name


def compared_rows(names: Sequence[str], released: Dict[str, List[float]], root: Path = KEPT) -> List[Tuple[str, ...]]:
    """The mean of each candidate here and in the paper, if it is in the paper, and their difference in standard errors
    of both."""
    scores = {name: values for name, values in scores_of(names, root).items() if name in released}
    ours, theirs = (sorted(scores, key=lambda name: -np.mean(table[name])) for table in (scores, released))
    headings = ("candidate", "runs", "mean", "sd", "paper: mean", "sd", "difference, se", "rank here / paper")
    rows: List[Tuple[str, ...]] = [headings]
    for name in ours:
        own, paper = scores[name], released[name]
        # Five runs share a split, and so part of their luck.
        blocks = np.mean(np.reshape(paper, (-1, EVALUATIONS_PER_SPLIT)), axis=1)
        error = np.hypot(np.std(own, ddof=1) / len(own) ** 0.5, np.std(blocks, ddof=1) / len(blocks) ** 0.5)
        rows.append(
            (
                f"`{name}`",
                str(len(own)),
                *(f"{number:.3f}" for runs in (own, paper) for number in (np.mean(runs), np.std(runs, ddof=1))),
                f"{(np.mean(own) - np.mean(paper)) / error:+.1f}",
                f"{ours.index(name) + 1} / {theirs.index(name) + 1}",
            )
        )
    return rows


def update_page(page: str, root: Path = KEPT, released: Path = RELEASED) -> str:
    """The page with the table of kept selections in each place."""
    paper = json.loads(released.read_text(encoding="utf-8"))
    return replace_tables(page, TABLE_PATTERN, lambda match: compared_rows(match[2].split(", "), paper, root))


if __name__ == "__main__":
    write_tables([PAGE], update_page)
