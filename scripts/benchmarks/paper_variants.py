"""Which reading of the FIESTA paper gives its tables 2 and 3: its procedures with 3 or 5 starting runs, and two priors.

    python scripts/benchmarks/paper_variants.py fiesta_tdsa_test_f1.json --repetitions 2000
    python scripts/benchmarks/paper_variants.py --table

A call appends a line for each variant and confidence to `results/paper_variants.csv`; `--table` writes the table of
`reproduce.md`.
"""

import itertools
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np
from common import (
    BENCHMARKS,
    MODELS_8,
    append_rows,
    make_parser,
    read_rows,
    replace_tables,
    write_tables,
)

from fiesta_allennlp.choosing.probability import independent_t as student_t

RESULTS = BENCHMARKS / "results" / "paper_variants.csv"
PAGE = BENCHMARKS / "reproduce.md"
TABLE_PATTERN = re.compile(r"(<!-- variants -->\n).*?(<!-- end -->)", flags=re.S)
CONFIDENCES = (0.95, 0.9, 0.8)
HEADINGS = (
    "procedure, runs between decisions",
    "posterior's df",
    "starts",
    *(f"{confidence:.2f}" for confidence in CONFIDENCES),
    "chi-squared (3)",
)
PAPER_REPETITIONS = 500
COUNTED_STARTS = 3
"""The starting runs that the paper counts for each model."""

PAPER = {
    ("ttts", 1): ((27, 130, 518, 1.0), (24, 96, 460, 0.99), (24, 65, 274, 0.97)),
    ("non_adaptive_fc", 8): ((48, 281, 1552, 1.0), (40, 206, 1192, 0.99), (32, 128, 608, 0.96)),
    ("bts", 4): ((28, 282, 1392, 1.0), (24, 144, 520, 1.0), (24, 76, 280, 0.98)),
    ("bts", 8): ((88, 315, 1128, 1.0), (56, 178, 784, 1.0), (32, 106, 352, 0.99)),
}
"""Least, mean and most runs of tables 2 and 3 and the share that was correct, at each of `CONFIDENCES`, by procedure
and runs between two decisions."""

LOST_DF = (2, 1)
"""c in the degrees of freedom n - c and the squared scale S / (n (n - c)): the paper's prior, and Jeffreys'."""


@dataclass(frozen=True)
class Variant:
    """A reading of one procedure."""

    procedure: str
    batch_size: int
    starts: int
    lost_df: int


@dataclass(frozen=True)
class Measured:
    """The runs of many repetitions of a variant, counted with `COUNTED_STARTS` starting runs of each model."""

    procedure: str
    batch_size: int
    starts: int
    lost_df: int
    confidence: float
    repetitions: int
    seed: int
    least: float
    mean: float
    sd: float
    most: float
    correct: float


def prob_best(variant: Variant, sums: np.ndarray) -> np.ndarray:
    """P(best) of each repetition. `sums` has the number, the sum and the sum of squares of the scores, shape
    `(3, repetitions, models)`."""
    number, total, squares = sums
    mean, df = total / number, number - variant.lost_df
    scale = np.sqrt(np.maximum(squares - total**2 / number, 1e-12) / (number * df))
    return np.stack(
        [student_t.prob_best(*row[:1], scale=row[1], df=row[2]) for row in zip(mean, scale, df, strict=True)]
    )


def draw(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A model for each row of weights."""
    cumulative = np.cumsum(weights, axis=1)
    return np.minimum(
        (rng.random((len(weights), 1)) * cumulative[:, -1:] > cumulative).sum(axis=1), weights.shape[1] - 1
    )


def choose(variant: Variant, probabilities: np.ndarray, rng: np.random.Generator) -> List[np.ndarray]:
    """The models to run before the next decision: an index for each repetition."""
    rows = np.arange(len(probabilities))
    if variant.procedure == "non_adaptive_fc":
        return [np.full(len(rows), model) for model in range(probabilities.shape[1])]
    leaders = [draw(probabilities, rng) for _ in range(variant.batch_size)]
    if variant.procedure == "bts":
        return leaders
    others = probabilities.copy()
    others[rows, leaders[0]] = 0
    others[others.sum(axis=1) == 0] = 1
    others[rows, leaders[0]] = 0
    return [np.where(rng.random(len(rows)) <= 0.5, leaders[0], draw(others, rng))]


def measure(variant: Variant, confidence: float, scores: np.ndarray, *, repetitions: int, seed: int) -> Measured:
    """Repeat a selection. `scores` has the shape `(models, 500)`; every run draws one with replacement."""
    rng = np.random.default_rng(seed)
    models = np.arange(len(scores))
    first = scores[models[:, None], rng.integers(scores.shape[1], size=(repetitions, len(scores), variant.starts))]
    sums = np.array([np.full(first.shape[:2], float(variant.starts)), first.sum(-1), (first**2).sum(-1)])
    is_right, open_rows = np.zeros(repetitions, dtype=bool), np.arange(repetitions)
    while len(open_rows):
        probabilities = prob_best(variant, sums[:, open_rows])
        is_done = probabilities.max(axis=1) >= confidence
        is_right[open_rows[is_done]] = probabilities[is_done].argmax(axis=1) == scores.mean(axis=1).argmax()
        open_rows, probabilities = open_rows[~is_done], probabilities[~is_done]
        for chosen in choose(variant, probabilities, rng):
            drawn = scores[chosen, rng.integers(scores.shape[1], size=len(chosen))]
            sums[:, open_rows, chosen] += np.array([np.ones(len(chosen)), drawn, drawn**2])
    runs = sums[0].sum(axis=1) - len(scores) * (variant.starts - COUNTED_STARTS)
    return Measured(
        **asdict(variant),
        confidence=confidence,
        repetitions=repetitions,
        seed=seed,
        least=runs.min(),
        mean=round(runs.mean(), 2),
        sd=round(runs.std(ddof=1), 2),
        most=runs.max(),
        correct=is_right.mean(),
    )


def variants() -> Iterator[Variant]:
    for (procedure, batch_size), starts, lost_df in itertools.product(PAPER, (3, 5), LOST_DF):
        yield Variant(procedure, batch_size, starts, lost_df)


def chi_squared(rows: Sequence[Measured]) -> float:
    """The distance of the three means from the paper's, in errors of both."""
    means = [paper[1] for paper in PAPER[rows[0].procedure, rows[0].batch_size]]
    return sum(
        (row.mean - mean) ** 2 / (row.sd**2 * (1 / row.repetitions + 1 / PAPER_REPETITIONS))
        for row, mean in zip(rows, means, strict=True)
    )


def table_rows(measured: Sequence[Measured]) -> Iterator[Tuple[str, ...]]:
    """The reading of each procedure that is nearest to the paper: its means, each below the paper's."""
    for (procedure, batch_size), paper in PAPER.items():
        groups: Dict[Tuple[int, ...], List[Measured]] = {}
        for row in measured:
            if (row.procedure, row.batch_size) == (procedure, batch_size):
                groups.setdefault((row.starts, row.lost_df), []).append(row)
        complete = {key: rows for key, rows in groups.items() if len(rows) == len(CONFIDENCES)}
        if complete:
            (starts, lost_df), rows = min(complete.items(), key=lambda item: chi_squared(item[1]))
            cells = [f"{mean}; {row.mean:.0f}" for (_, mean, _, _), row in zip(paper, rows, strict=True)]
            yield f"{procedure}, {batch_size}", f"n - {lost_df}", str(starts), *cells, f"{chi_squared(rows):.1f}"


def with_tables(page: str) -> str:
    """The page with the table of all recorded lines. The procedures are this script's own, so it names no rule."""
    lines = read_rows(RESULTS, Measured)
    return replace_tables(page, TABLE_PATTERN, lambda match: [HEADINGS, *table_rows(lines)])


def main(arguments: Optional[Sequence[str]] = None) -> None:
    parser = make_parser(__doc__, repetitions=2000)
    parser.add_argument("scores", type=Path, nargs="?", help="the released scores, {model: [500 scores]}")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--table", action="store_true", help="write the table of the page")
    args = parser.parse_args(arguments)
    if args.scores is not None:
        released = json.loads(args.scores.read_text(encoding="utf-8"))
        scores = np.array([released[name] for name in MODELS_8])
        for variant, confidence in itertools.product(variants(), CONFIDENCES):
            row = measure(variant, confidence, scores, repetitions=args.repetitions, seed=args.seed)
            append_rows([asdict(row)], RESULTS)
            print(row, flush=True)
    if args.table:
        write_tables([PAGE], with_tables)


if __name__ == "__main__":
    main()
