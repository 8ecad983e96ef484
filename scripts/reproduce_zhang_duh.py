"""Tables 3 and 4 of Zhang and Duh (2020): runs that searchers need on finished machine translation systems, beside the
paper's figures. As Markdown, a row as soon as it is there.

    python scripts/reproduce_zhang_duh.py --data hpo_nmt/datasets
    python scripts/reproduce_zhang_duh.py --data hpo_nmt/datasets --trials 20 --only "gp_ei|BO" --pairs ru-en ja-en

`--data` has the files `*.hyps_scaled`, `*.evals` and `*.fronts` of the paper's repository. Every cell is the mean and
the standard deviation over the trials. Simulated random search is checked against its exact values.
"""

import csv
import re
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Iterator, List, Mapping, Sequence, Tuple

import numpy as np

sys.path.append(str(Path(__file__).parent / "benchmarks"))

from common import make_parser, print_table
from gaussian_processes import graph_covariance, kernel_matrix
from searchers import GaussianProcess, GraphEif, Random, Searcher
from table_lookup import FRONT_BUDGET, Protocol, SearchTable, exact_random_search, read_files, repeat_search

SEED = 2020
STANDARD_ERRORS = 4
"""How far simulated random search may be from its exact means."""

TOLERANCES = {"en-ja": 1.0}
FRONT_BUDGETS = {"sw-en": 200, "so-en": 200}
"""What the paper takes for single language pairs."""

Searchers = Mapping[str, Searcher]
"""By the name of the paper, whose Gaussian processes have raw scores and mean 0, or by ours."""

BAYES_OPT, GRAPH_BASED = (
    {
        kernel: GaussianProcess(partial(covariance, kernel=kernel), is_raw=True, prior_mean=0.0)
        for kernel in ("matern", "rbf")
    }
    for covariance in (kernel_matrix, graph_covariance)
)
SINGLE: Searchers = {
    "RS": Random(),
    "BO_EI_M": BAYES_OPT["matern"],
    "BO_EI_R": BAYES_OPT["rbf"],
    "GB_EI_M": GRAPH_BASED["matern"],
    "GB_EI_R": GRAPH_BASED["rbf"],
    "GB_EIF_M": GraphEif("matern"),
    "GB_EIF_R": GraphEif("rbf"),
    "gp_ei, prior_mean 0": GaussianProcess(prior_mean=0.0),
    "gp_ei": GaussianProcess(),
    "graph_ei": GaussianProcess(graph_covariance),
}
FRONT: Searchers = {
    "RS": Random(),
    "BO_M": BAYES_OPT["matern"],
    "BO_R": BAYES_OPT["rbf"],
    "GB_M": GRAPH_BASED["matern"],
    "GB_R": GRAPH_BASED["rbf"],
    "gp_ehvi": GaussianProcess(),
    "graph_ehvi": GaussianProcess(graph_covariance),
}

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
            return Protocol(tolerance=TOLERANCES.get(pair, 0.5))
        return Protocol(budget=FRONT_BUDGETS.get(pair, FRONT_BUDGET))

    def paper(self, pair: str, method: str) -> List[str]:
        """Return the paper's cells, empty if it has none."""
        with PAPER.open(encoding="utf-8", newline="") as file:
            cells = {tuple(row[:3]): row[3:] for row in csv.reader(file)}
        return cells.get((str(self.number), pair, method), [""] * 3)


TABLES = (
    PaperTable(3, "Table 3: the best BLEU", ("dev_bleu",), SINGLE),
    PaperTable(4, "Table 4: the front of BLEU and seconds", ("dev_bleu", "-dev_gpu_time"), FRONT),
)


def cells(table: PaperTable, data: SearchTable, method: str, num_trials: int) -> Iterator[str]:
    """One method on one language pair: every measure, with the paper's in brackets.

    Raises:
        RuntimeError: where simulated random search is far from the exact one.
    """
    protocol = table.protocol(data.name)
    measures = repeat_search(data, table.methods[method], protocol, num_trials=num_trials, seed=SEED)
    if method == "RS":
        _check(measures, data, protocol)
    for (measure, values), paper in zip(measures.items(), table.paper(data.name, method), strict=True):
        # The standard deviation is that of the trials as a population, as in the paper.
        yield _cell(measure, (values.mean(), values.std())) + (f" ({paper})" if paper else "")


def _check(measures: Mapping[str, np.ndarray], data: SearchTable, protocol: Protocol) -> None:
    for measure, (mean, sd) in exact_random_search(data, protocol).items():
        values = measures[measure]
        if abs(values.mean() - mean) > STANDARD_ERRORS * sd / np.sqrt(len(values)):
            raise RuntimeError(f"{data.name}: random search has the {measure} {values.mean():.3f}, not {mean:.3f}.")


def _cell(measure: str, moments: Tuple[float, float]) -> str:
    digits = {"fb": 2, "fbp": 1}.get(measure, 0)
    return "±".join(f"{moment:.{digits}f}" for moment in moments)


def rows(
    table: PaperTable, datasets: Sequence[SearchTable], pattern: str, num_trials: int
) -> Iterator[Sequence[object]]:
    """A row for each method, with the measures of all language pairs."""
    exact = [exact_random_search(data, table.protocol(data.name)) for data in datasets]
    yield "RS, exactly", *(_cell(*measure) for measures in exact for measure in measures.items())
    for method in table.methods:
        if re.search(pattern, method):
            yield method, *(cell for data in datasets for cell in cells(table, data, method, num_trials))


def main() -> None:
    parser = make_parser(__doc__, only="methods whose name")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="the directory with the paper's files")
    parser.add_argument("--pairs", nargs="*", metavar="NAME", help="language pairs (default: all in the directory)")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--table", type=int, choices=(3, 4), help="only this one of the paper's tables")
    args = parser.parse_args()
    pairs = args.pairs or sorted(path.stem for path in args.data.glob("*.hyps_scaled"))
    for table in TABLES:
        if args.table in (None, table.number):
            datasets = [read_files(args.data / pair, table.objectives) for pair in pairs]
            measures = exact_random_search(datasets[0], table.protocol(datasets[0].name))
            headings = [f"{pair.name} {measure}" for pair in datasets for measure in measures]
            title = f"{table.title}, ours (the paper's)"
            print_table(("method", *headings), rows(table, datasets, args.only, args.trials), title=title)


if __name__ == "__main__":
    main()
