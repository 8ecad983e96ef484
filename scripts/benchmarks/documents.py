"""How many queries it takes to find the best of several trained systems: one document after the other in random orders,
from predictions that were made once, beside the fixed sizes of a power analysis (Haffari et al., 2017, section 4.1).

    python scripts/benchmarks/documents.py DIRECTORY --repetitions 200

DIRECTORY holds `documents.jsonl` and a file of predictions of each system, `NAME.jsonl`. Prints a table.
"""

import itertools
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

os.environ.update({"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"})

import numpy as np
from common import make_parser, print_table, show
from power_analysis import fixed_size

import fiesta_allennlp.plugin  # noqa: F401
from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.documents.select import DOCUMENTS, PreparedDocuments
from fiesta_allennlp.documents.settings import DocumentSettings
from fiesta_allennlp.records import Evaluation, History, Request
from fiesta_allennlp.seeding import REPLAY_STRATEGY_STREAM, make_request, replay_rng
from fiesta_allennlp.selection.family import Resumed

STRATEGIES: Dict[str, Any] = {
    "top_two": "top_two",
    "PETS (beta 0.5)": {"type": "ttts", "beta": 0.5},
    "Thompson sampling": {"type": "ttts", "beta": 1.0},
    "all in turn": "non_adaptive_fc",
}
BELIEFS: Dict[str, Any] = {
    "dirichlet_f_measure": "dirichlet_f_measure",
    "with a learned concentration": {"type": "dirichlet_f_measure", "learn_concentration": True},
    "student_t": "student_t",
    "split_paired": "split_paired",
}
"""`student_t` on independent scores is the paper's Gaussian belief."""


HEADINGS = ("order", "belief", "strategy", "queries, mean", "median", "5-95 %", "correct", "documents ran out")


@dataclass(frozen=True)
class Answered:
    """Every document's score and counts through one system, in the file's order."""

    scores: Sequence[float]
    counts: Sequence[Mapping[str, float]]

    def evaluation(self, request: Request, document: int) -> Evaluation:
        return Evaluation(request, self.scores[document], "", metrics=self.counts[document])


@dataclass(frozen=True)
class Replayed:
    """What one selection came to."""

    best: Optional[str]
    stopped_by: Optional[str]
    num_queries: int


def prepare(settings: DocumentSettings) -> PreparedDocuments:
    """As for a new selection. Nothing is written."""
    return DOCUMENTS.check(settings, Resumed(RunDirectory(Path())), allow_removed=False)


def ask_all(prepared: PreparedDocuments) -> Dict[str, Answered]:
    """All answers of all systems, counted."""
    found: Dict[str, Answered] = {}
    task = prepared.choice.task
    for name, system in prepared.systems.items():
        counts = []
        for document in prepared.file.documents:
            raw = [system.ask(question) for question in system.questions(document)]
            golds = [item.gold for item in document.items]
            counts.append(task.counts(golds, system.answers(raw, document, task)))
        found[name] = Answered([task.score(one) for one in counts], counts)
    return found


def replay(prepared: PreparedDocuments, answered: Mapping[str, Answered], seed: int) -> Replayed:
    """One selection in a random order of the documents, without a query."""
    names, choice = list(answered), prepared.choice
    shared = choice.settings.documents_order == "shared"
    orders = choice.orders(names, seed)
    rng = replay_rng(seed, REPLAY_STRATEGY_STREAM, 0)
    history = History(tuple(names))
    decision = choice.strategy.recommend(history)
    while decision.stopped_by is None:
        evaluations: List[Evaluation] = []
        for name in choice.strategy.propose(history, 1, rng):
            request = make_request(seed, name, history.num_started(name), shared_splits=shared)
            evaluations.append(answered[name].evaluation(request, int(orders[name][request.replicate])))
        history = history.after(evaluations)
        decision = choice.strategy.recommend(history)
    return Replayed(decision.best, decision.stopped_by, len(history.evaluations))


def settings_of(directory: Path, systems: Sequence[str], **options: Any) -> DocumentSettings:
    """The settings of a selection among these systems, all that are there where none are named."""
    found = sorted(path.stem for path in directory.glob("*.jsonl") if path.name != "documents.jsonl")
    paths = [str(directory / f"{name}.jsonl") for name in systems or found]
    return DocumentSettings(systems=tuple(paths), documents=str(directory / "documents.jsonl"), **options)


def replay_many(task: Tuple[DocumentSettings, range]) -> List[Replayed]:
    settings, seeds = task
    prepared = prepare(settings)
    answered = ask_all(prepared)
    return [replay(prepared, answered, seed) for seed in seeds]


def true_measures(prepared: PreparedDocuments, answered: Mapping[str, Answered]) -> Dict[str, float]:
    """The metric of every system over the whole file."""
    evaluations = [
        one.evaluation(make_request(0, name, k, shared_splits=True), k)
        for name, one in answered.items()
        for k in range(len(one.scores))
    ]
    history = History(tuple(answered), tuple(evaluations))
    return {name: prepared.choice.strategy.measure(history, name) for name in answered}


def main() -> None:
    parser = make_parser(__doc__, repetitions=200)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--systems", nargs="*", default=[], help="take only these")
    parser.add_argument("--metric", default=None, help="accuracy, instead of macro_f1")
    parser.add_argument("--margin", type=float, default=None)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--strategies", nargs="*", default=list(STRATEGIES), choices=list(STRATEGIES))
    parser.add_argument("--beliefs", nargs="*", default=list(BELIEFS), choices=list(BELIEFS))
    parser.add_argument("--orders", nargs="*", default=["shared", "independent"])
    args = parser.parse_args()
    common = {"metric": args.metric, "margin": args.margin}
    prepared = prepare(settings_of(args.directory, args.systems, belief="student_t", **common))
    answered = ask_all(prepared)
    measures = true_measures(prepared, answered)
    show_systems(prepared, answered, measures)
    right = [name for name in measures if measures[name] >= max(measures.values()) - (args.margin or 0)]
    chunks = [range(i, args.repetitions, 4 * args.processes) for i in range(4 * args.processes)]

    def row(order: str, belief: str, strategy: str) -> List[str]:
        how = {"strategy": STRATEGIES[strategy], "belief": BELIEFS[belief], "documents_order": order}
        settings = settings_of(args.directory, args.systems, **how, **common)
        results = pool.map(replay_many, [(settings, chunk) for chunk in chunks if chunk])
        return [order, belief, strategy, *in_cells(list(itertools.chain.from_iterable(results)), right)]

    with ProcessPoolExecutor(args.processes) as pool:
        print_table(HEADINGS, itertools.starmap(row, itertools.product(args.orders, args.beliefs, args.strategies)))


def in_cells(results: Sequence[Replayed], right: Sequence[str]) -> List[str]:
    """Queries, the share that named one of `right`, and the share that went through all documents."""
    queries = np.array([result.num_queries for result in results])
    low, high = np.percentile(queries, [5, 95])
    correct = sum(result.best in right for result in results) / len(results)
    ran_out = sum(result.stopped_by == "documents" for result in results) / len(results)
    mean, median = queries.mean(), np.median(queries)
    return [f"{mean:.0f}", f"{median:.0f}", f"{low:.0f} to {high:.0f}", f"{correct:.1%}", f"{ran_out:.1%}"]


def show_systems(prepared: PreparedDocuments, answered: Mapping[str, Answered], measures: Mapping[str, float]) -> None:
    """The systems' measures over the whole file, and what tests of a fixed size need."""
    number, metric = len(prepared.file.documents), prepared.choice.task.metric
    show(f"{number} documents with {prepared.file.num_items} items; {metric} over all of them:")
    for name in sorted(measures, key=lambda key: -measures[key]):
        show(f"  {name}: {measures[name]:.4f} (mean of the documents' own {np.mean(answered[name].scores):.4f})")
    found = fixed_size({name: one.scores for name, one in answered.items()})
    if found.baseline_2 is not None and found.baseline_all is not None:
        num_systems = len(answered)
        show(
            f"Fixed size for {found.best} against {found.second} (effect {found.effect:.3f}): Baseline2 "
            f"{found.baseline_2} documents, {2 * found.baseline_2} queries; BaselineK-1 {found.baseline_all} "
            f"documents, {num_systems * found.baseline_all} queries. There are {number} documents, "
            f"{num_systems * number} queries.\n"
        )


if __name__ == "__main__":
    main()
