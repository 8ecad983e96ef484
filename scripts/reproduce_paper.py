"""The FIESTA paper's tables and figures from the scores that were released with it: ours beside theirs.

    python scripts/reproduce_paper.py fiesta_tdsa_test_f1.json --output reproduced
    python scripts/reproduce_paper.py --table

Tables are printed as Markdown and kept in `reproduced/tables.md`, with the figures and a line for each outcome beside
it. `--results scripts/benchmarks/results` appends these lines to the recorded ones, of which `--table` makes the tables
of `reproduce.md`.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

import numpy as np
from scipy.stats import gaussian_kde

from fiesta_allennlp import replay
from fiesta_allennlp.tables.simulation.planning import ScorePreset
from fiesta_allennlp.tables.simulation.score_sources import ScoreSource, ScoreTable
from fiesta_allennlp.tables.simulation.simulator import prepare_simulator, wilson_interval
from fiesta_allennlp.tables.table_settings import ReplaySettings

sys.path.append(str(Path(__file__).parent / "benchmarks"))

from common import (
    MODELS_8,
    MODELS_12,
    REPRODUCTIONS,
    RESULTS,
    PageTables,
    add_page_options,
    drawing,
    last_line,
    make_parser,
    read_final_rows,
    recorded,
    released_table,
    restricted,
    rule_id,
    share_text,
    show,
    table_lines,
)

SEED = 20190801
"""The same for all rows, so that every strategy meets the same scores."""

CONFIDENCES = (0.95, 0.90, 0.80)
BUDGETS = (48, 96, 144, 192, 240, 288)
PAPER_PROCEDURE: Dict[str, Any] = {"preset": "paper", "with_replacement": True, "max_evaluations": 10_000}
"""The paper's runs have no limit (its longest takes 1552 evaluations), and 500 scores of a candidate can run out."""

SYNTHETIC = ScorePreset(
    "figure 2", {"0": 0.65, "1": 0.69, "2": 0.69, "3": 0.70, "4": 0.71}, split_sd=0.0, noise_sd=0.01
)
"""The synthetic scores of figure 2. Their means and sd stand in the notebook of the authors."""

PATH = RESULTS / "reproduce_paper.csv"
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9", "#999999")
"""Of Okabe and Ito, which colour-blind people can tell apart."""


@dataclass(frozen=True)
class Procedure:
    """A procedure of a table or a figure, repeated with each of its goals: confidences or budgets."""

    table: str
    name: str
    options: Mapping[str, Any]
    goals: Sequence[float] = CONFIDENCES
    goal: str = "confidence"
    candidates: Sequence[str] = MODELS_8


PAPER_ROWS: Mapping[Tuple[str, str], Mapping[str, Any]] = {
    ("table 2", "non-adaptive"): {"strategy": "non_adaptive_fc"},
    ("table 2", "TTTS"): {"strategy": "ttts"},
    ("table 3", "BTS, batches of 4"): {"strategy": "bts", "batch_size": 4},
    ("table 3", "BTS, batches of 8"): {"strategy": "bts", "batch_size": 8},
}
"""Options of each procedure of the paper, by table and name."""

PAPER_NUMBERS = {
    "non-adaptive": ((48, 281, 1552, 1.0), (40, 206, 1192, 0.99), (32, 128, 608, 0.96)),
    "TTTS": ((27, 130, 518, 1.0), (24, 96, 460, 0.99), (24, 65, 274, 0.97)),
    "BTS, batches of 4": ((28, 282, 1392, 1.0), (24, 144, 520, 1.0), (24, 76, 280, 0.98)),
    "BTS, batches of 8": ((88, 315, 1128, 1.0), (56, 178, 784, 1.0), (32, 106, 352, 0.99)),
}
"""Least, mean and most runs, and the share that was correct, at each of `CONFIDENCES`."""

PROCEDURES = (
    *(Procedure(*key, {**PAPER_PROCEDURE, **options}) for key, options in PAPER_ROWS.items()),
    Procedure("default", "1", {}),
    *(Procedure("default", f"{size}", {"batch_size": size}, CONFIDENCES[:1]) for size in (4, 8)),
    *(
        Procedure("figure 4", f"{splits}, {name}", {"strategy": key, "splits": splits}, BUDGETS, "budget", MODELS_12)
        for splits in ("independent", "shared")
        for name, key in (("non-adaptive", "non_adaptive_fb"), ("sequential halving", "sequential_halving"))
    ),
)


@dataclass(frozen=True)
class Measured:
    """The outcome of many selections of a procedure: their runs, and the share that was correct."""

    rule: str
    table: str
    procedure: str
    goal: float
    repetitions: int
    seed: int
    least: float
    mean: float
    low: float
    high: float
    most: float
    rounds: float
    correct: float

    @property
    def interval(self) -> Tuple[float, float]:
        """Return the 95% interval of the share that was correct."""
        return wilson_interval(round(self.correct * self.repetitions), self.repetitions)


class Traced(NamedTuple):
    """A candidate after a round of one selection."""

    runs: int
    mean: float
    prob_best: float


Trace = List[Dict[str, Traced]]
"""The candidates after each round from which P(best) is known."""


def measure_all(released: ScoreTable, repetitions: int) -> Iterator[Measured]:
    """Repeat selections by each procedure. What the procedure leaves out is the package's default."""
    for procedure in PROCEDURES:
        scores = restricted(released, procedure.candidates)
        for goal in procedure.goals:
            options = {**procedure.options, procedure.goal: goal}
            result = replay(scores, repetitions=repetitions, seed=SEED, **options)
            if result.interrupted:
                raise KeyboardInterrupt
            runs, rounds, correct = result.default.runs, round(result.default.mean_rounds, 2), result.default.correct
            show(f"{procedure.table}, {procedure.name}, {goal:g}: {runs.mean:.1f} runs, {correct:.3f} correct")
            numbers = (runs.min, round(runs.mean, 2), runs.low, runs.high, runs.max, rounds, correct)
            yield Measured(rule_id(), procedure.table, procedure.name, goal, repetitions, SEED, *numbers)


def lines_of(measured: Sequence[Measured], *tables: str) -> Iterator[Tuple[str, List[Measured]]]:
    """Yield the name of each procedure of these tables, and the last line for each of its goals."""
    for procedure in PROCEDURES:
        if procedure.table in tables:
            key = {"table": procedure.table, "procedure": procedure.name}
            yield procedure.name, [last_line(measured, PATH, **key, goal=goal) for goal in procedure.goals]


def follow(source: ScoreSource, **options: Any) -> Trace:
    """Follow one selection, round by round."""
    simulator = prepare_simulator(ReplaySettings.from_layers({"seed": SEED, **options}), source)
    trace: Trace = []
    for history in simulator.iterate_histories(simulator.draw(0), 0):
        scores = {name: history.scores(name) for name in history.candidates}
        if prob_best := simulator.strategy.recommend(history).prob_best:
            trace.append({name: Traced(len(scores[name]), scores[name].mean(), p) for name, p in prob_best.items()})
    return trace


Rows = List[Tuple[str, ...]]


def table_1(trace: Trace) -> Rows:
    """The rounds of sequential halving, and the new runs of each candidate that was left."""
    rows: Rows = [("round", "candidates", "new runs of each", "the paper's")]
    known: Mapping[str, int] = {}
    for number, (candidates, paper) in enumerate(zip(trace, ("2", "4"), strict=True), 1):
        new = {name: line.runs - known.get(name, 0) for name, line in candidates.items()}
        names = [name for name, runs in new.items() if runs]
        rows.append((str(number), ", ".join(f"`{name}`" for name in names), str(max(new.values())), paper))
        known = {name: line.runs for name, line in candidates.items()}
    best = max(names, key=lambda name: candidates[name].mean)
    return [*rows, ("output", f"`{best}`", "", "")]


def fixed_confidence(measured: Sequence[Measured]) -> Rows:
    """Tables 2 and 3: mean, least and most runs, and the share that was correct."""
    rows: Rows = [("procedure", "confidence", "paper: mean (min-max), picked the best", "here")]
    for name, lines in lines_of(measured, "table 2", "table 3"):
        for line in lines:
            paper = PAPER_NUMBERS[name][CONFIDENCES.index(line.goal)]
            theirs, ours = (
                f"{mean:.0f} ({least:.0f}-{most:,.0f}), {correct:.0%}"
                for least, mean, most, correct in (paper, (line.least, line.mean, line.most, line.correct))
            )
            rows.append((name, f"{line.goal:.2f}", theirs, ours))
    return rows


def default(measured: Sequence[Measured]) -> Rows:
    headings = (
        "the default, batches of",
        "confidence",
        "runs, mean (5-95%)",
        "rounds",
        "picked the best (95% interval)",
    )
    rows: Rows = [headings]
    for name, lines in lines_of(measured, "default"):
        for line in lines:
            runs = f"{line.mean:.1f} ({line.low:.0f}-{line.high:.0f})"
            rows.append((name, f"{line.goal:.2f}", runs, f"{line.rounds:.1f}", share_text(line.correct, line.interval)))
    return rows


AUTHORS_RUN = {"0": (5, 0.001), "1": (8, 0.004), "2": (9, 0.002), "3": (10, 0.002), "4": (19, 0.991)}
"""Runs and P(best) at the end of the one selection that the authors' notebook prints."""


def figure_2(trace: Trace) -> Rows:
    """Runs and P(best) of each candidate: after the starting runs, and at the end."""
    rows: Rows = [("runs", *(f"mean {mean:.2f}" for mean in SYNTHETIC.means.values()))]
    for lines in (trace[0].values(), trace[-1].values()):
        rows.append((str(sum(line.runs for line in lines)), *(f"{line.runs}, {line.prob_best:.3f}" for line in lines)))
    total = sum(runs for runs, _ in AUTHORS_RUN.values())
    return [*rows, (f"the authors' {total}", *(f"{runs}, {chance:.3f}" for runs, chance in AUTHORS_RUN.values()))]


def figure_4(measured: Sequence[Measured]) -> Rows:
    rows: Rows = []
    for name, lines in lines_of(measured, "figure 4"):
        rows = rows or [("splits, strategy", *(f"{line.goal:.0f} runs" for line in lines))]
        rows.append((name, *(f"{line.correct:.3f}" for line in lines)))
    return rows


MAKERS: Mapping[str, Callable[[Sequence[Measured]], Rows]] = {
    "tables 2 and 3": fixed_confidence,
    "default": default,
    "figure 4": figure_4,
}
TABLES = PageTables(
    f"paper: (?P<title>{'|'.join(MAKERS)})",
    lambda match: MAKERS[match["title"]](read_final_rows(PATH, Measured)),
    [REPRODUCTIONS],
)


def distributions(scores: Mapping[str, Sequence[float]]) -> Rows:
    """The rows of figure 3 as a table, best mean first."""
    rows: Rows = [("candidate", "scores", "mean", "sd", "min", "median", "max")]
    for name in by_mean(scores):
        values = np.array(scores[name])
        numbers = (values.mean(), values.std(ddof=1), values.min(), np.median(values), values.max())
        rows.append((name, str(len(values)), *(f"{number:.4f}" for number in numbers)))
    return rows


def by_mean(scores: Mapping[str, Sequence[float]]) -> List[str]:
    """The candidates, best mean first."""
    return sorted(scores, key=lambda name: -float(np.mean(scores[name])))


def draw_figure_3(scores: Mapping[str, Sequence[float]], path: Path) -> None:
    """The distribution of every candidate's scores, with its mean."""
    names = by_mean(scores)[::-1]
    with drawing(path, 7, 1 + 0.4 * len(names)) as figure:
        axes = figure.add_subplot()
        for position, name in enumerate(names):
            values = np.array(scores[name])
            grid = np.linspace(values.min(), values.max(), 200)
            density = gaussian_kde(values)(grid)
            half = 0.4 * density / density.max()
            axes.fill_between(grid, position - half, position + half, color="C0", alpha=0.4, linewidth=0)
            axes.plot(values.mean(), position, "o", color="black", markersize=5)
        axes.set_yticks(range(len(names)), names)
        axes.set_xlabel("test macro-F1; the dot is the mean")
        axes.grid(axis="x", alpha=0.3)


def draw_figure_2(traces: Mapping[str, Trace], path: Path) -> None:
    """P(best) as areas and the share of the runs as lines, over the runs of a selection."""
    with drawing(path, 9, 3.5) as figure:
        for axes, (title, rounds) in zip(figure.subplots(1, len(traces), sharey=True), traces.items(), strict=True):
            runs = np.array([[line.runs for line in row.values()] for row in rounds])
            chances = np.array([[line.prob_best for line in row.values()] for row in rounds])
            total = runs.sum(axis=1)
            axes.stackplot(total, chances.T, colors=COLORS, alpha=0.3, labels=list(rounds[0]))
            for number, share in enumerate((runs / total[:, None]).T):
                axes.plot(total, share, color=COLORS[number], linewidth=1.5)
            axes.set(xlim=(total[0], total[-1]), ylim=(0, 1), title=title, xlabel="runs")
            axes.legend(frameon=False, fontsize="small", loc="upper left")
        figure.axes[0].set_ylabel("P(best) (areas), share of the runs (lines)")


def draw_figure_4(curves: Mapping[str, Sequence[Measured]], path: Path) -> None:
    """The share of correct decisions over the budget, with its 95% Wilson interval."""
    with drawing(path, 7, 4) as figure:
        axes = figure.add_subplot()
        for color, marker, (name, lines) in zip(COLORS, "soso", curves.items(), strict=False):
            budgets, shares = [line.goal for line in lines], [line.correct for line in lines]
            low, high = zip(*(line.interval for line in lines), strict=True)
            style = "--" if name.startswith("shared") else "-"
            axes.plot(budgets, shares, style, color=color, marker=marker, label=name)
            axes.fill_between(budgets, low, high, color=color, alpha=0.15, linewidth=0)
        axes.set(xticks=budgets, xlabel="budget: runs of 12 candidates", ylabel="share of correct decisions")
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, loc="lower right")


def main() -> None:
    parser = make_parser(__doc__, repetitions=500)
    parser.add_argument("source", type=Path, nargs="?", help="the table of scores (.json)")
    add_page_options(parser)
    args = parser.parse_args()
    if args.table:
        return TABLES.write()
    if args.source is None:
        parser.error("pass the table of scores, or --table")
    args.output.mkdir(parents=True, exist_ok=True)
    released, path = released_table(args.source), (args.results or args.output) / PATH.name
    measured = list(recorded(measure_all(released, args.repetitions), path))
    four, eight = restricted(released, ("tdlstm", "atae", "ian", "lstm")), restricted(released, MODELS_8)
    halving = follow(four, splits="independent", strategy="sequential_halving", budget=16, batch_size=16)
    synthetic = follow(SYNTHETIC, preset="paper", confidence=0.99, max_evaluations=1000)
    traces = {"synthetic": synthetic, "released scores": follow(eight, confidence=0.95, **PAPER_PROCEDURE)}
    draw_figure_2(traces, args.output / "figure2.png")
    draw_figure_3(released.scores, args.output / "figure3.png")
    draw_figure_4(dict(lines_of(measured, "figure 4")), args.output / "figure4.png")
    tables = {"table 1": table_1(halving), **{title: make(measured) for title, make in MAKERS.items()}}
    tables.update({"figure 2": figure_2(synthetic), "figure 3": distributions(released.scores)})
    text = "\n".join(line for title, (head, *rows) in tables.items() for line in table_lines(head, rows, title))
    (args.output / "tables.md").write_text(text + "\n", encoding="utf-8")
    show(f"{text}\n\nThe tables are in {args.output / 'tables.md'}, the figures beside it.")


if __name__ == "__main__":
    main()
