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
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple

import numpy as np

sys.path.append(str(Path(__file__).parent / "benchmarks"))

from common import make_parser, print_table

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

OPTIONS = {"False": "none", "CNN": "CNN", "LSTM": "LSTM"}
"""Of `CharEmbeddings`."""

PAPER_2 = {
    "POS": (269, 0.17, 0.78, 1.55),
    "chunking": (385, 0.17, 0.50, 0.81),
    "NER": (406, 0.38, 1.08, 2.59),
    "entities": (405, 0.72, 2.10, 8.23),
    "events": (365, 0.43, 1.23, 1.73),
}
"""Configurations; median, 95th percentile and maximum of the differences."""

PAPER_3 = {
    "POS": (111, 81.1, -0.20),
    "chunking": (229, 95.2, -0.38),
    "NER": (232, 90.5, -0.66),
    "entities": (210, 86.7, -0.84),
    "events": (202, 38.1, 0.15),
}
"""Configurations, how many of 100 are better with a CRF, and the median of softmax minus CRF."""

PAPER_5 = {
    "POS": (225, 4.9, 58.2, 36.9),
    "chunking": (241, 13.3, 43.2, 43.6),
    "NER": (217, 27.2, 36.4, 36.4),
    "entities": (228, 26.8, 36.0, 37.3),
    "events": (219, 20.5, 35.6, 43.8),
}
"""Configurations, and how many of 100 are best with no characters, a CNN and an LSTM."""

HEADINGS_2 = ("task", "paper: configurations", "median", "95%", "max", "here: configurations", "median", "95%", "max")
HEADINGS_3 = ("task", "paper: configurations", "CRF better", "softmax - CRF", "here: configurations", "CRF better",
              "softmax - CRF")  # fmt: skip
HEADINGS_5 = ("task", "paper: configurations", "none", "CNN", "LSTM", "here: configurations", "none", "CNN", "LSTM")

Settings = Tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """One training. Scores are in points of 100."""

    task: str
    is_single_task: bool
    settings: Mapping[str, str]
    test: float

    def key(self, *, without: Sequence[str] = ()) -> Settings:
        """Equal for runs of one configuration, whatever the columns `without` say."""
        return tuple(value for name, value in self.settings.items() if name not in without)


def read_runs(path: Path) -> List[Run]:
    """All runs of the file."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="") as lines:
        return [_run(row) for row in csv.DictReader(lines, delimiter="\t")]


def _run(row: Dict[str, str]) -> Run:
    settings = {name: value for name, value in row.items() if name not in NOT_SETTINGS}
    settings["Decoder"] = settings["Decoder"].strip("[']")
    task, is_single_task = TASKS[row["Dataset"].removesuffix(".pkl")], row["Setting"] == "SingleTask"
    return Run(task, is_single_task, settings, 100 * float(row["Test_F1"]))


def repeated_runs(runs: Iterable[Run]) -> List[List[Run]]:
    """The runs of each configuration that was run more than once."""
    groups: Dict[Settings, List[Run]] = defaultdict(list)
    for run in runs:
        groups[(str(run.is_single_task), *run.key())].append(run)
    return [group for group in groups.values() if len(group) > 1]


def compare_options(runs: Iterable[Run], column: str, options: Sequence[str], *, without: Sequence[str]) -> np.ndarray:
    """Mean test scores of the single-task configurations that were run with each of these options of a column.

    `without` are the columns that go with the option. Shape: `(num_configurations, num_options)`.
    """
    groups: Dict[Settings, Dict[str, List[float]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        if run.is_single_task:
            groups[run.key(without=without)][run.settings[column]].append(run.test)
    rows = [[np.mean(group[option]) for option in options] for group in groups.values() if set(options) <= set(group)]
    return np.array(rows).reshape(-1, len(options))


def table_2(by_task: Mapping[str, List[Run]]) -> Iterator[Sequence[object]]:
    """How far the runs of one configuration lie apart."""
    for task, runs in by_task.items():
        ranges = [np.ptp([run.test for run in group]) for group in repeated_runs(runs)]
        if ranges:
            numbers = (np.median(ranges), np.percentile(ranges, 95), max(ranges))
            yield (task, *_cells(PAPER_2[task], "{:.2f}"), len(ranges), *(f"{number:.2f}" for number in numbers))


def _cells(numbers: Sequence[float], form: str) -> List[str]:
    return [str(numbers[0]), *(form.format(number) for number in numbers[1:])]


def table_3(by_task: Mapping[str, List[Run]]) -> Iterator[Sequence[object]]:
    """Softmax against CRF."""
    for task, runs in by_task.items():
        softmax, crf = classifiers(runs).T
        if not len(crf):
            continue
        paper, paper_share, paper_median = PAPER_3[task]
        yield (task, paper, f"{paper_share:.1f}%", f"{paper_median:+.2f}", len(crf),
               f"{100 * np.mean(crf > softmax):.1f}%", f"{np.median(softmax - crf):+.2f}")  # fmt: skip


def classifiers(runs: Iterable[Run]) -> np.ndarray:
    """Test scores with a softmax and with a CRF. Shape: `(num_configurations, 2)`."""
    return compare_options(runs, "Decoder", ("Softmax", "CRF"), without=("Decoder",))


def table_5(by_task: Mapping[str, List[Run]]) -> Iterator[Sequence[object]]:
    """The best of three representations of characters."""
    for task, runs in by_task.items():
        scores = compare_options(runs, "CharEmbeddings", tuple(OPTIONS), without=CHARACTERS)
        if not len(scores):
            continue
        best = Counter(scores.argmax(axis=1).tolist())
        shares = [f"{100 * best[number] / len(scores):.1f}%" for number in range(len(OPTIONS))]
        yield (task, *_cells(PAPER_5[task], "{:.1f}%"), len(scores), *shares)


def reproduce(path: Path) -> None:
    runs = read_runs(path)
    by_task = {task: [run for run in runs if run.task == task] for task in TASKS.values()}
    by_task = {task: of_task for task, of_task in by_task.items() if of_task}
    print_table(HEADINGS_2, table_2(by_task), title="Table 2: runs that differ in the seed, points")
    print_table(HEADINGS_3, table_3(by_task), title="Table 3: softmax and CRF")
    print_table(HEADINGS_5, table_5(by_task), title="Table 5: which characters are best")


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="hyperparameter_results.csv.gz, or unpacked")
    reproduce(parser.parse_args().data)


if __name__ == "__main__":
    main()
