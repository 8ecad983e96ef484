"""Builds the strategy of a selection by documents and its summary, for the command and for reports."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp.counts import COUNT_PREFIX
from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.documents.answers import Charge
from fiesta_allennlp.documents.evaluator import batch_of
from fiesta_allennlp.documents.limit import LimitedDocuments
from fiesta_allennlp.documents.settings import DocumentSettings
from fiesta_allennlp.documents.summary import SystemSummary
from fiesta_allennlp.documents.tasks import Task
from fiesta_allennlp.probability.power import fixed_size
from fiesta_allennlp.records import Decision, History
from fiesta_allennlp.registry import build
from fiesta_allennlp.seeding import document_order
from fiesta_allennlp.selection.strategy_building import build_strategy
from fiesta_allennlp.selection.summary import CandidateSummary, summarise

DocumentsOf = Callable[[str, int], Tuple[int, ...]]
"""Gives the documents of a candidate's replicate."""

ABOUT_TRAININGS = ("seconds_of_equal_allocation", "ahead_on_shared_splits")


@dataclass(frozen=True)
class DocumentFacts:
    """Facts about the documents in the store; `file` is the file that they were read from."""

    file: str
    num_documents: int
    num_items: int


@dataclass(frozen=True)
class DocumentChoice:
    """Task, strategy and orders of a selection by documents. The settings are complete and checked."""

    settings: DocumentSettings
    facts: DocumentFacts
    task: Task
    strategy: LimitedDocuments
    strategy_params: Mapping[str, Any]

    @classmethod
    def of(cls, settings: DocumentSettings, task: Task, facts: DocumentFacts, names: Sequence[str]) -> "DocumentChoice":
        """Build the choice from the settings.

        Raises:
            ConfigError: where settings contradict each other, or the documents are too few to begin with.
        """
        believing = settings.believing(task.metric)
        inner = build_strategy(believing.until_documents_end(), list(names), has_counts=True)
        num_batches = -(-facts.num_documents // settings.batch_size)
        strategy = LimitedDocuments(inner, num_batches=num_batches, measure=_measure_of(task))
        strategy.check(list(names))
        return cls(settings, facts, task, strategy, believing.strategy_params())

    def orders(self, names: Sequence[str], seed: int) -> Dict[str, np.ndarray]:
        """Return the order of the documents for every system. Shape of each: `(num_documents,)`."""
        shared = self.settings.documents_order == "shared"
        return {name: document_order(seed, self.facts.num_documents, None if shared else name) for name in names}

    def summary(
        self, history: History, decision: Decision, *, seed: str, charges: Optional[Mapping[str, Charge]]
    ) -> Dict[str, Any]:
        """Return the content of `selection.json`: the summary of any selection with the facts about documents, and
        without those about training runs. `charges` is None if the file of answers is not there."""
        orders = self.orders(history.candidates, int(seed))
        size = self.settings.batch_size

        def documents_of(name: str, replicate: int) -> Tuple[int, ...]:
            return batch_of(orders[name], replicate, size)

        about = {
            "metric": self.task.metric,
            "task": self.settings.task,
            "positive_label": self.settings.positive_label,
            "strategy": dict(self.strategy_params),
            "belief": self.strategy_params["belief"],
            "seed": seed,
            "documents": {**asdict(self.facts), "order": self.settings.documents_order, "batch_size": size},
        }
        whole = summarise(history, decision, about)
        systems = [self._system(each, history, charges, documents_of) for each in whole["candidates"]]
        known = charges is not None
        return {
            **{key: value for key, value in whole.items() if key not in (*ABOUT_TRAININGS, "candidates")},
            "num_queries": sum(system.num_queries or 0 for system in systems) if known else None,
            "cost": sum(system.cost or 0.0 for system in systems) if known else None,
            "fixed_size": _fixed_size(history, documents_of),
            "candidates": systems,
        }

    def _system(
        self,
        summary: CandidateSummary,
        history: History,
        charges: Optional[Mapping[str, Charge]],
        documents_of: DocumentsOf,
    ) -> SystemSummary:
        name = summary.name
        replicates = [evaluation.request.replicate for evaluation in history.evaluations_of(name)]
        num_queries, cost = (None, None) if charges is None else charges.get(name, (0, 0.0))
        return SystemSummary(
            **vars(summary),
            measure=self.strategy.measure(history, name) if replicates else None,
            num_documents=sum(len(documents_of(name, replicate)) for replicate in replicates),
            num_queries=num_queries,
            cost=cost,
        )


def task_of(settings: DocumentSettings) -> Task:
    """Build the task from the settings.

    Raises:
        ConfigError: where the metric or the positive label does not go with the task.
    """
    return build(Task, {"type": settings.task}, positive_label=settings.positive_label, metric=settings.metric)


def answers_path(settings: DocumentSettings, directory: Optional[Path]) -> Optional[Path]:
    """Return the directory of the answers; None while there is none."""
    if settings.answers is not None:
        return Path(settings.answers)
    return None if directory is None else RunDirectory(directory).answers


def _measure_of(task: Task) -> Callable[[History, str], float]:
    """Return the task's score of all counts of a candidate together, in which a document counts by its size."""

    def measure(history: History, name: str) -> float:
        counts = history.counts(name)
        sums = counts.values.sum(axis=0).tolist()
        return task.score({COUNT_PREFIX + kind: total for kind, total in zip(counts.kinds, sums, strict=True)})

    return measure


def _fixed_size(history: History, documents_of: DocumentsOf) -> Any:
    """Return the sizes of tests for the difference that was seen; None where too little is known. In documents."""
    scores: Dict[str, Dict[int, float]] = {name: {} for name in history.active}
    batches: Dict[Tuple[int, ...], int] = {}
    for evaluation in history.evaluations:
        name, replicate = evaluation.request.key
        if name in scores:
            batch = documents_of(name, replicate)
            scores[name][batches.setdefault(batch, len(batches))] = evaluation.score
    found = fixed_size(scores) if len(scores) > 1 else None
    if found is None:
        return None
    size = max(map(len, batches))
    facts = asdict(found)
    for key in ("baseline_2", "baseline_all"):
        facts[key] = None if facts[key] is None else facts[key] * size
    facts["effect"] = None if abs(facts["effect"]) == float("inf") else facts["effect"]
    return facts
