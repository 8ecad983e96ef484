"""Keeps what real selections found, and writes it into the tables of the page:

    python scripts/benchmarks/real_runs.py keep runs/restaurants     # into results/runs/restaurants
    python scripts/benchmarks/real_runs.py write                     # the tables of the page, from all that is kept

`write` fills the tables below `<!-- compared: NAMES -->`: all runs of these selections beside the scores that the
FIESTA paper released, in `FIESTA_SHARED_DATA`. A table stays as it is while one of its selections is not kept. `--name`
keeps a selection under another name.
"""

import csv
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np
from common import EVALUATIONS_PER_SPLIT, RELEASED, make_parser, replace_tables

BENCHMARKS = Path(__file__).resolve().parent
KEPT = BENCHMARKS / "results" / "runs"
PAGE = BENCHMARKS / "reproduce.md"
TABLE_PATTERN = re.compile(r"(<!-- compared: ([^>]+) -->\n).*?(<!-- end -->)", flags=re.S)
COLUMNS = ("candidate", "replicate", "status", "score", "seconds", "split_seed", "random_seed")


def keep(directory: Path, root: Path = KEPT, name: str = "") -> None:
    """Copy the scores of a selection, without its other metrics."""
    target = root / (name or directory.name)
    target.mkdir(parents=True, exist_ok=True)
    with (
        (directory / "evaluations.csv").open(encoding="utf-8", newline="") as file,
        (target / "scores.csv").open("w", encoding="utf-8", newline="") as scores_file,
    ):
        writer = csv.DictWriter(scores_file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(csv.DictReader(file))


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
                *(_decimals(number) for runs in (own, paper) for number in (np.mean(runs), np.std(runs, ddof=1))),
                f"{(np.mean(own) - np.mean(paper)) / error:+.1f}",
                f"{ours.index(name) + 1} / {theirs.index(name) + 1}",
            )
        )
    return rows


def _decimals(value: Optional[float]) -> str:
    return "-" if value is None else f"{value:.3f}"


def update_page(page: str, root: Path = KEPT, released: Path = RELEASED) -> str:
    """The page with the table of kept selections in each place."""

    def rows(names: List[str]) -> Optional[List[Tuple[str, ...]]]:
        if not all((root / name).is_dir() for name in names):
            return None
        return compared_rows(names, json.loads(released.read_text(encoding="utf-8")), root)

    return replace_tables(page, TABLE_PATTERN, lambda match: rows(match[2].split(", ")))


def main(arguments: Optional[Sequence[str]] = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("what", choices=["keep", "write"])
    parser.add_argument("directories", nargs="*", type=Path, help="finished selections, to keep")
    parser.add_argument("--name", default="", help="name to keep a selection under (default: that of its directory)")
    args = parser.parse_args(arguments)
    if args.what == "keep":
        for directory in args.directories:
            keep(directory, name=args.name)
    else:
        PAGE.write_text(update_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
