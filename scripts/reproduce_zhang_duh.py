"""Table 3 of Zhang and Duh (2020): runs that searchers need to find the best BLEU of finished machine translation
systems, beside the paper's figures. As Markdown, a row as soon as it is there.

    python scripts/reproduce_zhang_duh.py --data hpo_nmt/datasets
    python scripts/reproduce_zhang_duh.py --data hpo_nmt/datasets --trials 20 --only "gp_ei|BO" --pairs ru-en ja-en

`--data` has the files `*.hyps_scaled` and `*.evals` of the paper's repository. Every cell is the mean and
the standard deviation over the trials. Simulated random search is checked against its exact values.
"""

import csv
import re
import sys
from pathlib import Path
from typing import Dict, Iterator, List, Mapping, Sequence, Tuple

import numpy as np

sys.path.append(str(Path(__file__).parent / "benchmarks"))

from common import make_parser, print_table
from searchers import GpEi, GraphEi, GraphEif, Random, Searcher
from table_lookup import BLEU_TOLERANCE, Lookup, Measures, Protocol, SearchTable, exact_random_search, read_files

SEED = 2020
STANDARD_ERRORS = 4
"""How far simulated random search may be from its exact means."""

TOLERANCES = {"en-ja": 1.0}
"""What the paper takes for single language pairs."""

SEARCHERS: Mapping[str, Searcher] = {
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
"""By the name of the paper, whose Gaussian processes have raw scores and mean 0, or by ours."""

PAPER = Path(__file__).with_name("zhang_duh.csv")
"""The cells of the paper: ftb, ftc and fb, by language pair and method."""


def protocol_of(data: SearchTable) -> Protocol:
    return Protocol(tolerance=TOLERANCES.get(data.name, BLEU_TOLERANCE))


def read_paper() -> Dict[Tuple[str, str], List[str]]:
    """Return the paper's cells, by language pair and method."""
    with PAPER.open(encoding="utf-8", newline="") as file:
        return {(pair, method): cells for pair, method, *cells in csv.reader(file)}


def cells(data: SearchTable, method: str, num_trials: int) -> List[str]:
    """One method on one language pair: every measure, with the paper's in brackets.

    Raises:
        RuntimeError: where simulated random search is far from the exact one.
    """
    protocol = protocol_of(data)
    measures = Lookup(data, SEARCHERS[method], protocol, SEED).run(num_trials)
    if method == "RS":
        _check(measures, data, protocol)
    papers = read_paper().get((data.name, method), ("",) * 3)
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
    return "±".join(f"{moment:.{2 if measure == 'fb' else 0}f}" for moment in moments)


def rows(datasets: Sequence[SearchTable], only: str, num_trials: int) -> Iterator[Sequence[object]]:
    """A row for each method, with the measures of all language pairs."""
    exact = [exact_random_search(data, protocol_of(data)) for data in datasets]
    yield "RS, exactly", *(_cell(measure, moments) for values in exact for measure, moments in values.items())
    for method in SEARCHERS:
        if re.search(only, method):
            yield method, *(cell for data in datasets for cell in cells(data, method, num_trials))


def main() -> None:
    parser = make_parser(__doc__, only="methods whose name")
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="the directory with the paper's files")
    parser.add_argument("--pairs", nargs="*", metavar="NAME", help="language pairs (default: all in the directory)")
    parser.add_argument("--trials", type=int, default=100)
    args = parser.parse_args()
    pairs = args.pairs or sorted(path.stem for path in args.data.glob("*.hyps_scaled"))
    datasets = [read_files(args.data / pair) for pair in pairs]
    headings = [f"{pair} {measure}" for pair in pairs for measure in ("ftb", "ftc", "fb")]
    print_table(("method", *headings), rows(datasets, args.only, args.trials), title="Table 3, ours (the paper's)")


if __name__ == "__main__":
    main()
