"""Figure 1 of the FIESTA paper: two named-entity taggers that differ in their character encoder, and selections over
their scores.

    python scripts/reproduce_fiesta_ner.py ner_dataset_and_random_seeds.json --output reproduced
    python scripts/reproduce_fiesta_ner.py --synthetic 20 --output reproduced --repetitions 25

The file is `results/ner_dataset_and_random_seeds.json` of the repository apmoore1/NER: a list of 150 splits of
CoNLL-2003, each a list of ten runs `[dev F1, test F1, "cnn" or "lstm"]`. The figure shows all runs and those of the
first three splits.

`--synthetic N` draws N such files from the means and standard deviations of the released one, with unconverged runs of
no tagger, of the worse one as in the released file, and of the better one, and repeats selections over each of them. It
needs no file. `--table` writes the table of `reproduce.md` from the recorded lines, to which `--results
scripts/benchmarks/results` appends.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

import numpy as np
from scipy.stats import median_abs_deviation

from fiesta_allennlp import replay

sys.path.append(str(Path(__file__).parent / "benchmarks"))

from common import (
    REPRODUCTIONS,
    RESULTS,
    PageTables,
    add_page_options,
    drawing,
    last_line,
    make_parser,
    print_table,
    read_final_rows,
    recorded,
    rule_id,
    share_of,
    split_table,
)

SEED = 20190801
TAGGERS = ("cnn", "lstm")
NUM_SEEDS = 5
NUM_SHOWN = 3
"""Splits of the figure."""

NUM_SPLITS = 150

UNCONVERGED_SDS = 8
"""A run did not converge if it lies so many robust standard deviations below the median of its tagger."""

MEANS = {"cnn": 0.9424, "lstm": 0.9439}
SEED_SDS = {"cnn": 0.0036, "lstm": 0.0022}
SPLIT_SDS = {"cnn": 0.0031, "lstm": 0.0029}
SPLIT_CORRELATION = 0.76
DROPS = (0.152, 0.128, 0.104, 0.050)
"""Of the released test F1: means and standard deviations within and between splits of the runs that converged, the
correlation of the taggers' means on a split, and how far the four others lie below the mean of theirs."""

PROCEDURE = "the default"
UNCONVERGED_LABELS: Mapping[str, Sequence[str]] = {
    "synthetic, all converge": (),
    "4 of 750 of the worse tagger do not": ("cnn",),
    "4 of 750 of the better tagger do not": ("lstm",),
}
"""The taggers with unconverged runs of each kind of synthetic file."""

FIGURE_HEADINGS = ("splits", "cnn", "lstm", "lstm - cnn")
REPLAY_HEADINGS = ("scores", "procedure", "mean runs", "picked the best (95% interval)", "wrong", "open")
PATH = RESULTS / "reproduce_fiesta_ner.csv"

Scores = Dict[str, np.ndarray]
"""Test F1 by tagger. Shape: `(num_splits, num_seeds)`."""


def parse_scores(splits: Sequence[Sequence[Sequence[Any]]]) -> Scores:
    """The test F1 of splits as in the file."""
    rows = {name: [[float(run[1]) for run in runs if run[2] == name] for runs in splits] for name in TAGGERS}
    return {name: np.array(of_tagger) for name, of_tagger in rows.items()}  # raises where the numbers differ


def draw_scores(seed: int, unconverged_taggers: Sequence[str]) -> Scores:
    """Draw normal scores. Runs at random places of some taggers do not converge."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=NUM_SPLITS)
    scores = {}
    for name in TAGGERS:
        own_effects = rng.normal(size=NUM_SPLITS)
        split = SPLIT_SDS[name] * (np.sqrt(SPLIT_CORRELATION) * shared + np.sqrt(1 - SPLIT_CORRELATION) * own_effects)
        scores[name] = MEANS[name] + split[:, None] + rng.normal(0, SEED_SDS[name], (NUM_SPLITS, NUM_SEEDS))
        positions = rng.choice(scores[name].size, len(DROPS), replace=False)
        if name in unconverged_taggers:
            scores[name].flat[positions] = MEANS[name] - np.array(DROPS)
    return scores


def are_unconverged(values: np.ndarray) -> np.ndarray:
    """Which runs of a tagger did not converge. Shape as the values'."""
    return values < np.median(values) - UNCONVERGED_SDS * median_abs_deviation(values, axis=None, scale="normal")


def figure_rows(scores: Scores) -> Iterator[Sequence[str]]:
    """Mean test F1 over all splits and on each of the first ones."""
    splits_by_label = {"all": slice(None), **{str(number): slice(number, number + 1) for number in range(NUM_SHOWN)}}
    for label, splits in splits_by_label.items():
        cnn, lstm = (float(scores[name][splits].mean()) for name in TAGGERS)
        yield label, f"{cnn:.4f}", f"{lstm:.4f}", f"{lstm - cnn:+.4f}"


def describe_scores(scores: Scores) -> str:
    """How often the means on a split, and single pairs of runs, put the LSTM first; and how many did not converge."""
    cnn, lstm = scores["cnn"], scores["lstm"]
    ahead = int((lstm.mean(axis=1) > cnn.mean(axis=1)).sum())
    pairs = float((lstm[:, :, None] > cnn[:, None, :]).mean())
    failed_cnn, failed_lstm = (int(are_unconverged(values).sum()) for values in (cnn, lstm))
    return (
        f"lstm leads on {ahead} of {len(cnn)} splits by the mean of their runs, and in {pairs:.0%} of single pairs on "
        f"one split. Runs that did not converge: {failed_cnn} of cnn, {failed_lstm} of lstm."
    )


def draw_figure(scores: Scores, path: Path) -> None:
    """Box plots of all runs, and the single runs on each of the first splits."""
    with drawing(path, 8, 3.5) as figure:
        axes = figure.subplots(1, 1 + NUM_SHOWN, sharey=True)
        for number, axis in enumerate(axes):
            splits = slice(None) if number == 0 else slice(number - 1, number)
            columns = [scores[name][splits].ravel() for name in TAGGERS]
            axis.boxplot(columns, tick_labels=TAGGERS, showfliers=number == 0, showmeans=True)
            if number:
                for position, values in enumerate(columns, 1):
                    axis.plot(np.full(len(values), position), values, "o", color="C0", alpha=0.5, markersize=4)
            axis.set_title("all splits" if number == 0 else f"split {number - 1}")
            axis.grid(axis="y", alpha=0.3)
        converged = np.concatenate([values[~are_unconverged(values)] for values in scores.values()])
        low, high = converged.min(), converged.max()
        axes[0].set(ylim=(low - 0.1 * (high - low), high + 0.1 * (high - low)), ylabel="test F1")


@dataclass(frozen=True)
class Measured:
    """The outcome of selections of a procedure over one kind of scores."""

    rule: str
    scores: str
    procedure: str
    seed: int
    selections: int
    mean_runs: float
    error: float
    correct: float
    wrong: float
    inconclusive: float

    @property
    def cells(self) -> Tuple[str, ...]:
        """One text for each of `REPLAY_HEADINGS`."""
        share = share_of(round(self.correct * self.selections), self.selections)
        runs = f"{self.mean_runs:.1f} ± {self.error:.1f}"
        return self.scores, self.procedure, runs, share, f"{self.wrong:.3f}", f"{self.inconclusive:.3f}"


def measure(label: str, number: int, repetitions: int) -> Measured:
    """Repeat selections over each of so many synthetic files of a kind."""
    outlooks = []
    for seed in range(number):
        scores = draw_scores(seed, UNCONVERGED_LABELS[label])
        content = {name: values.ravel().tolist() for name, values in scores.items()}
        source = split_table(content, NUM_SEEDS, f"table {seed}")
        outlooks.append(replay(source, repetitions=repetitions, seed=SEED).default)
    total, means = number * repetitions, [outlook.runs.mean for outlook in outlooks]
    shares = np.mean([(outlook.correct, outlook.wrong, outlook.open) for outlook in outlooks], axis=0)
    error = np.sqrt((np.mean([outlook.runs.sd**2 for outlook in outlooks]) + np.var(means)) / (total - 1))
    numbers = (round(float(value), 4) for value in (np.mean(means), error, *shares))
    return Measured(rule_id(), label, PROCEDURE, SEED, total, *numbers)


def _table() -> List[Tuple[str, ...]]:
    lines = read_final_rows(PATH, Measured)
    rows = [last_line(lines, PATH, scores=label, procedure=PROCEDURE).cells for label in UNCONVERGED_LABELS]
    return [REPLAY_HEADINGS, *rows]


TABLES = PageTables("ner", lambda match: _table(), [REPRODUCTIONS])


def main() -> None:
    parser = make_parser(__doc__, repetitions=500)
    parser.add_argument("scores", type=Path, nargs="?", help="ner_dataset_and_random_seeds.json")
    parser.add_argument("--synthetic", type=int, metavar="N", help="draw N files instead, each with --repetitions")
    add_page_options(parser)
    args = parser.parse_args()
    if args.table:
        return TABLES.write()
    if (args.scores is None) == (args.synthetic is None):
        parser.error("pass either SCORES.json or --synthetic N")
    args.output.mkdir(parents=True, exist_ok=True)
    if args.synthetic is not None:
        scores = draw_scores(0, ("cnn",))  # as in the released file
    else:
        scores = parse_scores(json.loads(args.scores.read_text(encoding="utf-8")))
    print_table(FIGURE_HEADINGS, figure_rows(scores), title="Figure 1: mean test F1")
    print(f"\n{describe_scores(scores)}")
    draw_figure(scores, args.output / "figure1.png")
    if args.synthetic is not None:
        lines = (measure(label, args.synthetic, args.repetitions) for label in UNCONVERGED_LABELS)
        rows = (line.cells for line in recorded(lines, (args.results or args.output) / PATH.name))
        print_table(REPLAY_HEADINGS, rows, title="Selections at confidence 0.95")


if __name__ == "__main__":
    main()
