"""What the benchmarks have in common: arguments, files of results, tables in Markdown, the paper's released scores."""

import argparse
import csv
import hashlib
import itertools
import os
import re
import secrets
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Type,
    TypeVar,
)

from fiesta_allennlp.core.files import read_json
from fiesta_allennlp.tables.simulation.planning import ScorePreset
from fiesta_allennlp.tables.simulation.score_sources import ScoreTable, make_score_table
from fiesta_allennlp.tables.simulation.simulator import prepare_simulator, wilson_interval
from fiesta_allennlp.tables.table_reader import read_run_table
from fiesta_allennlp.tables.table_settings import ReplaySettings

SHARED_DATA = Path(os.environ.get("FIESTA_SHARED_DATA", "../shared/data"))
RELEASED = SHARED_DATA / "scores" / "fiesta_tdsa_test_f1.json"
"""Scores that were released with the FIESTA paper: 500 of each of its 12 candidates, on 100 splits."""

EVALUATIONS_PER_SPLIT = 5
TDSA_MEANS = {
    "tdlstm": 0.6462,
    "atae": 0.6323,
    "ian": 0.6319,
    "tdlstm_50": 0.6095,
    "lstm": 0.6062,
    "atae_50": 0.5946,
    "ian_50": 0.5925,
    "lstm_50": 0.5679,
}
"""Mean test macro-F1 of the 8 candidates of the FIESTA paper's section 5.2."""

MODELS_8 = tuple(TDSA_MEANS)
MODELS_12 = (*MODELS_8, "tdlstm_200", "atae_200", "ian_200", "lstm_200")


def split_table(scores: Mapping[str, Sequence[float]], scores_per_split: int, name: str) -> ScoreTable:
    """Return the table of scores of which each `scores_per_split` consecutive ones of a candidate share a split."""
    rows = [
        {"candidate": candidate, "split": number // scores_per_split, "seed": number + 1, "score": score}
        for candidate, values in scores.items()
        for number, score in enumerate(values)
    ]
    return make_score_table(read_run_table(Path(name), ReplaySettings(), rows))


@cache
def released_table(path: Path = RELEASED) -> ScoreTable:
    return split_table(read_json(path), EVALUATIONS_PER_SPLIT, str(path))


def restricted(table: ScoreTable, names: Sequence[str]) -> ScoreTable:
    """Return the table with the scores of these candidates only, in this order."""
    splits, scores = ({name: column[name] for name in names} for column in (table.splits, table.scores))
    return replace(table, splits=splits, scores=scores)


ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).resolve().parent / "results"
EVALUATION = ROOT / "docs" / "evaluation.md"
BENCHMARKS, REPRODUCTIONS = RESULTS.parent / "README.md", RESULTS.parent / "reproduce.md"
"""Pages with tables of the results."""

FINAL_RULE = RESULTS / "final_rule.txt"
"""The `rule_id` of the recorded results."""

ID_SOURCES = (
    ScorePreset("eight", TDSA_MEANS),
    ScorePreset("equal", {"a": 0.5, "b": 0.5}, noise_sd=0.01),
    ScorePreset("hard splits", {"a": 0.5, "b": 0.505, "c": 0.49}, split_sd=0.5, noise_sd=0.01),
    ScorePreset("constant", {"a": 0.5, "b": 0.505, "c": 0.4, "d": 0.4}, {"c": 0.0, "d": 0.0}, noise_sd=0.01),
)
"""Problems whose ends identify a rule: each number that decides changes some of them."""

NUM_ID_SELECTIONS = 50

Row = TypeVar("Row")


def ends_of(source: ScorePreset, **settings: Any) -> List[Tuple[Optional[str], bool, int]]:
    """Return candidate, whether it was named, and number of runs of some selections; of one if it is made alone."""
    simulator = prepare_simulator(ReplaySettings.from_layers({"scores": "", "seed": 1, **settings}), source)
    number = NUM_ID_SELECTIONS if simulator.rules else 1
    return [(end.best, end.is_named, end.num_evaluations) for end in simulator.run_all(range(number))]


@cache
def rule_id() -> str:
    """Hash the ends of selections by the default, `glr` and the paper's procedure: an id of what the rules do, wherever
    their code is."""
    ends = [ends_of(source) for source in ID_SOURCES]
    ends += [ends_of(ID_SOURCES[0], stop="glr"), ends_of(ID_SOURCES[0], preset="paper")]
    return hashlib.sha256(repr(ends).encode()).hexdigest()[:8]


def final_rule() -> str:
    """The `rule_id` of the recorded results."""
    return FINAL_RULE.read_text(encoding="utf-8").strip()


def append_rows(rows: Sequence[Any], path: Path) -> None:
    """Append records of one dataclass, at least one, to a results file."""
    is_new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(rows[0])], lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerows(map(asdict, rows))


def recorded(measured: Iterable[Row], path: Path) -> Iterator[Row]:
    """Append each record to a results file as soon as it is there, and yield it."""
    for row in measured:
        append_rows([row], path)
        yield row


def read_rows(path: Path, kind: Type[Row]) -> List[Row]:
    """All lines of a results file, as records of this dataclass."""
    with path.open(encoding="utf-8", newline="") as file:
        types: Dict[str, Any] = {field.name: field.type for field in fields(kind)}  # type: ignore[arg-type]
        return [kind(**{name: types[name](row[name]) for name in types}) for row in csv.DictReader(file)]


def read_final_rows(path: Path, kind: Type[Row]) -> List[Row]:
    """The lines of a results file that the final rule made."""
    rule = final_rule()
    return [row for row in read_rows(path, kind) if vars(row)["rule"] == rule]


def group_by(rows: Iterable[Row], key: Callable[[Row], Any]) -> Dict[Any, List[Row]]:
    """Return the rows of each value of the key."""
    groups: Dict[Any, List[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def add_up(rows: Iterable[Any], *names: str) -> List[Any]:
    """Return the sum of each of these fields."""
    return [sum(column) for column in zip(*([getattr(row, name) for name in names] for row in rows), strict=True)]


def last_line(lines: Sequence[Row], path: Path, **key: Any) -> Row:
    """The last line with these values. Raise a `ValueError` if there is none; `path` is the file for its message."""
    for line in reversed(lines):
        if all(getattr(line, name) == value for name, value in key.items()):
            return line
    values = ", ".join(map(str, key.values()))
    raise ValueError(f"{path.name} has no line of {values} whose rule is in {FINAL_RULE.name}. Measure it again.")


def make_parser(
    description: Optional[str], *, repetitions: Optional[int] = None, only: Optional[str] = None
) -> argparse.ArgumentParser:
    """A parser with the options of these defaults; `only` says what `--only` chooses by a regular expression."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    if repetitions is not None:
        parser.add_argument("--repetitions", type=int, default=repetitions)
    if only is not None:
        parser.add_argument("--only", default="", metavar="PATTERN", help=f"{only} matches this regular expression")
    return parser


def add_record_options(parser: argparse.ArgumentParser, results: Optional[Path] = None) -> None:
    """Add the options of a script that appends its counts to a results file, and pools the lines on a page."""
    parser.add_argument("--seed", type=int, help="repeat a recorded call, instead of a new seed")
    parser.add_argument("--pool", action="store_true", help="measure nothing, but write the pooled results")
    parser.add_argument("--results", type=Path, default=results, help="file to append to")


def start_call(seed: Optional[int]) -> int:
    """Return the seed of a call, a new one for None, and print it with the id of the rule."""
    seed = secrets.randbits(32) if seed is None else seed
    show(f"rule {rule_id()}, seed {seed}")
    return seed


def add_page_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a script that reproduces a paper and writes the tables of a page."""
    parser.add_argument("--output", type=Path, default=Path("reproduced"), help="directory for figures and tables")
    parser.add_argument("--results", type=Path, help="directory of the lines to append to (default: that of --output)")
    parser.add_argument("--table", action="store_true", help="measure nothing, but write the tables of the page")


def show(text: str) -> None:
    """Print at once, also into a file."""
    print(text, flush=True)


def table_lines(headings: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> Iterator[str]:
    """Yield the lines of a Markdown table, below its title where it has one."""
    if title:
        yield f"\n### {title}\n"
    for row in itertools.chain((headings, ["---"] * len(headings)), rows):
        yield f"| {' | '.join(map(str, row))} |"


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "") -> None:
    """Print a Markdown table, each row as soon as it is there."""
    for line in table_lines(headings, rows, title):
        show(line)


@dataclass(frozen=True)
class PageTables:
    """The tables of recorded results on some pages, each between `<!-- MARKER -->` and `<!-- end -->`.

    Attributes:
        marker: a regular expression, whose groups are those of the match that `make` gets.
        make: makes the rows of a table, the headings first.
    """

    marker: str
    make: Callable[["re.Match[str]"], Sequence[Sequence[str]]]
    pages: Sequence[Path]

    def fill(self, page: str) -> str:
        """Return the page with a new table in each place.

        # Raises
            ValueError: if a table has no row below its headings; the message has its marker.
        """

        def table(match: "re.Match[str]") -> str:
            marker, (headings, *rows) = match["marker"], self.make(match)
            if not rows:
                raise ValueError(f"{marker} has no results whose rule is in {FINAL_RULE.name}. Measure it again.")
            return "\n".join((marker, *table_lines(headings, rows), "<!-- end -->"))

        pattern = rf"(?P<marker><!-- {self.marker} -->)\n.*?<!-- end -->"
        return re.sub(pattern, table, page, flags=re.DOTALL)

    def write(self) -> None:
        """Write the pages with their new tables."""
        for page in self.pages:
            page.write_text(self.fill(page.read_text(encoding="utf-8")), encoding="utf-8")


@contextmanager
def drawing(path: Path, width: float, height: float) -> Iterator[Any]:
    """Give a figure of this size in inches, and save it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    yield figure
    figure.savefig(path, dpi=150)


def share_of(number: float, total: float) -> str:
    """A share with its 95% Wilson interval; "-" of nothing."""
    return share_text(number / total, wilson_interval(int(number), int(total))) if total else "-"


def share_text(value: float, interval: Sequence[float]) -> str:
    low, high = interval
    return f"{value:.3f} ({low:.3f}-{high:.3f})"
