"""Measure how often a stopping rule names a wrong winner, on families of synthetic problems and the released scores.

    OMP_NUM_THREADS=1 python scripts/benchmarks/calibration.py --set tuning --only noisy --repetitions 200
    python scripts/benchmarks/calibration.py --pool

Every call draws a new master seed, prints it, and appends a line for each family to `results/calibration.csv`. `--pool`
adds up all lines whose rule is in `results/final_rule.txt`, good and bad, and writes them into docs/evaluation.md.
"""

import csv
import re
import secrets
import subprocess
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from common import EIGHT, EVALUATIONS_PER_SPLIT, RELEASED, make_parser, print_table, share, show, with_tables
from families import SETS

from fiesta_allennlp.tables.replay import Repetition, prepare_replay, wilson_interval
from fiesta_allennlp.tables.settings import ReplaySettings
from fiesta_allennlp.tables.sources import ScoreSource

ROOT = Path(__file__).parent.parent.parent
RESULTS = Path(__file__).parent / "results" / "calibration.csv"
FINAL_RULE = RESULTS.with_name("final_rule.txt")
"""Commits of the final rule, one on each line."""

RULE = tuple(f"fiesta_allennlp/{room}" for room in ("probability", "beliefs", "strategies"))
"""Folders whose last commit is recorded with every result."""

PAGES = (Path(__file__).with_suffix(".md"), ROOT / "docs" / "evaluation.md")
BLOCK = re.compile(r"(<!-- pooled: (\w+)(?:, highest (\d+))?(?:, stop (\w+))? -->\n).*?(<!-- end -->)", flags=re.S)
"""Place of the table of a set on these pages, of all families or of those with the most wrong winners."""

RELEASED_SET = "released"
CONFIDENCE = 0.95
"""Target of the pooled tables."""

DEFAULT = "default"
"""The stopping rule that was the default of its commit."""

CHUNK = 50
"""Selections that a process simulates at a time."""

HEADINGS = ("family", "selections", "mean runs", "wrong of all", "wrong of named", "inconclusive")


@dataclass(frozen=True)
class Line:
    """The result of one family in one call: counts of selections, and their mean number of runs."""

    rule: str
    set: str
    family: str
    confidence: float
    stop: str
    seed: int
    repetitions: int
    named: int
    wrong: int
    inconclusive: int
    mean_runs: float

    @classmethod
    def of(cls, row: Mapping[str, str]) -> "Line":
        """Read a row of the results file."""
        return cls(**{each.name: each.type(row[each.name]) for each in fields(cls)})  # type: ignore[operator]


@dataclass(frozen=True)
class Problem:
    """A family, or the released scores with a number of workers. `settings` are those of the replay."""

    name: str
    settings: Mapping[str, Any]
    source: Optional[ScoreSource] = None

    def repeat(self, repetitions: range, **about: Any) -> List[Repetition]:
        """Simulate these selections with a confidence, a stopping rule and a seed."""
        stop = None if about["stop"] == DEFAULT else about["stop"]
        given = ReplaySettings(**self.settings, **{**about, "stop": stop})
        return prepare_replay(given, self.source).run_all(repetitions)

    def line(self, names: str, result: Sequence[Repetition], **about: Any) -> Line:
        """Count the selections that named a winner, and those that named a wrong one."""
        named = [each for each in result if each.stopped_by == "confidence"]
        return Line(
            **about,
            set=names,
            family=self.name,
            repetitions=len(result),
            named=len(named),
            wrong=sum(not each.correct for each in named),
            inconclusive=len(result) - len(named),
            mean_runs=round(sum(each.num_evaluations for each in result) / len(result), 2),
        )


def problems(names: str) -> List[Problem]:
    """The problems of a set."""
    if names == RELEASED_SET:
        table = {"scores": str(RELEASED), "candidates": EIGHT, "evaluations_per_split": EVALUATIONS_PER_SPLIT}
        return [Problem(f"released scores, workers: {n}", {**table, "batch_size": n}) for n in (1, 4, 8)]
    return [
        Problem(f.name, {"scores": "", "batch_size": f.workers, "margin": f.margin or None}, f) for f in SETS[names]
    ]


def rule_commit() -> str:
    """The last commit that changed the rule, with a + where there are changes that are not committed."""

    def git(*args: str) -> str:
        return subprocess.run(("git", *args, "--", *RULE), cwd=ROOT, capture_output=True, text=True).stdout.strip()

    return git("log", "-1", "--format=%h") + "+" * bool(git("status", "--porcelain"))


def append(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Append rows, at least one, to a results file."""
    is_new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerows(rows)


def recorded(path: Path) -> List[Line]:
    """All lines of the results file."""
    with path.open(encoding="utf-8", newline="") as file:
        return [Line.of(row) for row in csv.DictReader(file)]


def pooled(
    lines: Sequence[Line], rules: Sequence[str], names: str, highest: Optional[int] = None, stop: str = DEFAULT
) -> List[Tuple[str, ...]]:
    """The counts of every family of a set, added up over the lines of these rules, or only of those with the highest
    share of wrong winners. One text for each of `HEADINGS`."""
    by_family: Dict[str, List[Line]] = defaultdict(list)
    for line in lines:
        if line.rule in rules and line.set == names and (line.confidence, line.stop) == (CONFIDENCE, stop):
            by_family[line.family].append(line)
    rows = [cells(family, group) for family, group in by_family.items()]
    return sorted(rows, key=lambda row: row[3], reverse=True)[:highest] if highest else rows


def pooled_page(page: str, lines: Sequence[Line], rules: Sequence[str]) -> str:
    """The page with the pooled table of each set in its place."""

    def table(found: "re.Match[str]") -> List[Tuple[str, ...]]:
        return [HEADINGS, *pooled(lines, rules, found[2], int(found[3] or 0) or None, found[4] or DEFAULT)]

    return with_tables(page, BLOCK, table)


def cells(family: str, lines: Sequence[Line]) -> Tuple[str, ...]:
    """One text for each of `HEADINGS`, with 95% Wilson intervals."""
    total, named, wrong = (sum(getattr(line, key) for line in lines) for key in ("repetitions", "named", "wrong"))
    runs = sum(line.mean_runs * line.repetitions for line in lines) / total
    return (
        family,
        f"{total:,}",
        f"{runs:.1f}",
        share(wrong / total, wilson_interval(wrong, total)),
        share(wrong / named, wilson_interval(wrong, named)) if named else "-",
        f"{1 - named / total:.3f}",
    )


def main() -> None:
    parser = make_parser(__doc__, repetitions=200, only="families whose name")
    parser.add_argument("--set", choices=[*SETS, RELEASED_SET], default="tuning")
    parser.add_argument("--confidence", type=float, default=CONFIDENCE)
    parser.add_argument("--stop", default=DEFAULT, help="stopping rule")
    parser.add_argument("--processes", type=int, help="parallel processes (default: one per core)")
    parser.add_argument(
        "--pool", action="store_true", help="measure nothing, but add up the recorded results on the pages"
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="file to append to")
    args = parser.parse_args()
    if args.pool:
        for page in PAGES:
            text = pooled_page(page.read_text(encoding="utf-8"), recorded(args.results), FINAL_RULE.read_text().split())
            page.write_text(text, encoding="utf-8")
        return
    rule, seed = rule_commit(), secrets.randbits(32)
    show(f"rule {rule}, seed {seed}")
    about = {"confidence": args.confidence, "stop": args.stop, "seed": seed}
    chosen = [problem for problem in problems(args.set) if re.search(args.only, problem.name)]
    starts = range(0, args.repetitions, CHUNK)
    chunks = [range(start, min(start + CHUNK, args.repetitions)) for start in starts]

    def rows() -> Iterator[Tuple[str, ...]]:
        with ProcessPoolExecutor(args.processes) as pool:
            begun = [[pool.submit(problem.repeat, chunk, **about) for chunk in chunks] for problem in chosen]
            for problem, futures in zip(chosen, begun, strict=True):
                found = [each for future in futures for each in future.result()]
                line = problem.line(args.set, found, rule=rule, **about)
                append([asdict(line)], args.results)
                yield cells(line.family, [line])

    print_table(HEADINGS, rows())


if __name__ == "__main__":
    main()
