"""The FIESTA paper's tables 2 and 3 and its figures 3 and 4 from a table of scores: ours beside theirs.

    python scripts/reproduce_paper.py fiesta_tdsa_test_f1.json --output reproduced

Tables are printed, as Markdown, and kept in `reproduced/tables.md`; figures are PNG files beside it. Given the
directory of a selection in place of the table, it draws figure 3 of that selection.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Sequence, Tuple

import numpy as np
from scipy.stats import gaussian_kde

from fiesta_allennlp import replay
from fiesta_allennlp.reports.results import SelectionResult
from fiesta_allennlp.tables.settings import ReplaySettings
from fiesta_allennlp.tables.simulator import Outlook, wilson_interval
from fiesta_allennlp.tables.sources import restrict
from fiesta_allennlp.tables.table import make_score_table
from fiesta_allennlp.tables.table_reader import read_rows

sys.path.append(str(Path(__file__).parent / "benchmarks"))

from common import EVALUATIONS_PER_SPLIT, MODELS_8, MODELS_12, make_parser, print_table

SEED = 20190801
"""The same for all rows, so that every strategy meets the same scores."""

CONFIDENCES = (0.95, 0.90, 0.80)
BUDGETS = (48, 96, 144, 192, 240, 288)

PAPER = {
    ("table 2", "non-adaptive"): ("48 / 281 / 1552, 100 %", "40 / 206 / 1192, 99 %", "32 / 128 / 608, 96 %"),
    ("table 2", "TTTS"): ("27 / 130 / 518, 100 %", "24 / 96 / 460, 99 %", "24 / 65 / 274, 97 %"),
    ("table 3", "BTS, batches of 4"): ("28 / 282 / 1392, 100 %", "24 / 144 / 520, 100 %", "24 / 76 / 280, 98 %"),
    ("table 3", "BTS, batches of 8"): ("88 / 315 / 1128, 100 %", "56 / 178 / 784, 100 %", "32 / 106 / 352, 99 %"),
}
"""Least / mean / most evaluations and how many were correct, at the three confidences."""

STRATEGIES: Dict[Tuple[str, str], Dict[str, Any]] = {
    ("table 2", "non-adaptive"): {"strategy": "non_adaptive_fc"},
    ("table 2", "TTTS"): {"strategy": "ttts"},
    ("table 3", "BTS, batches of 4"): {"strategy": "bts", "batch_size": 4},
    ("table 3", "BTS, batches of 8"): {"strategy": "bts", "batch_size": 8},
}
"""The strategy of each. The package's default stands below them, with the same batch sizes."""

PROCEDURE = {"belief": "student_t", "splits": "independent", "stop": "bayesian"}
UNLIMITED: Dict[str, Any] = {"with_replacement": True, "max_evaluations": 10_000}
"""The paper's runs have no limit (its longest takes 1552 evaluations), and 500 scores of a candidate can run out."""

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
"""Of Okabe and Ito, which colour-blind people can tell apart."""

TABLE_HEADINGS = ("table", "procedure", "confidence", "paper: min / mean / max, correct", "here")
FIGURE_3_HEADINGS = ("candidate", "scores", "mean", "sd", "min", "median", "max")
FIGURE_4_HEADINGS = ("splits", "strategy", *(f"budget {budget}" for budget in BUDGETS))


@dataclass(frozen=True)
class Reproduction:
    """Where the scores are, and how the replays are made."""

    scores: Path
    output: Path
    repetitions: int
    processes: int

    def outlook(self, candidates: Sequence[str] = MODELS_8, **options: Any) -> Outlook:
        """Run one replay. What `options` leave out is the package's default."""
        result = replay(
            self.scores,
            candidates=candidates,
            evaluations_per_split=EVALUATIONS_PER_SPLIT,
            repetitions=self.repetitions,
            processes=self.processes,
            seed=SEED,
            **options,
        )
        if result.interrupted:
            raise KeyboardInterrupt
        return result.default

    def tables(self) -> Iterable[Tuple[str, ...]]:
        """The rows of tables 2 and 3, one text for each of `TABLE_HEADINGS`."""
        for (table, name), options in STRATEGIES.items():
            for confidence, paper in zip(CONFIDENCES, PAPER[table, name], strict=True):
                outlook = self.outlook(confidence=confidence, **options, **PROCEDURE, **UNLIMITED)
                yield table, name, f"{confidence}", paper, in_short(outlook)
        for batch_size in (1, 4, 8):
            for confidence in CONFIDENCES:
                outlook = self.outlook(confidence=confidence, batch_size=batch_size)
                yield "-", f"the default, batches of {batch_size}", f"{confidence}", "-", in_short(outlook)

    def figure_4(self) -> Iterable[Tuple[str, str, List[float]]]:
        """The share of correct decisions at each of `BUDGETS`, by splits and strategy."""
        for splits in ("independent", "shared"):
            for strategy in ("non_adaptive_fb", "sequential_halving"):
                options = {"strategy": strategy, "splits": splits}
                yield splits, strategy, [self.outlook(MODELS_12, budget=b, **options).correct for b in BUDGETS]


def in_short(outlook: Outlook) -> str:
    """As the paper's tables: least / mean / most evaluations and the share of correct decisions."""
    runs = outlook.runs
    return f"{runs.min:.0f} / {runs.mean:.0f} / {runs.max:.0f}, {outlook.correct:.0%}".replace("%", " %")


def distributions(scores: Mapping[str, Sequence[float]]) -> List[Tuple[str, ...]]:
    """The rows of figure 3 as a table, best mean first."""
    rows = []
    for name in by_mean(scores):
        values = np.array(scores[name])
        numbers = (
            values.mean(),
            values.std(ddof=1) if len(values) > 1 else np.nan,
            values.min(),
            np.median(values),
            values.max(),
        )
        rows.append((name, str(len(values)), *(f"{number:.4f}" for number in numbers)))
    return rows


def by_mean(scores: Mapping[str, Sequence[float]]) -> List[str]:
    """The candidates that have scores, best mean first."""
    return sorted((name for name in scores if len(scores[name])), key=lambda name: -float(np.mean(scores[name])))


def draw_figure_3(scores: Mapping[str, Sequence[float]], metric: str, path: Path) -> None:
    """The distribution of every candidate's scores, with its mean; every score too, where they are few."""
    from matplotlib.figure import Figure

    names = by_mean(scores)[::-1]
    figure = Figure(figsize=(7, 1 + 0.4 * len(names)), layout="constrained")
    axes = figure.add_subplot()
    for position, name in enumerate(names):
        values = np.array(scores[name])
        if len(np.unique(values)) > 2:
            grid = np.linspace(values.min(), values.max(), 200)
            density = gaussian_kde(values)(grid)
            half = 0.4 * density / density.max()
            axes.fill_between(grid, position - half, position + half, color="C0", alpha=0.4, linewidth=0)
        if len(values) <= 50:
            axes.plot(values, np.full(len(values), position), "|", color="0.3", markersize=10)
        axes.plot(values.mean(), position, "o", color="black", markersize=5)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel(f"{metric}; the dot is the mean")
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=150)


def draw_figure_4(curves: Sequence[Tuple[str, str, List[float]]], repetitions: int, path: Path) -> None:
    """The share of correct decisions over the budget, with its 95 % Wilson interval."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    for color, (splits, strategy, shares) in zip(COLORS, curves, strict=True):
        ends = [wilson_interval(round(share * repetitions), repetitions) for share in shares]
        low, high = zip(*ends, strict=True)
        style, marker = ("--" if splits == "shared" else "-"), ("o" if strategy == "sequential_halving" else "s")
        axes.plot(BUDGETS, shares, style, color=color, marker=marker, label=f"{strategy}, {splits} splits")
        axes.fill_between(BUDGETS, low, high, color=color, alpha=0.15, linewidth=0)
    axes.set_xticks(BUDGETS)
    axes.set_xlabel("budget: trainings of 12 candidates")
    axes.set_ylabel("share of correct decisions")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="lower right")
    figure.savefig(path, dpi=150)


@dataclass(frozen=True)
class Printer:
    """Prints Markdown tables row by row, and keeps them in a file."""

    path: Path

    def say(self, text: str) -> None:
        print(text, flush=True)
        with self.path.open("a", encoding="utf-8") as out:
            out.write(text + "\n")

    def table(self, title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        print_table(headings, rows, title=title, write=self.say)


def reproduce_selection(directory: Path, output: Path, printer: Printer) -> None:
    """Figure 3 of a selection that was made here."""
    result = SelectionResult.read(directory)
    scores = result.scores()
    printer.table(f"Figure 3: {result.metric} in {directory}", FIGURE_3_HEADINGS, distributions(scores))
    draw_figure_3(scores, result.metric, output / "figure3.png")


def reproduce(reproduction: Reproduction, printer: Printer) -> None:
    output = reproduction.output
    settings = ReplaySettings(evaluations_per_split=EVALUATIONS_PER_SPLIT)
    table = make_score_table(read_rows(reproduction.scores, settings))
    restrict(table, MODELS_12)
    printer.table("Figure 3: the released scores", FIGURE_3_HEADINGS, distributions(table.scores))
    draw_figure_3(table.scores, "test macro-F1", output / "figure3.png")
    printer.table("Tables 2 and 3: fixed confidence, 8 candidates", TABLE_HEADINGS, reproduction.tables())
    curves = list(reproduction.figure_4())
    cells = [(splits, strategy, *(f"{share:.3f}" for share in shares)) for splits, strategy, shares in curves]
    printer.table("Figure 4: share of correct decisions, fixed budget, 12 candidates", FIGURE_4_HEADINGS, cells)
    draw_figure_4(curves, reproduction.repetitions, output / "figure4.png")


def main() -> None:
    parser = make_parser(__doc__, repetitions=500)
    parser.add_argument("source", type=Path, help="the table of scores (.json), or the directory of a selection")
    parser.add_argument("--output", type=Path, required=True, help="directory for the figures and tables")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count(), help="parallel processes (default: one per core)"
    )
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    printer = Printer(args.output / "tables.md")
    printer.path.unlink(missing_ok=True)
    if args.source.is_dir():
        reproduce_selection(args.source, args.output, printer)
    else:
        reproduce(Reproduction(args.source, args.output, args.repetitions, args.processes), printer)
    print(f"\nThe tables are in {printer.path}, the figures beside it.")


if __name__ == "__main__":
    main()
