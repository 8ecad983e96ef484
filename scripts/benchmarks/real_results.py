"""The recorded results of `real_problems.py`: where they are, what a line counts, and the tables of the pages."""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple

import numpy as np
from common import EVALUATION, RESULTS, ROOT, SHARED_DATA, PageTables, add_up, group_by, read_final_rows, share_text
from procedures import PROCEDURES
from published_scores import TIE, Problem

from fiesta_allennlp.tables.simulation.simulator import wilson_interval

GAPS = ("below 0.2", "0.2 to 0.8", "above 0.8")
GAP_LIMITS = (0.2, 0.8)
"""Near, middle and wide gaps, in run-to-run sds, and their limits."""

NUM_RESAMPLES = 2000
HEADINGS = ("runs: mean, median (5-95%)", "names a winner", "wrong, of named", "by over 0.25 sd")


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
        RESULTS / "opened_problems.csv",
    ),
    TUNED: ProblemSet(
        "306 problems on which the rule was chosen",
        SHARED_DATA / "real" / "problems.csv.gz",
        RESULTS / "real_problems.csv",
    ),
    APART: ProblemSet(
        "some of the 306 problems, simulated more often",
        SHARED_DATA / "real" / "problems.csv.gz",
        RESULTS / "problems_apart.csv",
    ),
}
"""No rule, constant or prior is chosen on the opened set."""


@dataclass(frozen=True)
class SelectionOutcome:
    """What one selection chose, and whether it named it as the winner."""

    problem: Problem
    best: str
    is_named: bool
    num_runs: int

    @property
    def loss(self) -> float:
        """How far the true mean of the chosen one is below the best, in run-to-run sds."""
        return self.problem.losses[self.best]


@dataclass(frozen=True)
class ResultRow:
    """The counts of one procedure and problem in one call. `runs` counts selections by number of runs, as
    "15:3 18:1"."""

    rule: str
    procedure: str
    source: str
    data_set: str
    problem: str
    gap: str
    seed: int
    selections: int
    named: int
    wrong: int
    wrong_by_quarter: int
    runs: str

    @property
    def histogram(self) -> Counter[int]:
        pairs = (pair.split(":") for pair in self.runs.split())
        return Counter({int(number): int(count) for number, count in pairs})


def read_results(set_name: str) -> List[ResultRow]:
    """Return the recorded lines of a set that the final rule made."""
    return read_final_rows(SETS[set_name].results, ResultRow)


def count_outcomes(outcomes: Sequence[SelectionOutcome], **columns: Any) -> Iterator[ResultRow]:
    """Count results by problem."""
    groups = group_by(outcomes, lambda outcome: (outcome.problem.source, outcome.problem.name))
    for (source, name), group in sorted(groups.items()):
        problem = group[0].problem
        losses = [result.loss for result in group if result.is_named]
        by_number = sorted(Counter(result.num_runs for result in group).items())
        yield ResultRow(
            **columns,
            source=source,
            data_set=problem.data_set,
            problem=name,
            gap=GAPS[int(np.digitize(problem.gap, GAP_LIMITS))],
            selections=len(group),
            named=len(losses),
            wrong=sum(loss > TIE for loss in losses),
            wrong_by_quarter=sum(loss > 0.25 for loss in losses),
            runs=" ".join(f"{number}:{count}" for number, count in by_number),
        )


def count_runs(results: Sequence[ResultRow]) -> np.ndarray:
    """Return the number of runs of every selection, sorted."""
    histogram = sum((line.histogram for line in results), Counter())
    return np.repeat(*(np.array(column) for column in zip(*sorted(histogram.items()), strict=True)))


def cells(results: Sequence[ResultRow]) -> Tuple[str, ...]:
    """Return one text for each of `HEADINGS`."""
    num_runs, (total, named) = count_runs(results), add_up(results, "selections", "named")
    low, median, high = np.percentile(num_runs, (5, 50, 95), method="inverted_cdf")
    return (
        f"{num_runs.mean():.1f}, {median} ({low}-{high})",
        f"{named / total:.3f}",
        share_with_interval(results, "wrong", "named"),
        share_with_interval(results, "wrong_by_quarter", "selections"),
    )


def share_with_interval(results: Sequence[Any], key: str, total_key: str) -> str:
    """Return a share with its 95% interval, "-" of nothing."""
    number, total = add_up(results, key, total_key) if results else (0, 0)
    return share_text(number / total, interval(results, key, total_key)) if total else "-"


def interval(results: Sequence[Any], key: str, total_key: str) -> Tuple[float, float]:
    """Compute the 95% interval of a share by a bootstrap over data sets. Where the count is 0, it is Wilson's for 0 of
    that many data sets, and for a single data set Wilson's for its selections."""
    by_data_set: Dict[str, np.ndarray] = defaultdict(lambda: np.zeros(2))
    for result in results:
        by_data_set[result.data_set] += (getattr(result, key), getattr(result, total_key))
    counts = np.array(list(by_data_set.values()))
    if len(counts) == 1:
        return wilson_interval(*(int(number) for number in counts.sum(axis=0)))
    if not counts[:, 0].any():
        return wilson_interval(0, int((counts[:, 1] > 0).sum()))
    number = len(counts)
    weights = np.random.default_rng(1).multinomial(number, np.full(number, 1 / number), size=NUM_RESAMPLES)
    shares, numbers = (weights @ counts).T
    low, high = np.percentile(shares[numbers > 0] / numbers[numbers > 0], (2.5, 97.5))
    return float(low), float(high)


def procedure_table(results: Iterable[ResultRow], names: Sequence[str]) -> List[Tuple[str, ...]]:
    """Return a row for each of these procedures."""
    groups = group_by(results, lambda row: row.procedure)
    return [("procedure", *HEADINGS), *((name, *cells(groups[name])) for name in names if name in groups)]


def gap_table(results: Iterable[ResultRow], names: Sequence[str]) -> List[Tuple[str, ...]]:
    """Return a row for each of these procedures and each class of gaps."""
    groups = group_by(results, lambda row: (row.procedure, row.gap))
    keys = [(name, gap) for name in names for gap in GAPS if (name, gap) in groups]
    return [("procedure", "gap, sds", *HEADINGS), *((*key, *cells(groups[key])) for key in keys)]


def _table(match: "re.Match[str]") -> List[Tuple[str, ...]]:
    names = match["names"].split(", ")
    if unknown := [name for name in names if name not in PROCEDURES]:
        raise ValueError(f"{match['marker']} has an unknown procedure: {unknown[0]}.")
    make = {"procedures": procedure_table, "gaps": gap_table}[match["kind"]]
    return make(read_results(match["set"]), names)


TABLES = PageTables(
    rf"real: (?P<set>{'|'.join(SETS)}) (?P<kind>procedures|gaps), (?P<names>[^>]+?)",
    _table,
    [EVALUATION, ROOT / "README.md"],
)
"""The tables of some procedures on a set of problems."""
