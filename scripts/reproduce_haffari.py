"""Tables 1 and 2 of Haffari et al. (2017): queries needed to find the best of several systems by the counts of their
answers, and by their F-measures alone, beside the paper's figures. As Markdown, a row as soon as it is there.

    python scripts/reproduce_haffari.py --repetitions 500 --look-every 10
    python scripts/reproduce_haffari.py --repetitions 50 --problems 0.05:5

The paper does not say which rates its systems have, how many items a document has, or what concentration the documents
were drawn with: these are constants here. System i has the F-measure `BEST` - i margin. Documents are independent of
each other, as in the paper. `--look-every N` lets N queries pass between two looks.
"""

import math
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Dict, Iterator, Mapping, Sequence, Tuple

import numpy as np
from statsmodels.stats.power import TTestPower

from fiesta_allennlp import replay
from fiesta_allennlp.core.records import Evaluation
from fiesta_allennlp.tables.simulation.score_sources import DrawnScores, Sampling, ScoreSource, number_splits

sys.path.append(str(Path(__file__).parent / "benchmarks"))

from common import make_parser, print_table

SEED = 2017
MAX_QUERIES = 2000
NUM_SAMPLES = 512
"""Half of the default: P(best) differs in the third digit."""

BEST = 0.99
"""F-measure of the best system."""

NUM_ITEMS = 10**6
"""Answers in a document."""

SHARE = 0.5
"""Of the answers that are true positives for a system without errors, and of the errors that are false negatives."""

CONCENTRATION = 1.0
"""A of the documents and of the hierarchical belief."""

HIERARCHICAL = {"type": "dirichlet_f_measure", "num_samples": NUM_SAMPLES, "concentration": CONCENTRATION}

KINDS = ("tp", "fp", "fn", "tn")
SAMPLERS = {"TS": 1.0, "PETS": 0.5}
"""beta of both."""

PAPER_QUERIES: Dict[Tuple[str, float, int], Tuple[int, int]] = {
    **{("hierarchical TS", m, 5): (n, ok) for m, n, ok in ((0.05, 22, 100), (0.025, 41, 96), (0.01, 66, 100))},
    **{("hierarchical PETS", m, 5): (n, ok) for m, n, ok in ((0.05, 19, 100), (0.025, 27, 100), (0.01, 64, 96))},
    **{("Gaussian TS", m, 5): (n, 100) for m, n in ((0.05, 513), (0.025, 1169), (0.01, 2000))},
    **{("Gaussian PETS", m, 5): (n, 100) for m, n in ((0.05, 360), (0.025, 848), (0.01, 1965))},
    **{("hierarchical TS", 0.05, k): (n, ok) for k, n, ok in ((10, 43, 96), (20, 70, 100))},
    **{("hierarchical PETS", 0.05, k): (n, ok) for k, n, ok in ((10, 35, 100), (20, 64, 100))},
    **{("Gaussian TS", 0.05, k): (n, 100) for k, n in ((10, 1019), (20, 1404))},
    **{("Gaussian PETS", 0.05, k): (n, 100) for k, n in ((10, 661), (20, 937))},
}
"""Mean queries and per cent of success, by method, margin and number of systems."""

PAPER_BASELINES: Dict[Tuple[float, int], Tuple[object, object]] = {
    (0.05, 5): (120, 185),
    (0.025, 5): (440, 680),
    (0.01, 5): (2725, 4195),
    (0.05, 10): (245, 380),
    (0.05, 20): (400, 620),
}
"""Baseline2 and BaselineK-1, by margin and number of systems."""

HEADINGS = ("margin", "systems", "method", "paper", "queries", "success", "at the limit")


def rates(f: float) -> np.ndarray:
    """Rates in the order of `KINDS` with the F-measure `f`. Shape: `(4,)`."""
    errors = 2 * (1 - f) / f
    tp = SHARE / (1 + SHARE * errors)
    wrong = tp * errors
    return np.array([tp, wrong * (1 - SHARE), wrong * SHARE, 1 - tp - wrong])


def draw_documents(f: float, number: int, rng: np.random.Generator) -> np.ndarray:
    """Counts of documents of a system. Shape: `(number, 4)`."""
    return rng.multinomial(NUM_ITEMS, rng.dirichlet(CONCENTRATION * rates(f), number))


def f_measures(counts: np.ndarray) -> np.ndarray:
    """F1 of each document, 1 where there is nothing to find. Shapes: `(num_documents, 4)` to `(num_documents,)`."""
    tp, fp, fn, _ = counts.T
    return np.where(tp + fp + fn > 0, 2 * tp / np.maximum(2 * tp + fp + fn, 1), 1.0)


@dataclass(frozen=True, eq=False)
class DrawnDocuments(DrawnScores):
    """Replicate k of a system is its k-th document."""

    counts: Mapping[str, np.ndarray] = field(default_factory=dict)

    def run(self, candidate: str, replicate: int) -> Evaluation:
        row = self.counts[candidate][replicate]
        metrics = {f"count:{kind}": int(number) for kind, number in zip(KINDS, row, strict=True)}
        return replace(super().run(candidate, replicate), metrics=metrics)


@dataclass(frozen=True)
class SyntheticDocuments(ScoreSource):
    """Documents of systems with F-measures a margin apart, drawn from the paper's model."""

    measures: Mapping[str, float]
    name: str = "synthetic documents"
    reports_counts = True

    def true_means(self) -> Dict[str, float]:
        return dict(self.measures)

    def draw(
        self, sampling: Sampling, *, split_rng: np.random.Generator, score_rngs: Mapping[str, np.random.Generator]
    ) -> DrawnDocuments:
        counts = {name: draw_documents(f, sampling.length, score_rngs[name]) for name, f in self.measures.items()}
        splits = number_splits(dict.fromkeys(counts, sampling.length))
        scores = {name: f_measures(rows) for name, rows in counts.items()}
        return DrawnDocuments(splits, scores, self.name, counts=counts)


ERROR, POWER = 0.05, 0.8
"""The paper's power analysis: 5% wrong winners between two equal systems, and 80% of real differences found."""


def effect_apart(best: np.ndarray, second: np.ndarray) -> float:
    """(mu_1 - mu_2) / sqrt(sigma_1^2 + sigma_2^2) from scores on documents that are not shared.

    Shapes: `(num_documents,)` each, at least 2.
    """
    return float((best.mean() - second.mean()) / math.sqrt(best.var(ddof=1) + second.var(ddof=1)))


def fixed_queries(measures: Sequence[float]) -> Iterator[object]:
    """Yield Baseline2 and BaselineK-1: the documents that a one-sided paired t-test of the best two systems needs
    (section 4.1), by the F-measures of 100,000 documents of each; `-` if the second is not below the first."""
    rng = np.random.default_rng(SEED)
    effect = effect_apart(*(f_measures(draw_documents(f, 100_000, rng)) for f in measures[:2]))
    for num_tests in (1, len(measures) - 1):
        options = {"alpha": ERROR / num_tests, "power": POWER, "alternative": "larger"}
        yield math.ceil(TTestPower().solve_power(effect, **options)) if effect > 0 else "-"


def rows(margin: float, systems: int, repetitions: int, look_every: int) -> Iterator[Sequence[object]]:
    """Yield the rows of one problem."""
    source = SyntheticDocuments({f"system{i}": BEST - i * margin for i in range(systems)})
    papers = PAPER_BASELINES.get((margin, systems), ("-", "-"))
    baselines = zip(("Baseline2", "BaselineK-1"), papers, fixed_queries(list(source.measures.values())), strict=True)
    yield from ((margin, systems, *baseline, "", "") for baseline in baselines)
    for method in METHODS:
        kind, sampler = method.split()
        outlook = replay(
            source,
            strategy={"type": "ttts", "beta": SAMPLERS[sampler]},
            belief=HIERARCHICAL if kind == "hierarchical" else "student_t",
            stop="bayesian",
            confidence=0.95,
            max_evaluations=MAX_QUERIES,
            splits="independent",
            repetitions=repetitions,
            batch_size=look_every if kind == "Gaussian" else 1,
            seed=SEED,
        ).default
        paper = "{} ({}%)".format(*PAPER_QUERIES.get((method, margin, systems), ("-", "-")))
        queries = f"{outlook.runs.mean:.0f} ± {outlook.runs.sd / math.sqrt(repetitions - 1):.0f}"
        yield margin, systems, method, paper, queries, f"{outlook.correct:.0%}", f"{outlook.open:.0%}"


TABLES = ((0.05, 5), (0.025, 5), (0.01, 5), (0.05, 10), (0.05, 20))
METHODS = ("Gaussian TS", "hierarchical TS", "Gaussian PETS", "hierarchical PETS")


def main() -> None:
    parser = make_parser(__doc__, repetitions=500)
    parser.add_argument("--problems", nargs="*", metavar="MARGIN:SYSTEMS", help="such as 0.05:5 (default: all)")
    parser.add_argument("--look-every", type=int, default=1, help="queries between two looks of the Gaussian belief")
    args = parser.parse_args()
    problems = [(float(m), int(k)) for m, k in (text.split(":") for text in args.problems or ())] or TABLES
    print_table(HEADINGS, (row for problem in problems for row in rows(*problem, args.repetitions, args.look_every)))


if __name__ == "__main__":
    main()
