"""From the settings of a selection by documents to checked systems: all that is done before the first query."""

import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional

import numpy as np
from rich.console import Console

from fiesta_allennlp.document_limit import LimitedDocuments
from fiesta_allennlp.document_settings import DocumentSettings
from fiesta_allennlp.document_systems import (
    GivenSystem,
    build_systems,
    close_systems,
    given_systems,
    open_systems,
)
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.evaluators.answer_store import AnswerStore, system_key
from fiesta_allennlp.evaluators.document_file import DocumentFile, field_names, read_documents
from fiesta_allennlp.evaluators.document_tasks import Task
from fiesta_allennlp.evaluators.systems.base import System
from fiesta_allennlp.records import COUNT_PREFIX, History
from fiesta_allennlp.run_directory import RunDirectory
from fiesta_allennlp.seeding import document_order
from fiesta_allennlp.strategy_building import build_strategy


@dataclass(frozen=True)
class Prepared:
    """Settings that were checked, and what they come to: no system is open yet."""

    settings: DocumentSettings
    task: Task
    file: DocumentFile
    given: Mapping[str, GivenSystem]
    systems: Mapping[str, System]
    strategy: LimitedDocuments
    strategy_params: Mapping[str, Any]

    @property
    def num_batches(self) -> int:
        return self.strategy.num_batches


@dataclass(frozen=True)
class DocumentPlan:
    """What a dry run tells: `kept` are answers that are there, by system. `least` and `most` are evaluations."""

    prepared: Prepared
    kept: Mapping[str, int]
    least: int
    most: int


def prepare(settings: DocumentSettings, *, order: List[str]) -> Prepared:
    """Read and check everything. Systems come in this order of names, and the others after them.

    # Raises

    `FiestaError` : on the first thing that is wrong.
    """
    if not settings.documents:
        raise ConfigError("--documents is missing: give a JSONL file of documents with their gold annotation.")
    task = Task.by_name(settings.task)(positive_label=settings.positive_label, metric=settings.metric)
    typed = given_systems(settings.systems)
    given = {name: typed[name] for name in sorted(typed, key=lambda n: order.index(n) if n in order else len(order))}
    file = read_documents(Path(settings.documents), task, field_names(settings.fields))
    num_batches = -(-len(file.documents) // settings.batch_size)
    believing = settings.believing(task.metric)
    inner = build_strategy(believing.until_documents_end(), list(given), has_counts=True)
    strategy = LimitedDocuments(inner, num_batches=num_batches, measure=measure_of(task))
    strategy.check(list(given))
    systems = build_systems(given, file)
    return Prepared(settings, task, file, given, systems, strategy, believing.strategy_params())


def measure_of(task: Task) -> Callable[[History, str], float]:
    """The task's score of all counts of a candidate together, in which a document counts by its size."""

    def measure(history: History, name: str) -> float:
        counts = history.counts(name)
        sums = counts.values.sum(axis=0).tolist()
        return task.score({COUNT_PREFIX + kind: total for kind, total in zip(counts.kinds, sums, strict=True)})

    return measure


def orders_of(settings: DocumentSettings, names: List[str], num_documents: int, entropy: int) -> Dict[str, np.ndarray]:
    """The order of the documents for every system. Shape of each: `(num_documents,)`."""
    shared = settings.documents_order == "shared"
    return {name: document_order(entropy, num_documents, None if shared else name) for name in names}


def plan_documents(settings: DocumentSettings, directory: Optional[Path], console: Console) -> DocumentPlan:
    """Check everything and open every system once. Asks nothing, costs nothing, and writes nothing that stays.

    # Raises

    `FiestaError` : as `select_system`.
    """
    prepared = prepare(settings, order=[])
    with tempfile.TemporaryDirectory() as scratch:
        open_prepared(prepared, RunDirectory(Path(scratch)), console)
        close_systems(prepared.systems)
    path = answers_path(settings, directory)
    kept: Dict[str, int] = {}
    if path is not None and path.exists():
        with closing(AnswerStore(path, run="")) as answers:
            kept = {name: answers.num_kept(system_key(s.identity())) for name, s in prepared.systems.items()}
    least, most = prepared.strategy.bounds(len(prepared.systems))
    return DocumentPlan(prepared, kept, least, most)


def open_prepared(prepared: Prepared, directory: RunDirectory, console: Console) -> None:
    """Start what has to run, with a log in the directory."""
    console.print(f"Opening {len(prepared.systems)} systems ...", highlight=False)
    open_systems(
        prepared.systems,
        prepared.given,
        log=directory.system_log,
        time_limit=prepared.settings.time_limit,
        packages=prepared.settings.include_package,
    )


def answers_path(settings: DocumentSettings, directory: Optional[Path]) -> Optional[Path]:
    """Where answers are kept; None where that is nowhere yet."""
    if settings.answers is not None:
        return Path(settings.answers)
    return None if directory is None else RunDirectory(directory).answers
