"""What the benchmarks have in common: arguments, tables in Markdown, the paper's released scores, invented scores."""

import argparse
import os
import re
from pathlib import Path
from typing import Callable, Iterable, List, Optional, Sequence

import numpy as np

from fiesta_allennlp.core.records import Evaluation
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.tables.simulator import Distribution

SHARED_DATA = Path(os.environ.get("FIESTA_SHARED_DATA", "../shared/data"))
RELEASED = SHARED_DATA / "scores" / "fiesta_tdsa_test_f1.json"
"""Scores that were released with the FIESTA paper: 500 of each of its 12 candidates, on 100 splits."""

EVALUATIONS_PER_SPLIT = 5
MODELS_8 = ("tdlstm", "atae", "ian", "tdlstm_50", "lstm", "atae_50", "ian_50", "lstm_50")
MODELS_12 = (*MODELS_8, "tdlstm_200", "atae_200", "ian_200", "lstm_200")


def make_parser(
    description: Optional[str], *, repetitions: Optional[int] = None, only: Optional[str] = None
) -> argparse.ArgumentParser:
    """A parser with the options of these defaults; `only` says what `--only` chooses by a regular expression."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    if repetitions is not None:
        parser.add_argument("--repetitions", type=int, default=repetitions)
    if only is not None:
        parser.add_argument("--only", default="", metavar="PATTERN", help=f"{only} matches this regular expression")
    return parser


def show(text: str) -> None:
    """Print at once, also into a file."""
    print(text, flush=True)


def print_table(
    headings: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "", write: Callable[[str], None] = show
) -> None:
    """A Markdown table, below its title where it has one. Every row is printed as soon as it is there."""
    heading = f"\n### {title}\n\n" if title else ""
    write(f"{heading}| {' | '.join(headings)} |\n|{'---|' * len(headings)}")
    for row in rows:
        write(f"| {' | '.join(map(str, row))} |")


def replace_tables(
    page: str, block: "re.Pattern[str]", rows: Callable[["re.Match[str]"], Sequence[Sequence[str]]]
) -> str:
    """The page with a new table in each block, whose first group is kept, and whose last group ends it. The first row
    has the headings."""

    def table(match: "re.Match[str]") -> str:
        headings, *other_rows = rows(match)
        lines = (f"| {' | '.join(row)} |\n" for row in (headings, ("---",) * len(headings), *other_rows))
        return match[1] + "".join(lines) + match[block.groups]

    return block.sub(table, page)


def mean_and_error(values: Distribution, number: int) -> str:
    """The mean of so many values and its standard error."""
    return f"{values.mean:.0f} ± {values.sd / np.sqrt(number - 1):.0f}"


def share_text(value: float, interval: Sequence[float]) -> str:
    low, high = interval
    return f"{value:.3f} ({low:.3f}-{high:.3f})"


def synthetic_evaluations(num_candidates: int, num_evaluations: int) -> List[Evaluation]:
    """Evaluations as a selection makes them: the nearer to the best, the more. Normal scores on shared splits, with a
    validation score that tells a little of them."""
    rng = np.random.default_rng(1)
    weights = 1 / np.arange(1, num_candidates + 1)
    counts = np.maximum(3, np.round(weights / weights.sum() * num_evaluations).astype(int))
    counts[0] += num_evaluations - counts.sum()
    split_effects = rng.normal(0, 0.02, counts.max())
    schedule = [(max(k - 1, 0) / counts[i], k, i) for i in range(num_candidates) for k in range(counts[i])]
    evaluations = []
    for _, k, i in sorted(schedule):
        noise, score = rng.normal(0, 0.02, 2), 0.6 - i / 500 + split_effects[k]
        request = make_request(1, f"candidate-{i}", k, shared_splits=True)
        metrics = {"best_validation_f1": score + noise.sum(), "test_f1": score + noise[0]}
        evaluations.append(Evaluation(request, score + noise[0], "f1", 60.0, "2026-01-01T00:00:00+00:00", metrics))
    return evaluations
