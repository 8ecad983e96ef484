"""The strategy of a selection by documents, which run out, and its result, for the command and for reports."""

import math
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp.beliefs import Belief
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.records import CredibleMargin, Decision, History
from fiesta_allennlp.core.registry import build
from fiesta_allennlp.core.seeding import document_order
from fiesta_allennlp.documents.answers import Charge
from fiesta_allennlp.documents.result import DocumentsResult, SystemResult
from fiesta_allennlp.documents.settings import ABOUT_MEASURES, OF_THE_PAPER, DocumentSettings
from fiesta_allennlp.documents.tasks import Task
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.strategy_building import build_strategy
from fiesta_allennlp.strategies import FixedConfidence, Strategy
from fiesta_allennlp.strategies.base import Analysis, fill_evenly
from fiesta_allennlp.strategies.stopping_rules import BayesianStop, StoppingRule, find_lead, rule_of_three_runs

STARTS = 3
"""Documents, or batches, that every system begins with."""


class LimitedDocuments(Strategy):
    """Limits another strategy to `num_batches` runs of each candidate, because documents run out.

    A candidate that has been through all documents is replaced by the one that is most probably best among the others.
    The selection ends with `stopped_by` `documents` when nothing more can be learnt from this file: all candidates that
    together are best with the strategy's confidence have been through it. The best is then the candidate with the
    highest `measure` over the whole file, which is not an estimate. If fewer than two candidates answered anything, it
    ends with `failures`, because there is nothing to compare.
    """

    def __init__(self, strategy: Strategy, *, num_batches: int, measure: Callable[[History, str], float]) -> None:
        self.strategy = strategy
        self.belief = strategy.belief
        self.num_batches = num_batches
        self.measure = measure
        self._latest: Tuple[Optional[History], Dict[str, int]] = (None, {})

    def check(self, candidates: List[str]) -> None:
        self.strategy.check(candidates)
        needed = self.strategy.num_starts if isinstance(self.strategy, FixedConfidence) else 1
        if self.num_batches < needed:
            raise ConfigError(
                f"the first queries need at least {needed} documents, or batches of documents, but the file has only "
                f"{self.num_batches}. Add documents or use a smaller --batch-size."
            )

    def check_room(self, history: History) -> None:
        self.strategy.check_room(history)

    def propose(self, history: History, slots: int, rng: np.random.Generator) -> List[str]:
        remaining = dict(self._remaining(history))
        chosen: List[str] = []
        for name in self.strategy.propose(history, slots, rng):
            replacement = name if remaining[name] else self._substitute(history, remaining)
            if replacement is not None:
                remaining[replacement] -= 1
                chosen.append(replacement)
        return chosen

    def recommend(self, history: History) -> Decision:
        decision = self.strategy.recommend(history)
        if decision.stopped_by in ("confidence", "failures", "budget"):
            return decision
        exhausted = self._exhausted(history)
        if not exhausted or not self._is_enough(history, decision, exhausted):
            return decision
        answered = [name for name in history.active if history.num_finished(name)]
        if len(answered) < 2:
            return replace(decision, best=answered[0] if answered else None, stopped_by="failures")
        best = max(set(exhausted).intersection(answered) or answered, key=lambda name: self.measure(history, name))
        return replace(decision, best=best, stopped_by="documents")

    def credible_margin(self, history: History) -> Optional[CredibleMargin]:
        return self.strategy.credible_margin(history)

    def expected_loss(self, history: History) -> Optional[float]:
        return self.strategy.expected_loss(history)

    def bounds(self, num_candidates: int) -> "tuple[int, int]":
        least, most = self.strategy.bounds(num_candidates)
        most = min(most, num_candidates * self.num_batches)
        return min(least, most), most

    def _is_enough(self, history: History, decision: Decision, exhausted: List[str]) -> bool:
        if len(exhausted) == len(history.active):
            return True
        if not isinstance(self.strategy, FixedConfidence):
            # The documents that its plan asks for next do not exist, and nothing else is part of the plan.
            next_names = self.strategy.propose(history, 1, np.random.default_rng(0))
            return not history.pending and bool(next_names) and next_names[0] in exhausted
        total = sum(decision.prob_best.get(name, 0.0) for name in exhausted)
        return len(exhausted) > 1 and total >= self.strategy.confidence

    def _exhausted(self, history: History) -> List[str]:
        """Return the systems that have finished with all documents, even if they failed on each."""
        pending = Counter(request.candidate for request in history.pending)
        remaining = self._remaining(history)
        return [name for name in history.active if not remaining[name] and not pending[name]]

    def _substitute(self, history: History, remaining: Dict[str, int]) -> Optional[str]:
        if not isinstance(self.strategy, FixedConfidence):
            return None
        prob_best = self.strategy.recommend(history).prob_best
        open_ = [name for name in history.active if remaining[name]]
        return max(open_, key=lambda name: (prob_best.get(name, 0.0), remaining[name]), default=None)

    def _remaining(self, history: History) -> Dict[str, int]:
        """Return the number of batches left for each candidate. Failed ones count as asked."""
        if self._latest[0] is not history:
            used = dict.fromkeys(history.candidates, 0)
            ended = [e.request for e in history.evaluations] + [f.request for f in history.failures]
            for request in [*ended, *history.pending]:
                used[request.candidate] = max(used[request.candidate], request.replicate + 1)
            self._latest = (history, {name: self.num_batches - number for name, number in used.items()})
        return self._latest[1]


@StoppingRule.register("enough_documents")
class EnoughDocuments(BayesianStop):
    """Stops as `bayesian` does, if the winner and its nearest rival have answered enough documents. It is the default
    of `fiesta documents`.

    Of a few documents, those on which two systems differ may all favor one of them by chance, and a kind of documents
    may be missing. With delta = 1 - confidence, both systems need n documents::

        n >= ln(1 / delta) / 0.25

    that is, 7 at .8 and 12 at .95. A kind to which a quarter of all documents belong is then missing with probability
    delta at most. `rule_of_three` also asks for more if scores are skewed, which changes nothing for documents.

    Args:
        batch_size: number of documents in a query.
    """

    def __init__(self, *, batch_size: int = 1) -> None:
        self.batch_size = batch_size

    def missing_runs(self, history: History, analysis: Analysis, confidence: float) -> Optional[Tuple[str, ...]]:
        if super().missing_runs(history, analysis, confidence) is None or analysis.posterior is None:
            return None
        counts = {name: history.num_finished(name) for name in find_lead(history, analysis).names}
        return tuple(fill_evenly(counts, target_runs=self.least_runs(confidence)))

    def starts(self, belief: Belief) -> int:
        return max(STARTS, belief.min_evaluations)

    def least_runs(self, confidence: float) -> int:
        return math.ceil(rule_of_three_runs(confidence) / self.batch_size)


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
        complete = settings.completed(task.metric)
        inner = build_strategy(complete.until_documents_end(), list(names), has_counts=True)
        num_batches = -(-facts.num_documents // settings.batch_size)
        strategy = LimitedDocuments(inner, num_batches=num_batches, measure=task.measure)
        strategy.check(list(names))
        return cls(settings, facts, task, strategy, complete.strategy_params())

    @property
    def notes(self) -> List[str]:
        """Return what the user should know before the first query."""
        if self.settings.has_belief_of_the_paper and self.strategy_params["belief"]["type"] != OF_THE_PAPER:
            return [
                f"Note: {OF_THE_PAPER} models one F-measure with a known concentration. This selection uses "
                f"{ABOUT_MEASURES} instead."
            ]
        return []

    def orders(self, names: Sequence[str], seed: int) -> Dict[str, np.ndarray]:
        """Return the order of the documents for every system. Shape of each: `(num_documents,)`."""
        shared = self.settings.documents_order == "shared"
        return {name: document_order(seed, self.facts.num_documents, None if shared else name) for name in names}

    def result(
        self, history: History, decision: Decision, *, seed: str, charges: Optional[Mapping[str, Charge]]
    ) -> DocumentsResult:
        """Return the result of a decision. `charges` is None if the file of answers is missing."""
        size = self.settings.batch_size
        about_runs: Dict[str, Any] = {"collapsed": (), "ahead_on_shared_splits": None, "plain_loop": None}
        result = DocumentsResult.of(
            history,
            decision,
            Metric.of(self.task.metric),
            **about_runs,
            task=self.settings.task,
            positive_label=self.settings.positive_label,
            strategy=dict(self.strategy_params),
            belief=self.strategy_params["belief"],
            seed=seed,
            documents={**asdict(self.facts), "order": self.settings.documents_order, "batch_size": size},
        )
        systems = (self._asked(system, history, charges) for system in result.candidates)
        return replace(result, candidates=tuple(systems))

    def _asked(self, system: SystemResult, history: History, charges: Optional[Mapping[str, Charge]]) -> SystemResult:
        """Return the system with the numbers of what it was asked."""
        name, size, number = system.name, self.settings.batch_size, self.facts.num_documents
        replicates = [evaluation.request.replicate for evaluation in history.evaluations_of(name)]
        num_queries, cost = (None, None) if charges is None else charges.get(name, (0, 0.0))
        return replace(
            system,
            measure=self.strategy.measure(history, name) if replicates else None,
            num_documents=sum(min(size, number - replicate * size) for replicate in replicates),
            num_queries=num_queries,
            cost=cost,
        )


def task_of(settings: DocumentSettings) -> Task:
    return build(Task, {"type": settings.task}, positive_label=settings.positive_label, metric=settings.metric)


def answers_path(settings: DocumentSettings, directory: RunDirectory) -> Path:
    return directory.answers if settings.answers is None else Path(settings.answers)
