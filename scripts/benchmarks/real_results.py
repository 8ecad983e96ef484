"""The recorded results of `real_problems.py`: where they are, and what a line counts."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from common import BENCHMARKS, SHARED_DATA, read_rows
from published_scores import TIE, Problem

GAPS = (0.2, 0.8)
"""Limits between near, middle and wide gaps, in run-to-run sds."""

REPORTED = (0.96, 0.98)
"""Limits between classes of the P(best) of a named winner."""


@dataclass(frozen=True)
class ProblemSet:
    """Problems whose results have a file of their own. `title` is how a figure names them."""

    title: str
    scores: Path
    results: Path


TUNED, OPENED, APART = "tuned", "opened", "apart"
SETS: Mapping[str, ProblemSet] = {
    OPENED: ProblemSet(
        "179 problems that no rule was chosen on",
        SHARED_DATA / "real" / "opened_2026_11.csv.gz",
        BENCHMARKS / "results" / "opened_problems.csv",
    ),
    TUNED: ProblemSet(
        "306 problems on which the rule was chosen",
        SHARED_DATA / "real" / "problems.csv.gz",
        BENCHMARKS / "results" / "real_problems.csv",
    ),
    APART: ProblemSet(
        "some of the 306 problems, simulated more often",
        SHARED_DATA / "real" / "problems.csv.gz",
        BENCHMARKS / "results" / "problems_apart.csv",
    ),
}
"""No rule, constant or prior is chosen on the opened set."""


@dataclass(frozen=True)
class SelectionOutcome:
    """What one selection chose, whether it named it as the winner, and its P(best) where it was reported."""

    problem: Problem
    best: str
    is_named: bool
    num_runs: int
    prob_best: Optional[float] = None

    @property
    def loss(self) -> float:
        """How far the true mean of the chosen one is below the best, in run-to-run sds."""
        return self.problem.losses[self.best]


@dataclass(frozen=True)
class ResultRow:
    """The counts of one procedure, problem and class of reported P(best) in one call.
    `runs` counts selections by number of runs, as "15:3 18:1"; `loss` is a sum, in run-to-run sds."""

    rule: str
    procedure: str
    source: str
    data_set: str
    problem: str
    gap: str
    reported: str
    seed: int
    selections: int
    named: int
    wrong: int
    wrong_by_tenth: int
    wrong_by_quarter: int
    loss: float
    runs: str

    @property
    def histogram(self) -> Counter[int]:
        pairs = (pair.split(":") for pair in self.runs.split())
        return Counter({int(number): int(count) for number, count in pairs})


def read_results(set_name: str) -> List[ResultRow]:
    """Return all recorded lines of a set."""
    return read_rows(SETS[set_name].results, ResultRow)


def count_outcomes(outcomes: Sequence[SelectionOutcome], **columns: Any) -> Iterator[ResultRow]:
    """Count results by problem and reported P(best)."""
    groups: Dict[Tuple[str, str, str], List[SelectionOutcome]] = defaultdict(list)
    for outcome in outcomes:
        reported = "" if not outcome.is_named or outcome.prob_best is None else class_label(outcome.prob_best, REPORTED)
        groups[outcome.problem.source, outcome.problem.name, reported].append(outcome)
    for (source, name, reported), group in sorted(groups.items()):
        problem = group[0].problem
        losses = [result.loss for result in group if result.is_named]
        by_number = sorted(Counter(result.num_runs for result in group).items())
        yield ResultRow(
            **columns,
            source=source,
            data_set=problem.data_set,
            problem=name,
            gap=class_label(problem.gap, GAPS),
            reported=reported,
            selections=len(group),
            named=len(losses),
            wrong=sum(loss > TIE for loss in losses),
            wrong_by_tenth=sum(loss > 0.1 for loss in losses),
            wrong_by_quarter=sum(loss > 0.25 for loss in losses),
            loss=round(sum(result.loss for result in group), 6),
            runs=" ".join(f"{number}:{count}" for number, count in by_number),
        )


def class_label(value: float, limits: Tuple[float, float]) -> str:
    low, high = limits
    return f"below {low}" if value < low else f"{low} to {high}" if value < high else f"above {high}"
