"""Measure how many queries `fiesta documents` needs, and how often it names a wrong system, on answers made beforehand.

    python scripts/benchmarks/document_systems.py DIRECTORY
    OMP_NUM_THREADS=1 python scripts/benchmarks/documents.py DIRECTORY --repetitions 200
    OMP_NUM_THREADS=1 python scripts/benchmarks/documents.py DIRECTORY --only "sentiment, 5" --workers 4 --margin 0.02
    python scripts/benchmarks/documents.py DIRECTORY --pool

Every call draws a new master seed, prints it, and appends a line for each row to `results/documents.csv`. `--pool` adds
up the lines of the present rule and writes the table of docs/evaluation.md. A repetition
takes the documents of the file in a random order (`once`), or draws as many documents from it with replacement
(`again`). The best system is the one with the highest metric on the whole file, or is within `--margin` of it.

Rows are apart by how many documents a t-test of a fixed size needs for the best two systems (level .05, power .8): half
of the documents that there are, all of them, or more (`near tie`).
"""

import re
import secrets
from collections import deque
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Deque, Dict, Generator, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from common import (
    FINAL_RULE,
    ROOT,
    append_rows,
    make_parser,
    print_table,
    read_rows,
    replace_tables,
    rule_commit,
    share_text,
    show,
)
from power_analysis import FixedSize, fixed_size

import fiesta_allennlp.plugin  # noqa: F401
from fiesta_allennlp.beliefs import PairedMeasure
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.records import Evaluation, History, Request
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.documents.choice import LimitedDocuments
from fiesta_allennlp.documents.select import DocumentSelection
from fiesta_allennlp.documents.settings import AVERAGE_BY_METRIC, DocumentSettings
from fiesta_allennlp.documents.tasks import Task
from fiesta_allennlp.selection.session import StoredState
from fiesta_allennlp.tables.side_by_side import prepare_belief, run_side_by_side
from fiesta_allennlp.tables.simulator import find_best, wilson_interval

RESULTS = Path(__file__).parent / "results" / "documents.csv"
PAGE = ROOT / "docs" / "evaluation.md"
TABLE_PATTERN = re.compile(r"(<!-- documents: sizes -->\n).*?(<!-- end -->)", flags=re.S)

CLASSES = ("twice", "once", "near tie")
SELECTIONS_PER_GROUP = 100
"""Selections that take turns."""

HEADINGS = ("cell", "test fits", "target", "selections", "queries", "wrong of all", "wrong of named", "ran out")
WRONG_HEADINGS = {target: f"wrong at {target}" for target in (0.8, 0.9, 0.95)}
SIZE_HEADINGS = (
    "systems and metric",
    "best ahead by",
    "test of the best two",
    "tests of all",
    "queries at 0.95",
    *WRONG_HEADINGS.values(),
)


@dataclass(frozen=True)
class Benchmark:
    """Selections on the file of a task. `systems` are names, or how many are drawn each time. `options` are those of
    `fiesta documents`."""

    name: str
    task: str
    systems: Any
    sampling: str = "again"
    options: Any = ()
    num_documents: Optional[int] = None
    """How many documents are drawn, by default as many as there are."""


SPANS_OPTIONS, ACCURACY_OPTIONS = (("task", "spans"),), (("metric", "accuracy"),)
NEGATIVE_OPTIONS = (("positive_label", "negative"),)

REVIEW_SYSTEMS = ("union", "svm_narrow", "neighbours", "logistic_tenth", "tree")
ACCURACY_SYSTEMS = ("bayes", "svm_narrow", "neighbours", "logistic_tenth", "tree")
SENTENCE_SYSTEMS = ("union", "svm_narrow", "bayes", "neighbours", "logistic_tenth")
POST_SYSTEMS = ("svm", "svm_token", "svm_third", "perceptron", "bayes")
"""Systems with a clear best one."""

BENCHMARKS = (
    Benchmark("sentiment, 5 clear, macro-F1, once", "sentiment", REVIEW_SYSTEMS, "once"),
    Benchmark("sentiment, 5 clear, macro-F1", "sentiment", REVIEW_SYSTEMS),
    Benchmark("sentiment, 5 clear, accuracy", "sentiment", ACCURACY_SYSTEMS, options=ACCURACY_OPTIONS),
    Benchmark("sentiment, 5 clear, F of negative", "sentiment", REVIEW_SYSTEMS, options=NEGATIVE_OPTIONS),
    Benchmark("category, 5 clear, accuracy", "category", SENTENCE_SYSTEMS, options=ACCURACY_OPTIONS),
    Benchmark("category, 5 clear, macro-F1", "category", SENTENCE_SYSTEMS),
    Benchmark("spans, 5 clear", "spans", POST_SYSTEMS, options=SPANS_OPTIONS),
    Benchmark("sentiment, any pair, macro-F1", "sentiment", 2),
    Benchmark("category, any pair, accuracy", "category", 2, options=ACCURACY_OPTIONS),
    Benchmark("spans, any pair", "spans", 2, options=SPANS_OPTIONS),
    Benchmark("sentiment, any 5 of 9, macro-F1", "sentiment", 5),
    Benchmark("synthetic, any pair of 40, macro-F1", "synthetic", 2, num_documents=400),
    Benchmark("synthetic, any 5 of 40, macro-F1", "synthetic", 5, num_documents=400),
)


@dataclass(frozen=True)
class Outcome:
    """How one selection ended. `fits` is the class of its best two systems."""

    fits: str
    stopped_by: str
    is_wrong: bool
    num_queries: int


@dataclass(frozen=True)
class ResultRow:
    """Counts of the selections of a cell and a class. `wrong` are those that named a wrong system with confidence."""

    rule: str
    seed: int
    cell: str
    fits: str
    confidence: float
    margin: float
    batch_size: int
    workers: int
    belief: str
    stop: str
    selections: int
    named: int
    wrong: int
    ran_out: int
    mean_queries: float

    @property
    def options(self) -> str:
        """Those that are not the defaults, as one types them."""
        pairs = (("--margin", self.margin or None), ("--batch-size", self.batch_size), ("--workers", self.workers))
        typed = [f"{flag} {value:g}" for flag, value in pairs if value not in (None, 1)]
        named = (("--belief", self.belief), ("--stop", self.stop))
        return " ".join([*typed, *(f"{flag} {value}" for flag, value in named if value != "default")])

    def added_to(self, other: "ResultRow") -> "ResultRow":
        total = self.selections + other.selections
        queries = self.mean_queries * self.selections + other.mean_queries * other.selections
        counts = {name: getattr(self, name) + getattr(other, name) for name in ("named", "wrong", "ran_out")}
        return replace(other, selections=total, mean_queries=queries / total, **counts)

    def cells(self) -> List[str]:
        def counted(count: int, number: int) -> str:
            return f"{count}/{number} = {share_text(count / number, wilson_interval(count, number))}" if number else "-"

        return [
            f"{self.cell}; `{self.options}`" if self.options else self.cell,
            self.fits,
            str(self.confidence),
            str(self.selections),
            f"{self.mean_queries:.0f}",
            counted(self.wrong, self.selections),
            counted(self.wrong, self.named),
            counted(self.ran_out, self.selections),
        ]


@dataclass(frozen=True)
class AnsweredFile:
    """All answers of the systems to the documents of a file: counts of each system, document by document."""

    task: Task
    counts: Mapping[str, Sequence[Mapping[str, float]]]

    @property
    def num_documents(self) -> int:
        return len(next(iter(self.counts.values())))

    def evaluation(self, request: Request, documents: np.ndarray) -> Evaluation:
        """The answers to a batch of documents, counted together."""
        rows = [self.counts[request.candidate][document] for document in documents]
        counts = {kind: sum(row[kind] for row in rows) for kind in rows[0]}
        return Evaluation(request, self.task.score(counts), self.task.metric, metrics=counts)

    def full_history(self, names: Sequence[str]) -> History:
        """The history in which these systems have answered everything."""
        documents = np.arange(self.num_documents)[:, None]
        requests = [make_request(0, name, k, shared_splits=True) for name in names for k in range(len(documents))]
        evaluations = (self.evaluation(request, documents[request.replicate]) for request in requests)
        return History(tuple(names), tuple(evaluations))

    def test_size(self, names: Sequence[str], average: str) -> FixedSize:
        """The fixed size of a test of the pooled metric, by the pseudo-scores of all documents."""
        scores = PairedMeasure(average=average).posterior(self.full_history(names)).pseudo_scores.scores
        return fixed_size({name: system_scores.tolist() for name, system_scores in zip(names, scores, strict=True)})


def prepare(directory: Path, options: Mapping[str, Any]) -> DocumentSelection:
    """As for a new selection among all systems of a task. Nothing is written."""
    paths = sorted(path for path in directory.glob("*.jsonl") if path.name != "documents.jsonl")
    settings = DocumentSettings(systems=tuple(map(str, paths)), documents=str(directory / "documents.jsonl"), **options)
    return DocumentSelection.check(settings, StoredState(RunDirectory(Path())), allow_removed=False)


def ask_all_systems(prepared: DocumentSelection) -> AnsweredFile:
    """All answers of all systems, counted."""
    task, documents = prepared.setup.task, prepared.document_file.documents
    counts: Dict[str, List[Dict[str, float]]] = {}
    for name, system in prepared.systems.items():
        counts[name] = []
        for document in documents:
            answers = system.answers([system.ask(question) for question in system.questions(document)], document, task)
            counts[name].append(task.counts([item.gold for item in document.items], answers))
    return AnsweredFile(task, counts)


class Replayer:
    """Replays selections of a cell. `options` are those of `fiesta documents`."""

    def __init__(self, cell: Benchmark, directory: Path, *, workers: int, **options: Any) -> None:
        self.cell, self.workers = cell, workers
        prepared = prepare(directory / cell.task, {**dict(cell.options), **options})
        self.answered, self.settings = ask_all_systems(prepared), prepared.settings
        self.average = AVERAGE_BY_METRIC[prepared.setup.task.metric]
        self.strategy: LimitedDocuments = prepared.setup.strategy
        self.num_documents = cell.num_documents or self.answered.num_documents
        self.strategy.num_batches = -(-self.num_documents // self.settings.batch_size)
        prepare_belief(self.strategy.strategy)
        self.strategy.belief = self.strategy.strategy.belief
        full_history = self.answered.full_history(list(self.answered.counts))
        self.measures = {name: self.answered.task.measure(full_history, name) for name in full_history.candidates}
        self.class_by_names: Dict[Tuple[str, ...], str] = {}

    def outcomes(self, seed: int, repetitions: range) -> List[Outcome]:
        outcomes: List[Outcome] = []
        for start in repetitions[::SELECTIONS_PER_GROUP]:
            numbers = range(start, min(start + SELECTIONS_PER_GROUP, repetitions.stop))
            outcomes += run_side_by_side(self.strategy, [self.simulate(seed, repetition) for repetition in numbers])
        return outcomes

    def simulate(self, seed: int, repetition: int) -> Generator[History, None, Outcome]:
        """One selection with so many workers, whose queries finish in the order in which they began."""
        rng, number, size = np.random.default_rng([seed, repetition]), self.num_documents, self.settings.batch_size
        names, sampling = self.names(rng), self.cell.sampling
        order = (
            rng.permutation(number) if sampling == "once" else rng.integers(self.answered.num_documents, size=number)
        )
        history = History(names)
        waiting: Deque[Request] = deque()
        while True:
            yield history
            decision = self.strategy.recommend(history)
            if decision.stopped_by is not None:
                break
            for name in self.strategy.propose(history, self.workers - len(waiting), rng):
                replicate = history.num_started(name)
                waiting.append(make_request(seed, name, replicate, shared_splits=True))
                history = history.with_pending([waiting[-1]])
            request = waiting.popleft()
            batch = order[request.replicate * size : (request.replicate + 1) * size]
            history = history.with_finished([self.answered.evaluation(request, batch)])
        correct = find_best({name: self.measures[name] for name in names}, self.settings.margin or 0.0)
        num_queries = sum(min(size, number - run.request.replicate * size) for run in history.evaluations)
        return Outcome(self.test_class(names), str(decision.stopped_by), decision.best not in correct, num_queries)

    def names(self, rng: np.random.Generator) -> Tuple[str, ...]:
        if isinstance(self.cell.systems, int):
            return tuple(sorted(rng.choice(sorted(self.measures), self.cell.systems, replace=False).tolist()))
        return tuple(self.cell.systems)

    def test_class(self, names: Tuple[str, ...]) -> str:
        if names not in self.class_by_names:
            num_needed = self.answered.test_size(names, self.average).baseline_2 or np.inf
            ratio = self.num_documents / num_needed
            self.class_by_names[names] = "twice" if ratio >= 2 else "once" if ratio >= 1 else "near tie"
        return self.class_by_names[names]


def count_outcomes(outcomes: Sequence[Outcome], line: ResultRow) -> Iterator[ResultRow]:
    """The counts of each class of selections."""
    for test_class in CLASSES:
        class_outcomes = [outcome for outcome in outcomes if outcome.fits == test_class]
        named_outcomes = [outcome for outcome in class_outcomes if outcome.stopped_by != "documents"]
        if class_outcomes:
            yield replace(
                line,
                fits=test_class,
                selections=len(class_outcomes),
                named=len(named_outcomes),
                wrong=sum(outcome.is_wrong for outcome in named_outcomes),
                ran_out=len(class_outcomes) - len(named_outcomes),
                mean_queries=round(float(np.mean([outcome.num_queries for outcome in class_outcomes])), 1),
            )


def pool_rows(lines: Sequence[ResultRow], rules: Sequence[str]) -> List[ResultRow]:
    """The counts of these rules, added up over the lines that have the rest in common."""
    sums: Dict[ResultRow, ResultRow] = {}
    for line in lines:
        if line.rule in rules:
            key = replace(line, rule="", seed=0, selections=0, named=0, wrong=0, ran_out=0, mean_queries=0.0)
            sums[key] = line.added_to(sums.get(key, key))
    return sorted(sums.values(), key=lambda line: (line.cell, line.options, CLASSES.index(line.fits), line.confidence))


def size_rows(lines: Sequence[ResultRow], directory: Path) -> Iterator[List[str]]:
    """For each cell of clear systems, the queries of tests of a fixed size, beside those of the selections."""
    for cell in BENCHMARKS:
        by_target = {line.confidence: line for line in lines if line.cell == cell.name and not line.options}
        if isinstance(cell.systems, int) or not WRONG_HEADINGS.keys() <= by_target.keys():
            continue
        replayer = Replayer(cell, directory, workers=1, confidence=0.95)
        size = replayer.answered.test_size(cell.systems, replayer.average)
        second, best = sorted(replayer.measures[name] for name in cell.systems)[-2:]
        yield [
            cell.name,
            f"{best - second:.3f}",
            str(2 * (size.baseline_2 or 0)),
            str(len(cell.systems) * (size.baseline_all or 0)),
            f"{by_target[0.95].mean_queries:.0f}",
            *(by_target[target].cells()[5] for target in WRONG_HEADINGS),
        ]


def update_page(page: str, lines: Sequence[ResultRow], directory: Path) -> str:
    """The page with the table of clear systems, beside tests of a fixed size."""
    return replace_tables(page, TABLE_PATTERN, lambda block: [list(SIZE_HEADINGS), *size_rows(lines, directory)])


def rows(args: Any, seed: int) -> Iterator[List[str]]:
    for cell in BENCHMARKS:
        if re.search(args.only, cell.name):
            for confidence in args.confidences:
                stop_option: Dict[str, Any] = {"budget": args.budget} if args.budget else {"confidence": confidence}
                options = {**stop_option, "margin": args.margin or None, "batch_size": args.batch_size}
                if args.belief:
                    options["belief"] = args.belief
                replayer = Replayer(cell, args.directory, workers=args.workers, stop=args.stop, **options)
                rules = (args.belief or "default", args.stop or "default")
                columns = (confidence, args.margin, args.batch_size, args.workers, *rules)
                line = ResultRow(rule_commit(), seed, cell.name, "", *columns, 0, 0, 0, 0, 0.0)
                results = list(count_outcomes(replayer.outcomes(seed, range(args.repetitions)), line))
                append_rows([asdict(result) for result in results], args.results)
                yield from (result.cells() for result in results)


def main(argv: Optional[Sequence[str]] = None) -> None:
    parser = make_parser(__doc__, repetitions=200, only="the cells whose name")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--confidences", type=float, nargs="*", default=[0.8, 0.9, 0.95])
    parser.add_argument("--belief", help="instead of the default")
    parser.add_argument("--stop", help="instead of the default")
    parser.add_argument("--margin", type=float, default=0.0)
    parser.add_argument("--budget", type=int)
    parser.add_argument("--batch-size", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--pool", action="store_true", help="measure nothing, but write the pooled table")
    args = parser.parse_args(argv)
    if args.pool:
        lines = pool_rows(read_rows(args.results, ResultRow), FINAL_RULE.read_text().split())
        PAGE.write_text(update_page(PAGE.read_text(encoding="utf-8"), lines, args.directory), encoding="utf-8")
        return
    seed = secrets.randbits(32)
    show(f"Master seed {seed}, rule {rule_commit()}\n")
    print_table(HEADINGS, rows(args, seed))


if __name__ == "__main__":
    main()
