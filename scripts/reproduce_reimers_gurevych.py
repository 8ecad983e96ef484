"""Tables 2, 3 and 5 of Reimers and Gurevych (EMNLP 2017) from the runs that were released with the paper, beside the
paper's figures, as Markdown.

    python scripts/reproduce_reimers_gurevych.py --data hyperparameter_results.csv.gz

The file is `hyperparameter_results.csv.gz` of the repository UKPLab/emnlp2017-bilstm-cnn-crf: a row for each of some
50,000 taggers. Two runs are of one configuration where they are equal in all columns but `NOT_SETTINGS`; seeds are not
recorded, so these are the runs that differ in the seed. Tasks that the file does not have are left out.
"""

import csv
import gzip
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterable, Iterator, List, Mapping, Sequence, Tuple

import numpy as np

sys.path.append(str(Path(__file__).parent / "benchmarks"))

from common import group_by, make_parser, print_table

TASKS = {
    "wsj_pos_500": "POS",
    "conll2000_chunking": "chunking",
    "conll2003_ner": "NER",
    "ace": "entities",
    "tempeval3": "events",
}
"""By the beginning of the column `Dataset`."""

NOT_SETTINGS = ("ID", "Backend", "Epochs", "OptimalEpoch", "Dev_F1", "Test_F1", "Max_Test_F1")

CHARACTERS = ("CharEmbeddings", "CharEmbeddingsSize", "CharFilterSize", "CharFilterLength", "CharLSTMSize")


@dataclass(frozen=True)
class Run:
    """One training. Scores are in points of 100."""

    task: str
    is_single_task: bool
    settings: Mapping[str, str]
    test: float

    def key(self, *, without: Sequence[str] = ()) -> Tuple[str, ...]:
        """Equal for runs of one configuration, whatever the columns `without` say."""
        return tuple(value for name, value in self.settings.items() if name not in without)


def read_runs(path: Path) -> Iterator[Run]:
    """Yield all runs of the file."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            settings = {name: value for name, value in row.items() if name not in NOT_SETTINGS}
            settings["Decoder"] = settings["Decoder"].strip("[']")
            task, is_single_task = TASKS[row["Dataset"].removesuffix(".pkl")], row["Setting"] == "SingleTask"
            yield Run(task, is_single_task, settings, 100 * float(row["Test_F1"]))


def compare_options(runs: Iterable[Run], column: str, options: Sequence[str], *, without: Sequence[str]) -> np.ndarray:
    """Mean test scores of the single-task configurations that were run with each of these options of a column.

    `without` are the columns that go with the option. Shape: `(num_configurations, num_options)`.
    """
    rows = []
    for group in group_by((run for run in runs if run.is_single_task), lambda run: run.key(without=without)).values():
        by_option = group_by(group, lambda run: run.settings[column])
        if set(options) <= set(by_option):
            rows.append([np.mean([run.test for run in by_option[option]]) for option in options])
    return np.array(rows).reshape(-1, len(options))


def compare_seeds(runs: Iterable[Run]) -> Tuple[float, ...]:
    """How far the runs of one configuration lie apart: the number of configurations, and median, 95th percentile and
    maximum of the differences."""
    groups = group_by(runs, lambda run: (run.is_single_task, run.key())).values()
    ranges = [np.ptp([run.test for run in group]) for group in groups if len(group) > 1]
    return (len(ranges), np.median(ranges), np.percentile(ranges, 95), max(ranges)) if ranges else ()


def compare_classifiers(runs: Iterable[Run]) -> Tuple[float, ...]:
    """Softmax against CRF: configurations, how many of 100 are better with a CRF, and the median of the difference."""
    softmax, crf = compare_options(runs, "Decoder", ("Softmax", "CRF"), without=("Decoder",)).T
    return (len(crf), 100 * np.mean(crf > softmax), np.median(softmax - crf)) if len(crf) else ()


def compare_characters(runs: Iterable[Run]) -> Tuple[float, ...]:
    """Three representations of characters: configurations, and how many of 100 are best with each."""
    scores = compare_options(runs, "CharEmbeddings", ("False", "CNN", "LSTM"), without=CHARACTERS)
    return (len(scores), *100 * np.bincount(scores.argmax(axis=1), minlength=3) / len(scores)) if len(scores) else ()


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper. `forms` are those of its numbers below `headings`, and `paper` has the paper's by task."""

    title: str
    measure: Callable[[Iterable[Run]], Tuple[float, ...]]
    headings: Sequence[str]
    forms: Sequence[str]
    paper: Mapping[str, Tuple[float, ...]]

    def rows(self, by_task: Mapping[str, List[Run]]) -> Iterator[Sequence[str]]:
        """Yield the paper's numbers and ours of each task that has any."""
        for task, runs in by_task.items():
            if numbers := self.measure(runs):
                pairs = (zip(self.forms, row, strict=True) for row in (self.paper[task], numbers))
                yield task, *(form.format(number) for row in pairs for form, number in row)


TABLES = (
    PaperTable(
        "Table 2: runs that differ in the seed, points",
        compare_seeds,
        ("configurations", "median", "95%", "max"),
        ("{}", "{:.2f}", "{:.2f}", "{:.2f}"),
        {
            "POS": (269, 0.17, 0.78, 1.55),
            "chunking": (385, 0.17, 0.50, 0.81),
            "NER": (406, 0.38, 1.08, 2.59),
            "entities": (405, 0.72, 2.10, 8.23),
            "events": (365, 0.43, 1.23, 1.73),
        },
    ),
    PaperTable(
        "Table 3: softmax and CRF",
        compare_classifiers,
        ("configurations", "CRF better", "softmax - CRF"),
        ("{}", "{:.1f}%", "{:+.2f}"),
        {
            "POS": (111, 81.1, -0.20),
            "chunking": (229, 95.2, -0.38),
            "NER": (232, 90.5, -0.66),
            "entities": (210, 86.7, -0.84),
            "events": (202, 38.1, 0.15),
        },
    ),
    PaperTable(
        "Table 5: which characters are best",
        compare_characters,
        ("configurations", "none", "CNN", "LSTM"),
        ("{}", "{:.1f}%", "{:.1f}%", "{:.1f}%"),
        {
            "POS": (225, 4.9, 58.2, 36.9),
            "chunking": (241, 13.3, 43.2, 43.6),
            "NER": (217, 27.2, 36.4, 36.4),
            "entities": (228, 26.8, 36.0, 37.3),
            "events": (219, 20.5, 35.6, 43.8),
        },
    ),
)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="hyperparameter_results.csv.gz, or unpacked")
    groups = group_by(read_runs(parser.parse_args().data), lambda run: run.task)
    by_task = {task: groups[task] for task in TASKS.values() if task in groups}
    for table in TABLES:
        first, *others = table.headings
        headings = ("task", f"paper: {first}", *others, f"here: {first}", *others)
        print_table(headings, table.rows(by_task), title=table.title)


if __name__ == "__main__":
    main()
