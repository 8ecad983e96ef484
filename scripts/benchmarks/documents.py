"""Measure how often `fiesta documents` names a wrong system at 0.95, on answers that were made before.

    OMP_NUM_THREADS=1 python scripts/benchmarks/documents.py DIRECTORY --repetitions 40
    python scripts/benchmarks/documents.py --pool

DIRECTORY/TASK has `documents.jsonl` and the answers `NAME.jsonl` of each system. A selection draws as many documents as
there are with replacement. Its best system has the highest metric on the whole file. Every call draws a new seed,
prints it, and appends its counts to `results/documents.csv`, by how many documents a t-test of the best two systems
needs (`power_analysis.py`): half of the documents, all of them, or more. `--pool` adds up the lines of the final rule
and writes the table of the page.
"""

import re
from collections import defaultdict
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from common import (
    BENCHMARKS,
    add_record_options,
    append_rows,
    make_parser,
    print_table,
    read_final_rows,
    replace_tables,
    rule_id,
    start_call,
    write_tables,
)
from power_analysis import num_documents

from fiesta_allennlp.choosing.beliefs import PairedMeasure
from fiesta_allennlp.core.records import COUNT_PREFIX, Evaluation, History
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.documents.document_selection import DocumentSelection
from fiesta_allennlp.documents.document_settings import AVERAGE_BY_METRIC, DocumentSettings
from fiesta_allennlp.selecting.session import StoredState

RESULTS = BENCHMARKS / "results" / "documents.csv"
PAGE = BENCHMARKS / "README.md"
TABLE_PATTERN = re.compile(r"(<!-- documents -->\n).*?(<!-- end -->)", flags=re.S)
CLASSES = {"twice": "at most half of the documents", "once": "at most all of them", "near tie": "more: near ties"}
"""How many documents a t-test of the best two systems needs, and how the pages name it."""

HEADINGS = ("the test needs", "selections", "named", "wrong", "documents ran out", "mean queries")


@dataclass(frozen=True)
class Benchmark:
    """Selections on the file of a task. `systems` are names, or how many are drawn each time; `options` are those of
    `fiesta documents`."""

    name: str
    task: str
    systems: Any
    options: Mapping[str, Any]


REVIEWS = ("union", "svm_narrow", "neighbours", "logistic_tenth", "tree")
SENTENCES = ("union", "svm_narrow", "bayes", "neighbours", "logistic_tenth")
POSTS = ("svm", "svm_token", "svm_third", "perceptron", "bayes")
BENCHMARKS_OF_DOCUMENTS = (
    Benchmark("sentiment, 5 clear, macro-F1", "sentiment", REVIEWS, {}),
    Benchmark("sentiment, 5 clear, accuracy", "sentiment", ("bayes", *REVIEWS[1:]), {"metric": "accuracy"}),
    Benchmark("sentiment, 5 clear, F of negative", "sentiment", REVIEWS, {"positive_label": "negative"}),
    Benchmark("category, 5 clear, accuracy", "category", SENTENCES, {"metric": "accuracy"}),
    Benchmark("category, 5 clear, macro-F1", "category", SENTENCES, {}),
    Benchmark("spans, 5 clear", "spans", POSTS, {"task": "spans"}),
    Benchmark("sentiment, any pair, macro-F1", "sentiment", 2, {}),
    Benchmark("category, any pair, accuracy", "category", 2, {"metric": "accuracy"}),
    Benchmark("spans, any pair", "spans", 2, {"task": "spans"}),
    Benchmark("synthetic, any pair, macro-F1", "synthetic", 2, {}),
)


@dataclass(frozen=True)
class ResultRow:
    """Counts of the selections of a cell and a class. `ran_out` had asked about all documents."""

    rule: str
    seed: int
    cell: str
    fits: str
    selections: int
    named: int
    wrong: int
    ran_out: int
    queries: int


@dataclass(frozen=True)
class Replayer:
    """Replays selections of a benchmark."""

    benchmark: Benchmark
    selection: DocumentSelection

    @classmethod
    def of(cls, benchmark: Benchmark, directory: Path) -> "Replayer":
        folder = directory / benchmark.task
        systems = sorted(str(path) for path in folder.glob("*.jsonl") if path.stem != "documents")
        settings = DocumentSettings(
            systems=tuple(systems), documents=str(folder / "documents.jsonl"), confidence=0.95, **benchmark.options
        )
        return cls(benchmark, DocumentSelection.check(settings, StoredState()))

    @cached_property
    def counts(self) -> Dict[str, List[Dict[str, int]]]:
        """The counts of each system, document by document."""
        task, documents = self.selection.setup.task, self.selection.document_file.documents

        def count(system: Any) -> Iterator[Dict[str, int]]:
            for document in documents:
                answers = system.answers(
                    [system.ask(question) for question in system.questions(document)], document, task
                )
                yield task.counts([item.gold for item in document.items], answers)

        return {name: list(count(system)) for name, system in self.selection.systems.items()}

    @cached_property
    def full_history(self) -> History:
        """The history in which all systems have answered about all documents."""
        num_documents = len(next(iter(self.counts.values())))
        runs = tuple(self.evaluation(name, k, k) for name in self.counts for k in range(num_documents))
        return History(tuple(self.counts), runs)

    def evaluation(self, name: str, replicate: int, document: int) -> Evaluation:
        task, counts = self.selection.setup.task, self.counts[name][document]
        request = make_request(0, name, replicate, shared_splits=True)
        metrics = {COUNT_PREFIX + cell: float(number) for cell, number in counts.items()}
        return Evaluation(request, task.score(counts), task.metric, metrics=metrics)

    @cached_property
    def measures(self) -> Dict[str, float]:
        return {name: self.selection.setup.task.measure(self.full_history, name) for name in self.counts}

    @cached_property
    def pseudo_scores(self) -> Dict[str, np.ndarray]:
        belief = PairedMeasure(average=AVERAGE_BY_METRIC[self.selection.setup.task.metric])
        return dict(zip(self.counts, belief.posterior(self.full_history).pseudo_scores.scores, strict=True))

    def class_of(self, names: Sequence[str]) -> str:
        """Return how the number of documents compares with those that a test of the best two systems needs."""
        second, best = sorted(names, key=lambda name: self.measures[name])[-2:]
        lead = self.pseudo_scores[best] - self.pseudo_scores[second]
        number = num_documents(float(lead.mean() / lead.std(ddof=1)))
        ratio = len(lead) / number if number else 0
        return "twice" if ratio >= 2 else "once" if ratio >= 1 else "near tie"

    def simulate(self, rng: np.random.Generator) -> Tuple[str, bool, bool, int]:
        """Make a selection. Return its class, whether it named a system, whether a wrong one, and its queries."""
        systems = self.benchmark.systems
        names = tuple(rng.choice(sorted(self.counts), systems, replace=False)) if isinstance(systems, int) else systems
        strategy, history = self.selection.setup.strategy, History(tuple(map(str, names)))
        num_documents = len(self.counts[names[0]])
        order = rng.integers(num_documents, size=num_documents)
        while (decision := strategy.recommend(history)).stopped_by is None:
            for name in strategy.propose(history, 1, rng):
                replicate = history.num_started(name)
                history = history.with_finished([self.evaluation(name, replicate, order[replicate])])
        is_named = decision.stopped_by == "confidence"
        is_wrong = self.measures[str(decision.best)] < max(self.measures[name] for name in names)
        return self.class_of(names), is_named, is_named and is_wrong, len(history.evaluations)


def measure(benchmark: Benchmark, directory: Path, repetitions: int, seed: int) -> Iterator[ResultRow]:
    """Simulate selections, and count by class."""
    replayer = Replayer.of(benchmark, directory)
    groups: Dict[str, List[Any]] = defaultdict(list)
    for repetition in range(repetitions):
        fits, *counts = replayer.simulate(np.random.default_rng([seed, repetition]))
        groups[fits].append(counts)
    for fits, group in groups.items():
        named, wrong, queries = (int(sum(column)) for column in zip(*group, strict=True))
        number = len(group)
        yield ResultRow(rule_id(), seed, benchmark.name, fits, number, named, wrong, number - named, queries)


def table_rows(lines: Sequence[ResultRow]) -> Iterator[Tuple[str, ...]]:
    """The counts of each class, added up."""
    for fits, title in CLASSES.items():
        group = [line for line in lines if line.fits == fits]
        if group:
            sums = {name: sum(getattr(line, name) for line in group) for name in ("selections", "named", "wrong")}
            ran_out, queries = (sum(getattr(line, name) for line in group) for name in ("ran_out", "queries"))
            counts = (f"{count:,}" for count in (*sums.values(), ran_out))
            yield title, *counts, f"{queries / sums['selections']:.0f}"


def with_tables(page: str) -> str:
    """The page with the table of all recorded lines of the final rule."""
    lines = read_final_rows(RESULTS, ResultRow)
    return replace_tables(page, TABLE_PATTERN, lambda match: [HEADINGS, *table_rows(lines)])


def main(arguments: Optional[Sequence[str]] = None) -> None:
    parser = make_parser(__doc__, repetitions=40, only="cells whose name")
    parser.add_argument("directory", type=Path, nargs="?")
    add_record_options(parser, RESULTS)
    args = parser.parse_args(arguments)
    if args.pool:
        return write_tables([PAGE], with_tables)
    seed = start_call(args.seed)

    def rows() -> Iterator[Tuple[object, ...]]:
        for benchmark in BENCHMARKS_OF_DOCUMENTS:
            if re.search(args.only, benchmark.name):
                lines = list(measure(benchmark, args.directory, args.repetitions, seed))
                append_rows(lines, args.results)
                yield from (tuple(asdict(line).values())[2:] for line in lines)

    print_table(("cell", "the test fits", *HEADINGS[1:-1], "queries"), rows())


if __name__ == "__main__":
    main()
