"""Keeps what real selections found, and writes it into the tables of the pages:

    python scripts/benchmarks/real_runs.py keep runs/restaurants     # into results/runs/restaurants
    python scripts/benchmarks/real_runs.py write                     # the tables of the pages, from all that is kept

`write` fills the tables below `<!-- selection: NAME -->`, with a row for each candidate, and below `<!-- compared:
NAMES -->`: all runs of these selections beside the scores that the FIESTA paper released, in `FIESTA_SHARED_DATA`.
"""

import csv
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np
from common import EVALUATIONS_PER_SPLIT, RELEASED, make_parser, with_tables

BENCHMARKS = Path(__file__).resolve().parent
KEPT = BENCHMARKS / "results" / "runs"
PAGES = (BENCHMARKS / "restaurants.md", BENCHMARKS / "tagging.md")
BLOCK = re.compile(r"(<!-- (selection|compared): ([^>]+) -->\n).*?(<!-- end -->)", flags=re.S)
COLUMNS = ("candidate", "replicate", "status", "score", "seconds", "split_seed", "random_seed")


def keep(directory: Path, kept: Path = KEPT) -> None:
    """Copy the decision and the scores of a selection, without its other metrics."""
    target = kept / directory.name
    target.mkdir(parents=True, exist_ok=True)
    (target / "selection.json").write_text((directory / "selection.json").read_text(encoding="utf-8"), encoding="utf-8")
    with (
        (directory / "evaluations.csv").open(encoding="utf-8", newline="") as file,
        (target / "scores.csv").open("w", encoding="utf-8", newline="") as made,
    ):
        writer = csv.DictWriter(made, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(csv.DictReader(file))


def scores_of(names: Sequence[str], kept: Path = KEPT) -> Dict[str, List[float]]:
    """The scores of all finished runs of these selections, by candidate in the order of the first run."""
    found: Dict[str, List[float]] = defaultdict(list)
    for name in names:
        with (kept / name / "scores.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["status"] == "finished":
                    found[row["candidate"]].append(float(row["score"]))
    return found


def selection_rows(name: str, kept: Path = KEPT) -> List[Tuple[str, ...]]:
    candidates = json.loads((kept / name / "selection.json").read_text(encoding="utf-8"))["candidates"]
    rows: List[Tuple[str, ...]] = [("candidate", "runs", "mean", "sd", "P(best)")]
    for each in sorted(candidates, key=lambda each: -(each["mean"] or 0)):
        chance = each["prob_best"]
        shown = "-" if chance is None else "< .001" if chance < 0.001 else f"{chance:.3f}".lstrip("0")
        mean, sd = (_decimals(each[key]) for key in ("mean", "sd"))
        rows.append((f"`{each['name']}`", str(each["num_evaluations"]), mean, sd, shown))
    return rows


def compared_rows(names: Sequence[str], released: Dict[str, List[float]], kept: Path = KEPT) -> List[Tuple[str, ...]]:
    """The mean of each candidate here and in the paper, if it is in the paper, and their difference in standard errors
    of both."""
    scores = {name: values for name, values in scores_of(names, kept).items() if name in released}
    ours, theirs = (sorted(scores, key=lambda name: -np.mean(of[name])) for of in (scores, released))
    headings = ("candidate", "runs", "mean", "sd", "paper: mean", "sd", "difference, se", "rank here / paper")
    rows: List[Tuple[str, ...]] = [headings]
    for name in ours:
        here, there = scores[name], released[name]
        blocks = np.mean(
            np.reshape(there, (-1, EVALUATIONS_PER_SPLIT)), axis=1
        )  # five runs share a split, and so part of their luck
        error = np.hypot(np.std(here, ddof=1) / len(here) ** 0.5, np.std(blocks, ddof=1) / len(blocks) ** 0.5)
        rows.append(
            (
                f"`{name}`",
                str(len(here)),
                *(_decimals(each) for of in (here, there) for each in (np.mean(of), np.std(of, ddof=1))),
                f"{(np.mean(here) - np.mean(there)) / error:+.1f}",
                f"{ours.index(name) + 1} / {theirs.index(name) + 1}",
            )
        )
    return rows


def _decimals(value: Optional[float]) -> str:
    return "-" if value is None else f"{value:.3f}".lstrip("0")


def written(page: str, kept: Path = KEPT, released: Path = RELEASED) -> str:
    """The page with each table in its place."""

    def rows(kind: str, about: str) -> List[Tuple[str, ...]]:
        if kind == "selection":
            return selection_rows(about, kept)
        return compared_rows(about.split(", "), json.loads(released.read_text(encoding="utf-8")), kept)

    return with_tables(page, BLOCK, lambda found: rows(found[2], found[3]))


def main(arguments: Optional[Sequence[str]] = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("what", choices=["keep", "write"])
    parser.add_argument("directories", nargs="*", type=Path, help="finished selections, to keep")
    args = parser.parse_args(arguments)
    if args.what == "keep":
        for directory in args.directories:
            keep(directory)
    else:
        for page in PAGES:
            page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
