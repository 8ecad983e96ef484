"""Tables 3 and 4 of Zhang and Duh (2020): runs that searchers need on finished machine translation systems, beside the
paper's figures. As Markdown, a row as soon as it is there.

    python scripts/reproduce_zhang_duh.py --data hpo_nmt/datasets
    python scripts/reproduce_zhang_duh.py --data hpo_nmt/datasets --trials 20 --only "gp_ei|BO" --pairs ru-en ja-en

`--data` has the files `*.hyps_scaled`, `*.evals` and `*.fronts` of the paper's repository. Every cell is the mean and
the standard deviation over the trials. Simulated random search is checked against its exact values.
"""

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

import numpy as np

from fiesta_allennlp.searches.searchers.base import build_searcher

sys.path.append(str(Path(__file__).parent / "benchmarks"))

from common import make_parser, print_table
from table_lookup import BUDGET, FRONT_BUDGET, Lookup, Measured, Protocol, SearchTable, exact_random_search, read_files

SEED = 2020
STANDARD_ERRORS = 4
"""How far simulated random search may be from its exact means."""

TOLERANCES = {"en-ja": 1.0}
FRONT_BUDGETS = {"sw-en": 200, "so-en": 200}
"""What the paper takes for single language pairs."""

UNFITTED = {"scores": "raw", "prior_mean": 0.0}
"""The paper's Gaussian processes: raw scores and mean 0."""


Searchers = Mapping[str, Mapping[str, Any]]
"""By the name of the paper, or by ours."""

SINGLE: Searchers = {
    "RS": {"type": "random"},
    "BO_EI_M": {"type": "gp_ei", "kernel": "matern", **UNFITTED},
    "BO_EI_R": {"type": "gp_ei", "kernel": "rbf", **UNFITTED},
    "GB_EI_M": {"type": "graph_ei", "kernel": "matern", **UNFITTED},
    "GB_EI_R": {"type": "graph_ei", "kernel": "rbf", **UNFITTED},
    "GB_EIF_M": {"type": "graph_eif", "kernel": "matern"},
    "GB_EIF_R": {"type": "graph_eif", "kernel": "rbf"},
    "gp_ei, prior_mean 0": {"type": "gp_ei", "prior_mean": 0.0},
    "gp_ei": {"type": "gp_ei"},
    "graph_ei": {"type": "graph_ei"},
}
FRONT: Searchers = {
    "RS": {"type": "random"},
    "BO_M": {"type": "gp_ehvi", "kernel": "matern", **UNFITTED},
    "BO_R": {"type": "gp_ehvi", "kernel": "rbf", **UNFITTED},
    "GB_M": {"type": "graph_ehvi", "kernel": "matern", **UNFITTED},
    "GB_R": {"type": "graph_ehvi", "kernel": "rbf", **UNFITTED},
    "gp_ehvi": {"type": "gp_ehvi"},
    "graph_ehvi": {"type": "graph_ehvi"},
}

Cells = Tuple[str, str, str]

PAPER: Dict[str, Dict[str, Cells]] = {
    "zh-en": {
        "RS": ("61±34", "14±11", ".26±.25"),
        "BO_EI_M": ("29±19", "13±9", ".24±.24"),
        "BO_EI_R": ("24±15", "11±8", ".22±.26"),
        "GB_EI_M": ("84±15", "13±8", ".35±.21"),
        "GB_EI_R": ("86±15", "12±7", ".33±.20"),
        "GB_EIF_M": ("19±21", "8±5", ".11±.17"),
        "GB_EIF_R": ("13±20", "6±4", ".06±.15"),
    },
    "ru-en": {
        "RS": ("79±47", "20±17", ".42±.29"),
        "BO_EI_M": ("41±19", "26±17", ".51±.36"),
        "BO_EI_R": ("40±26", "20±13", ".44±.37"),
        "GB_EI_M": ("50±34", "18±17", ".35±.25"),
        "GB_EI_R": ("51±32", "18±17", ".35±.28"),
        "GB_EIF_M": ("32±18", "22±13", ".46±.31"),
        "GB_EIF_R": ("28±17", "17±12", ".33±.30"),
    },
    "ja-en": {
        "RS": ("71±43", "16±15", ".40±.24"),
        "BO_EI_M": ("27±17", "16±15", ".39±.45"),
        "BO_EI_R": ("20±11", "13±9", ".33±.44"),
        "GB_EI_M": ("23±7", "6±3", ".14±.11"),
        "GB_EI_R": ("21±6", "6±3", ".10±.12"),
        "GB_EIF_M": ("13±4", "6±2", ".01±.04"),
        "GB_EIF_R": ("13±3", "6±2", ".01±.05"),
    },
    "en-ja": {
        "RS": ("71±46", "12±10", ".71±.37"),
        "BO_EI_M": ("60±29", "15±17", ".86±.60"),
        "BO_EI_R": ("62±36", "13±12", ".79±.58"),
        "GB_EI_M": ("22±20", "11±11", ".42±.57"),
    },
    "sw-en": {
        "RS": ("334±201", "186±152", "2.45±.97"),
        "BO_EI_M": ("33±17", "29±17", "1.60±1.41"),
        "BO_EI_R": ("55±47", "33±24", "1.42±1.33"),
        "GB_EI_M": ("63±37", "62±36", "3.56±.95"),
    },
    "so-en": {
        "RS": ("301±161", "39±39", ".63±.32"),
        "BO_EI_M": ("65±62", "19±21", ".41±.36"),
        "BO_EI_R": ("52±70", "13±11", ".24±.30"),
        "GB_EI_M": ("187±99", "61±28", "1.17±.44"),
    },
}
"""Table 3: ftb, ftc and fb by language pair and method."""

PAPER_FRONT: Dict[str, Dict[str, Cells]] = {
    "zh-en": {
        "RS": ("30±24", "88±22", "1.3±.8"),
        "BO_M": ("24±16", "81±16", "1.7±.7"),
        "BO_R": ("20±13", "75±15", "1.8±.5"),
        "GB_M": ("24±16", "85±16", "1.8±.6"),
        "GB_R": ("24±15", "90±12", "1.7±.6"),
    },
    "ru-en": {
        "RS": ("33±26", "139±28", "1.3±.9"),
        "BO_M": ("16±14", "80±26", "2.4±.9"),
        "BO_R": ("17±15", "84±32", "2.4±1.0"),
        "GB_M": ("17±14", "102±30", "1.9±.9"),
        "GB_R": ("17±12", "103±30", "2.0±.9"),
    },
    "ja-en": {
        "RS": ("21±18", "129±20", "1.7±1.0"),
        "BO_M": ("17±13", "77±28", "3.3±1.3"),
        "BO_R": ("18±14", "94±32", "2.8±1.2"),
        "GB_M": ("16±12", "103±21", "2.4±1.1"),
        "GB_R": ("19±12", "107±20", "2.2±1.0"),
    },
    "en-ja": {
        "RS": ("17±16", "150±17", "2.5±1.4"),
        "BO_M": ("15±10", "100±34", "4.6±1.7"),
        "BO_R": ("17±13", "93±30", "4.3±2.0"),
        "GB_M": ("17±13", "121±28", "4.0±1.5"),
        "GB_R": ("17±14", "119±24", "3.6±1.5"),
    },
    "sw-en": {
        "RS": ("54±51", "719±47", "3.4±1.7"),
        "BO_M": ("26±20", "344±201", "12.0±2.8"),
        "BO_R": ("28±27", "454±153", "10.0±2.2"),
        "GB_M": ("59±75", "469±198", "7.8±4.3"),
        "GB_R": ("58±75", "509±193", "7.4±4.1"),
    },
    "so-en": {
        "RS": ("88±73", "534±55", "2.1±1.3"),
        "BO_M": ("30±21", "321±113", "5.1±1.2"),
        "BO_R": ("31±25", "399±129", "4.7±1.4"),
        "GB_M": ("61±63", "447±99", "2.9±1.4"),
        "GB_R": ("66±58", "426±102", "2.9±1.4"),
    },
}
"""Table 4: fto, fta and fbp."""


@dataclass(frozen=True)
class PaperTable:
    """One of the paper's two tables."""

    title: str
    objectives: Tuple[str, ...]
    methods: Searchers
    paper: Mapping[str, Mapping[str, Cells]]

    def protocol(self, pair: str) -> Protocol:
        if len(self.objectives) == 1:
            return Protocol(tolerance=TOLERANCES.get(pair, 0.5), budget=BUDGET)
        return Protocol(budget=FRONT_BUDGETS.get(pair, FRONT_BUDGET))


TABLES = (
    PaperTable("Table 3: the best BLEU", ("dev_bleu",), SINGLE, PAPER),
    PaperTable("Table 4: the front of BLEU and seconds", ("dev_bleu", "-dev_gpu_time"), FRONT, PAPER_FRONT),
)


def cells(table: PaperTable, found: SearchTable, method: str, num_trials: int) -> List[str]:
    """One method on one language pair: every measure, with the paper's in brackets.

    Raises:
        RuntimeError: where simulated random search is far from the exact one.
    """
    protocol = table.protocol(found.name)
    measured = Lookup(found, build_searcher(table.methods[method]), protocol, SEED).run(num_trials)
    if method == "RS":
        _check(measured, found, protocol)
    papers = table.paper.get(found.name, {}).get(method, ("",) * 3)
    return [
        f"{_cell(measure, measured.mean_and_sd(measure))}{f' ({paper})' if paper else ''}"
        for measure, paper in zip(measured.values, papers, strict=True)
    ]


def _check(measured: Measured, found: SearchTable, protocol: Protocol) -> None:
    for measure, (mean, sd) in exact_random_search(found, protocol).items():
        values = measured.values[measure]
        if abs(values.mean() - mean) > STANDARD_ERRORS * sd / np.sqrt(len(values)):
            raise RuntimeError(f"{found.name}: random search has the {measure} {values.mean():.3f}, not {mean:.3f}.")


def _cell(measure: str, moments: Tuple[float, float]) -> str:
    digits = {"fb": 2, "fbp": 1}.get(measure, 0)
    return "±".join(f"{moment:.{digits}f}" for moment in moments)


def exact_cells(table: PaperTable, found: SearchTable) -> List[str]:
    exact = exact_random_search(found, table.protocol(found.name))
    return [_cell(measure, moments) for measure, moments in exact.items()]


def rows(table: PaperTable, found: Sequence[SearchTable], args: argparse.Namespace) -> Iterator[Sequence[object]]:
    """A row for each method, with the measures of all language pairs."""
    yield "RS, exactly", *(cell for pair in found for cell in exact_cells(table, pair))
    for method in table.methods:
        if re.search(args.only, method):
            yield method, *(cell for pair in found for cell in cells(table, pair, method, args.trials))


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
    for number, table in enumerate(TABLES, start=3):
        if args.table not in (None, number):
            continue
        found = [read_files(args.data / pair, table.objectives) for pair in pairs]
        measures = exact_random_search(found[0], table.protocol(found[0].name))
        headings = [f"{pair.name} {measure}" for pair in found for measure in measures]
        print_table(("method", *headings), rows(table, found, args), title=f"{table.title}, ours (the paper's)")


if __name__ == "__main__":
    main()
