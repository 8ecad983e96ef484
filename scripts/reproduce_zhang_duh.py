"""Tables 3 and 4 of Zhang and Duh (2020): runs that searchers need on finished machine translation systems, beside the
paper's figures. As Markdown, a row as soon as it is there.

    python scripts/reproduce_zhang_duh.py --data hpo_nmt/datasets
    python scripts/reproduce_zhang_duh.py --data hpo_nmt/datasets --trials 20 --only "gp_ei|BO" --pairs ru-en ja-en

`--data` has the files `*.hyps_scaled`, `*.evals` and `*.fronts` of the paper's repository. Every cell is the mean and
the standard deviation over the trials. Simulated random search is checked against its exact values.
"""

import argparse
import csv
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, List, Mapping, Sequence, Tuple

import numpy as np

sys.path.append(str(Path(__file__).parent / "benchmarks"))

from common import make_parser, print_table
from searchers import GpEhvi, GpEi, GraphEhvi, GraphEi, GraphEif, Random, Searcher
from table_lookup import BUDGET, FRONT_BUDGET, Lookup, Measures, Protocol, SearchTable, exact_random_search, read_files

SEED = 2020
STANDARD_ERRORS = 4
"""How far simulated random search may be from its exact means."""

TOLERANCES = {"en-ja": 1.0}
FRONT_BUDGETS = {"sw-en": 200, "so-en": 200}
"""What the paper takes for single language pairs."""

Searchers = Mapping[str, Searcher]
"""By the name of the paper, whose Gaussian processes have raw scores and mean 0, or by ours."""

SINGLE: Searchers = {
    "RS": Random(),
    "BO_EI_M": GpEi(kernel="matern", scores="raw"),
    "BO_EI_R": GpEi(kernel="rbf", scores="raw"),
    "GB_EI_M": GraphEi(kernel="matern", scores="raw"),
    "GB_EI_R": GraphEi(kernel="rbf", scores="raw"),
    "GB_EIF_M": GraphEif(kernel="matern"),
    "GB_EIF_R": GraphEif(kernel="rbf"),
    "gp_ei, prior_mean 0": GpEi(prior_mean=0.0),
    "gp_ei": GpEi(),
    "graph_ei": GraphEi(),
}
FRONT: Searchers = {
    "RS": Random(),
    "BO_M": GpEhvi(kernel="matern", scores="raw"),
    "BO_R": GpEhvi(kernel="rbf", scores="raw"),
    "GB_M": GraphEhvi(kernel="matern", scores="raw"),
    "GB_R": GraphEhvi(kernel="rbf", scores="raw"),
    "gp_ehvi": GpEhvi(),
    "graph_ehvi": GraphEhvi(),
}

Cells = Tuple[str, str, str]

PAPER = Path(__file__).with_name("zhang_duh.csv")
"""The cells of the paper: ftb, ftc and fb of table 3, and fto, fta and fbp of table 4."""


@dataclass(frozen=True)
class PaperTable:
    """One of the paper's two tables, by its number."""

    number: int
    title: str
    objectives: Tuple[str, ...]
    methods: Searchers

    def protocol(self, pair: str) -> Protocol:
        if len(self.objectives) == 1:
            return Protocol(tolerance=TOLERANCES.get(pair, 0.5), budget=BUDGET)
        return Protocol(budget=FRONT_BUDGETS.get(pair, FRONT_BUDGET))

    def paper(self, pair: str, method: str) -> Cells:
        """Return the paper's cells, empty if it has none."""
        with PAPER.open(encoding="utf-8", newline="") as file:
            cells = {tuple(row[:3]): row[3:] for row in csv.reader(file)}
        first, second, third = cells.get((str(self.number), pair, method), ("",) * 3)
        return first, second, third


TABLES = (
    PaperTable(3, "Table 3: the best BLEU", ("dev_bleu",), SINGLE),
    PaperTable(4, "Table 4: the front of BLEU and seconds", ("dev_bleu", "-dev_gpu_time"), FRONT),
)


def cells(table: PaperTable, data: SearchTable, method: str, num_trials: int) -> List[str]:
    """One method on one language pair: every measure, with the paper's in brackets.

    Raises:
        RuntimeError: where simulated random search is far from the exact one.
    """
    protocol = table.protocol(data.name)
    measures = Lookup(data, table.methods[method], protocol, SEED).run(num_trials)
    if method == "RS":
        _check(measures, data, protocol)
    papers = table.paper(data.name, method)
    return [
        f"{_cell(measure, measures.mean_and_sd(measure))}{f' ({paper})' if paper else ''}"
        for measure, paper in zip(measures.values, papers, strict=True)
    ]


def _check(measures: Measures, data: SearchTable, protocol: Protocol) -> None:
    for measure, (mean, sd) in exact_random_search(data, protocol).items():
        values = measures.values[measure]
        if abs(values.mean() - mean) > STANDARD_ERRORS * sd / np.sqrt(len(values)):
            raise RuntimeError(f"{data.name}: random search has the {measure} {values.mean():.3f}, not {mean:.3f}.")


def _cell(measure: str, moments: Tuple[float, float]) -> str:
    digits = {"fb": 2, "fbp": 1}.get(measure, 0)
    return "±".join(f"{moment:.{digits}f}" for moment in moments)


def exact_cells(table: PaperTable, data: SearchTable) -> List[str]:
    exact = exact_random_search(data, table.protocol(data.name))
    return [_cell(measure, moments) for measure, moments in exact.items()]


def rows(table: PaperTable, datasets: Sequence[SearchTable], args: argparse.Namespace) -> Iterator[Sequence[object]]:
    """A row for each method, with the measures of all language pairs."""
    yield "RS, exactly", *(cell for pair in datasets for cell in exact_cells(table, pair))
    for method in table.methods:
        if re.search(args.only, method):
            yield method, *(cell for pair in datasets for cell in cells(table, pair, method, args.trials))


def parse() -> argparse.Namespace:
    parser = make_parser(__doc__, only="methods whose name")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="the directory with the paper's files")
    parser.add_argument("--pairs", nargs="*", metavar="NAME", help="language pairs (default: all in the directory)")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--table", type=int, choices=(3, 4), help="only this one of the paper's tables")
    return parser.parse_args()


def main() -> None:
    args = parse()
    pairs = args.pairs or sorted(path.stem for path in args.data.glob("*.hyps_scaled"))
    for table in TABLES:
        if args.table not in (None, table.number):
            continue
        datasets = [read_files(args.data / pair, table.objectives) for pair in pairs]
        measures = exact_random_search(datasets[0], table.protocol(datasets[0].name))
        headings = [f"{pair.name} {measure}" for pair in datasets for measure in measures]
        print_table(("method", *headings), rows(table, datasets, args), title=f"{table.title}, ours (the paper's)")


if __name__ == "__main__":
    main()
