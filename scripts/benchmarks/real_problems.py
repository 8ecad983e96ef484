"""Measure selections among real models: published tables of repeated scores, drawn from with replacement.

    OMP_NUM_THREADS=1 python scripts/benchmarks/real_problems.py --only "default|rule_of_three" --selections 4
    python scripts/benchmarks/real_problems.py --pool

The 306 problems have 4 to 8 candidates with 10 to 30 scores each. The truth of a problem is the mean of all scores of
each candidate. Every call draws a new master seed, prints it, and appends a line for each procedure, source and gap to
`results/real_problems.csv`. `--pool` adds up all lines of the commits in `results/final_rule.txt`, good and bad, and
writes them into the pages. The scores themselves are not part of this project.
"""

import csv
import gzip
import re
import secrets
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from calibration import CONFIDENCE, FINAL_RULE, ROOT, append, rule_commit
from common import SHARED_DATA, make_parser, print_table, share, show, with_tables

from fiesta_allennlp.tables.replay import Replayer, prepare_replay, wilson_interval
from fiesta_allennlp.tables.settings import ReplaySettings
from fiesta_allennlp.tables.side_by_side import side_by_side
from fiesta_allennlp.tables.sources import DrawnScores, Sampling, ScoreSource, numbered_apart

SCORES = SHARED_DATA / "real" / "problems.csv.gz"
RESULTS = Path(__file__).parent / "results" / "real_problems.csv"
PAGES = (ROOT / "docs" / "evaluation.md", ROOT / "docs" / "reviewers.md", ROOT / "README.md")
BLOCK = re.compile(r"(<!-- real: (\w+)(?:, ([^;]+?))?(; brief)? -->\n).*?(<!-- end -->)", flags=re.S)
"""Place of a table on these pages: its kind, the procedures in it where these are not all, and whether it is brief."""

CHUNK = 120
"""Selections that a process simulates side by side."""

GAPS = (0.2, 0.8)
"""Limits between near, middle and wide gaps, in run-to-run sds."""

SEEDS_EACH = (3, 5, 10, 20, 30)
PLAIN, PAPER, DEFAULT = "plain loop", "the paper's procedure", "default"
SELECTIONS: Mapping[str, Mapping[str, Any]] = {
    PLAIN: {"strategy": "non_adaptive_fc"},
    PAPER: {"strategy": "ttts", "belief": "student_t", "splits": "independent", "stop": "bayesian"},
    DEFAULT: {},
    "rule_of_three": {"stop": "rule_of_three"},
    "glr": {"stop": "glr"},
    "margin of 0.25 sd": {"margin": "0.25sd"},
}
"""Settings of the procedures that select. The plain loop has the default's posterior and stopping rule."""

NAMES = (*(f"{k} runs each" for k in SEEDS_EACH), *SELECTIONS)


@dataclass(frozen=True, eq=False)
class Problem(ScoreSource):
    """A published table of scores. Higher scores are better: those of an error are negated.

    `scores` has the shape `(num_scores,)` for each candidate. If they are `paired`, score k of every candidate is of
    the same split, and a draw with replacement takes a split for all candidates, as a new one.
    """

    source: str
    name: str
    paired: bool
    scores: Mapping[str, np.ndarray]

    @property
    def on_official_splits(self) -> bool:  # type: ignore[override]
        return not self.paired

    def true_means(self) -> Dict[str, float]:
        return {name: float(scores.mean()) for name, scores in self.scores.items()}

    @cached_property
    def losses(self) -> Dict[str, float]:
        """How far each true mean is below the best one, in run-to-run sds."""
        means = self.true_means()
        return {name: (max(means.values()) - mean) / self.sd for name, mean in means.items()}

    @cached_property
    def gap(self) -> float:
        """How far the second mean is below the best, in run-to-run sds."""
        return sorted(self.losses.values())[1]

    @cached_property
    def sd(self) -> float:
        """The run-to-run sd: the median over the candidates, in a paired table without the effects of the splits."""
        if not self.paired:
            return float(np.median([scores.std(ddof=1) for scores in self.scores.values()]))
        table = np.stack(list(self.scores.values()))
        num_candidates, num_splits = table.shape
        residuals = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
        per_candidate = (residuals**2).sum(axis=1) * num_candidates / (num_candidates - 1) / (num_splits - 1)
        return float(np.sqrt(np.median(per_candidate)))

    def draw(
        self, sampling: Sampling, *, split_rng: np.random.Generator, score_rngs: Mapping[str, np.random.Generator]
    ) -> DrawnScores:
        length = sampling.length
        if self.paired and sampling.shared_splits:
            rows = split_rng.integers(min(map(len, self.scores.values())), size=length)
            scores = {name: values[rows] for name, values in self.scores.items()}
            return DrawnScores(dict.fromkeys(scores, np.arange(length)), scores, self.name)
        scores = {n: values[score_rngs[n].integers(len(values), size=length)] for n, values in self.scores.items()}
        return DrawnScores(numbered_apart(dict.fromkeys(scores, length)), scores, self.name)

    def best_of_equally_many(self, num_runs: int, num_selections: int, rng: np.random.Generator) -> List[str]:
        """Choose the candidate with the highest mean of so many runs each, by chance among equal ones."""
        size = (num_selections, num_runs)
        shared = rng.integers(min(map(len, self.scores.values())), size=size)
        rows = (shared if self.paired else rng.integers(len(scores), size=size) for scores in self.scores.values())
        means = [scores[row].mean(axis=1) for scores, row in zip(self.scores.values(), rows, strict=True)]
        # Shape: (num_candidates, num_selections)
        rounded = np.round(np.stack(means) / self.sd, 9)
        order = rng.permuted(np.tile(np.arange(len(means))[:, None], num_selections), axis=0)
        best = np.take_along_axis(order, np.take_along_axis(rounded, order, axis=0).argmax(axis=0)[None], axis=0)[0]
        return [list(self.scores)[place] for place in best]


def read_problems(path: Path) -> List[Problem]:
    """Read the problems of a table with the columns source, problem, paired, minimise, candidate, number and score."""
    found: Dict[Tuple[str, str, str, str], Dict[str, Dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            problem = found[row["source"], row["problem"], row["paired"], row["minimise"]]
            problem[row["candidate"]][int(row["number"])] = float(row["score"])
    return [
        Problem(
            source,
            name,
            paired == "1",
            {
                c: np.array([runs[k] for k in sorted(runs)]) * (-1 if minimise == "1" else 1)
                for c, runs in table.items()
            },
        )
        for (source, name, paired, minimise), table in found.items()
    ]


@dataclass(frozen=True)
class Selected:
    """What one selection chose, and whether it named it as the winner."""

    problem: Problem
    best: str
    named: bool
    num_runs: int

    @property
    def loss(self) -> float:
        """How far the true mean of the chosen one is below the best, in run-to-run sds."""
        return self.problem.losses[self.best]


def select_equally(name: str, problems: Sequence[Problem], num_selections: int, seed: int) -> List[Selected]:
    """Choose by the means of equally many runs."""
    num_runs = int(name.split()[0])
    rng = np.random.default_rng(seed)
    return [
        Selected(problem, best, True, num_runs * len(problem.scores))
        for problem in problems
        for best in problem.best_of_equally_many(num_runs, num_selections, rng)
    ]


def select_all(name: str, problems: Sequence[Problem], num_selections: int, seed: int) -> List[Selected]:
    """Simulate selections of problems with equally many candidates side by side, by one strategy."""
    replayers: List[Replayer] = []
    for number, problem in enumerate(problems):
        settings = ReplaySettings(**SELECTIONS[name], scores="", confidence=CONFIDENCE, seed=seed + number)
        replayers.append(prepare_replay(settings, problem))
    strategy = replayers[0].strategy
    alike = (replace(each, strategy=strategy) for each in replayers)
    runs = [each.steps(repetition) for each in alike for repetition in range(num_selections)]
    chosen = [problem for problem in problems for _ in range(num_selections)]
    return [
        Selected(problem, str(result.best), result.stopped_by == "confidence", result.num_evaluations)
        for problem, result in zip(chosen, side_by_side(strategy, runs), strict=True)
    ]


def groups_of(problems: Sequence[Problem], num_selections: int) -> Iterator[List[Problem]]:
    """Yield groups of problems that can be simulated side by side, of at most `CHUNK` selections where possible."""
    groups: Dict[Tuple[int, bool], List[Problem]] = defaultdict(list)
    for problem in problems:
        groups[len(problem.scores), problem.paired].append(problem)
    size = max(1, CHUNK // num_selections)
    for group in groups.values():
        yield from (group[start : start + size] for start in range(0, len(group), size))


@dataclass(frozen=True)
class Line:
    """The counts of one procedure, source and class of gaps in one call. `runs` counts selections by number of runs, as
    "15:3 18:1"; `loss` is a sum, in run-to-run sds."""

    rule: str
    procedure: str
    source: str
    gap: str
    seed: int
    selections: int
    named: int
    wrong: int
    wrong_by_tenth: int
    wrong_by_quarter: int
    loss: float
    runs: str

    @classmethod
    def of(cls, row: Mapping[str, str]) -> "Line":
        return cls(**{each.name: each.type(row[each.name]) for each in fields(cls)})  # type: ignore[operator]

    @property
    def histogram(self) -> Counter[int]:
        pairs = (pair.split(":") for pair in self.runs.split())
        return Counter({int(number): int(count) for number, count in pairs})


def lines_of(results: Sequence[Selected], **about: Any) -> Iterator[Line]:
    """Count results by source and gap."""
    groups: Dict[Tuple[str, str], List[Selected]] = defaultdict(list)
    for result in results:
        groups[result.problem.source, gap_class(result.problem.gap)].append(result)
    for (source, gap), group in sorted(groups.items()):
        losses = [result.loss for result in group if result.named]
        by_number = sorted(Counter(result.num_runs for result in group).items())
        yield Line(
            **about,
            source=source,
            gap=gap,
            selections=len(group),
            named=len(losses),
            wrong=sum(loss > TIE for loss in losses),
            wrong_by_tenth=sum(loss > 0.1 for loss in losses),
            wrong_by_quarter=sum(loss > 0.25 for loss in losses),
            loss=round(sum(result.loss for result in group), 6),
            runs=" ".join(f"{number}:{count}" for number, count in by_number),
        )


TIE = 1e-9
"""Means that are as near as that, in run-to-run sds, are equal."""


def gap_class(gap: float) -> str:
    near, wide = GAPS
    return f"below {near}" if gap < near else f"{near} to {wide}" if gap < wide else f"above {wide}"


HEADINGS = (
    "selections",
    "runs: mean, median (5-95%)",
    "names a winner",
    "wrong, of all",
    "wrong, of named",
    "by over 0.1 sd",
    "by over 0.25 sd",
    "loss, sds",
)
BRIEF = (1, 2, 3, 4, 6)
"""Places of the `HEADINGS` of a brief table."""


def cells(lines: Sequence[Line]) -> Tuple[str, ...]:
    """Return one text for each of `HEADINGS`. Intervals are 95% Wilson intervals."""
    total, named = (sum(getattr(line, key) for line in lines) for key in ("selections", "named"))
    histogram = sum((line.histogram for line in lines), Counter())
    numbers = np.repeat(*(np.array(each) for each in zip(*sorted(histogram.items()), strict=True)))
    low, median, high = np.percentile(numbers, (5, 50, 95), method="inverted_cdf")

    def rate(key: str, number: int) -> str:
        count = sum(getattr(line, key) for line in lines)
        return share(count / number, wilson_interval(count, number)) if number else "-"

    return (
        f"{total:,}",
        f"{numbers.mean():.1f}, {median} ({low}-{high})",
        f"{named / total:.3f}",
        rate("wrong", total),
        rate("wrong", named),
        rate("wrong_by_tenth", total),
        rate("wrong_by_quarter", total),
        f"{sum(line.loss for line in lines) / total:.4f}",
    )


KINDS: Mapping[str, Callable[[Line], Tuple[str, ...]]] = {
    "procedures": lambda line: (line.procedure,),
    "sources": lambda line: (line.procedure, line.source),
    "gaps": lambda line: (line.procedure, line.gap),
}
"""Tables on the pages, and what has a row in each."""


def pooled(
    lines: Iterable[Line], rules: Sequence[str], kind: str, names: Sequence[str] = NAMES
) -> List[Tuple[str, ...]]:
    """Add up the lines of these rules and procedures. Procedures without a stopping rule count for every rule."""
    groups: Dict[Tuple[str, ...], List[Line]] = defaultdict(list)
    for line in lines:
        if line.procedure in names and (line.rule in rules or line.procedure not in SELECTIONS):
            groups[KINDS[kind](line)].append(line)
    keys = sorted(groups, key=lambda key: (names.index(key[0]), GAP_ORDER.index(key[-1]) if kind == "gaps" else 0, key))
    return [(*key, *cells(groups[key])) for key in keys]


GAP_ORDER = tuple(gap_class(gap) for gap in (0, *GAPS))
FIRST = {"procedures": ("procedure",), "sources": ("procedure", "source"), "gaps": ("procedure", "gap, sds")}


def pooled_page(page: str, lines: Sequence[Line], rules: Sequence[str]) -> str:
    """The page with each pooled table in its place."""

    def table(found: "re.Match[str]") -> List[Tuple[str, ...]]:
        names, first = tuple(found[3].split(", ")) if found[3] else NAMES, FIRST[found[2]]
        rows = [(*first, *HEADINGS), *pooled(lines, rules, found[2], names)]
        if found[4]:
            rows = [(*row[: len(first)], *(row[len(first) + place] for place in BRIEF)) for row in rows]
        return rows

    return with_tables(page, BLOCK, table)


def recorded(path: Path) -> List[Line]:
    """All lines of the results file."""
    with path.open(encoding="utf-8", newline="") as file:
        return [Line.of(row) for row in csv.DictReader(file)]


def main(arguments: Optional[Sequence[str]] = None) -> None:
    parser = make_parser(__doc__, only="procedures whose name")
    parser.add_argument("--selections", type=int, default=4, help="selections of each problem")
    parser.add_argument("--scores", type=Path, default=SCORES)
    parser.add_argument("--processes", type=int, help="parallel processes (default: one per core)")
    parser.add_argument("--pool", action="store_true", help="measure nothing, but write the pooled tables")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file to append to")
    args = parser.parse_args(arguments)
    if args.pool:
        for page in PAGES:
            text = page.read_text(encoding="utf-8")
            page.write_text(pooled_page(text, recorded(args.results), FINAL_RULE.read_text().split()), encoding="utf-8")
        return
    rule, seed, problems = rule_commit(), secrets.randbits(32), read_problems(args.scores)
    show(f"rule {rule}, seed {seed}, {len(problems)} problems")

    def rows() -> Iterator[Tuple[str, ...]]:
        with ProcessPoolExecutor(args.processes) as pool:
            for name in NAMES:
                if re.search(args.only, name):
                    select = select_all if name in SELECTIONS else select_equally
                    groups = enumerate(groups_of(problems, args.selections))
                    begun = [pool.submit(select, name, g, args.selections, seed + 1000 * n) for n, g in groups]
                    results = [each for future in begun for each in future.result()]
                    lines = list(lines_of(results, rule=rule, procedure=name, seed=seed))
                    append([asdict(line) for line in lines], args.results)
                    yield name, *cells(lines)

    print_table(("procedure", *HEADINGS), rows())


if __name__ == "__main__":
    main()
