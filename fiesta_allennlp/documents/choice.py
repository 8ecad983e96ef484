"""The strategy of a selection by documents, which run out, and its result, for the command and for reports."""

import math
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp.beliefs import Belief
from fiesta_allennlp.core.defaults import CONFIDENCE
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.records import CredibleMargin, Decision, History, PairAlone, Undecided
from fiesta_allennlp.core.registry import build
from fiesta_allennlp.core.seeding import document_order
from fiesta_allennlp.documents.answers import Charge
from fiesta_allennlp.documents.result import DocumentsResult, SystemResult
from fiesta_allennlp.documents.settings import DocumentSettings
from fiesta_allennlp.documents.tasks import UNKNOWN_PREFIX, Task
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.strategy_building import build_strategy
from fiesta_allennlp.selection.t_tests import INTERVAL_LEVEL
from fiesta_allennlp.strategies import FixedConfidence, Strategy
from fiesta_allennlp.strategies.base import Analysis, analyse, fill_evenly
from fiesta_allennlp.strategies.stopping_rules import BayesianStop, StoppingRule, find_lead, rule_of_three_runs

MAX_UNKNOWN_LABELS = 3
"""Answers that are no gold label, of which a result has the commonest."""

NUM_STARTS = 3
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
        self.belief, self.confidence = strategy.belief, strategy.confidence
        self.num_starts, self.budget = strategy.num_starts, strategy.budget
        self.num_batches = num_batches
        self.measure = measure
        self._latest_remaining: Tuple[Optional[History], Dict[str, int]] = (None, {})

    def check(self, candidates: List[str]) -> None:
        self.strategy.check(candidates)
        min_batches = self.strategy.num_starts if isinstance(self.strategy, FixedConfidence) else 1
        if self.num_batches < min_batches:
            counts = f"at least {min_batches} documents or batches, but the file has only {self.num_batches}"
            raise ConfigError(f"the first queries need {counts}. Add documents or use a smaller --batch-size.")

    def check_room(self, history: History) -> None:
        self.strategy.check_room(history)

    def propose(self, history: History, slots: int, rng: np.random.Generator) -> List[str]:
        num_remaining = dict(self._num_remaining(history))
        chosen: List[str] = []
        for name in self.strategy.propose(history, slots, rng):
            replacement = name if num_remaining[name] else self._substitute(history, num_remaining)
            if replacement is not None:
                num_remaining[replacement] -= 1
                chosen.append(replacement)
        return chosen

    def recommend(self, history: History) -> Decision:
        decision = self.strategy.recommend(history)
        if decision.stopped_by in ("confidence", "failures", "budget"):
            return decision
        exhausted = self._exhausted(history)
        if not exhausted or not self._is_best_exhausted(history, decision, exhausted):
            return decision
        answered = [name for name in history.active if history.num_finished(name)]
        if len(answered) < 2:
            return replace(decision, best=answered[0] if answered else None, stopped_by="failures")
        best = max(set(exhausted).intersection(answered) or answered, key=lambda name: self.measure(history, name))
        return replace(decision, best=best, stopped_by="documents")

    def credible_margin(self, history: History) -> Optional[CredibleMargin]:
        return self.strategy.credible_margin(history)

    def undecided(self, history: History) -> Optional[Undecided]:
        return self.strategy.undecided(history)

    def expected_loss(self, history: History) -> Optional[float]:
        return self.strategy.expected_loss(history)

    def pair_alone(self, history: History) -> Optional[PairAlone]:
        return self.strategy.pair_alone(history)

    def bounds(self, num_candidates: int) -> "tuple[int, int]":
        min_runs, max_runs = self.strategy.bounds(num_candidates)
        max_runs = min(max_runs, num_candidates * self.num_batches)
        return min(min_runs, max_runs), max_runs

    def _is_best_exhausted(self, history: History, decision: Decision, exhausted: List[str]) -> bool:
        if len(exhausted) == len(history.active):
            return True
        if not isinstance(self.strategy, FixedConfidence):
            # The documents that its plan asks for next do not exist, and nothing else is part of the plan.
            next_names = self.strategy.propose(history, 1, np.random.default_rng(0))
            return not history.pending and bool(next_names) and next_names[0] in exhausted
        total_prob = sum(decision.prob_best.get(name, 0.0) for name in exhausted)
        return len(exhausted) > 1 and total_prob >= self.strategy.confidence

    def _exhausted(self, history: History) -> List[str]:
        """Return the systems that have finished with all documents, even if they failed on each."""
        pending = Counter(request.candidate for request in history.pending)
        num_remaining = self._num_remaining(history)
        return [name for name in history.active if not num_remaining[name] and not pending[name]]

    def _substitute(self, history: History, num_remaining: Dict[str, int]) -> Optional[str]:
        if not isinstance(self.strategy, FixedConfidence):
            return None
        prob_best = self.strategy.recommend(history).prob_best
        candidates = [name for name in history.active if num_remaining[name]]
        return max(candidates, key=lambda name: (prob_best.get(name, 0.0), num_remaining[name]), default=None)

    def _num_remaining(self, history: History) -> Dict[str, int]:
        """Return the number of batches left for each candidate. Failed ones count as asked."""
        if self._latest_remaining[0] != history:
            num_used = dict.fromkeys(history.candidates, 0)
            ended_requests = [e.request for e in history.evaluations] + [f.request for f in history.failures]
            for request in [*ended_requests, *history.pending]:
                num_used[request.candidate] = max(num_used[request.candidate], request.replicate + 1)
            self._latest_remaining = (history, {name: self.num_batches - number for name, number in num_used.items()})
        return self._latest_remaining[1]


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
        num_finished_by_name = {name: history.num_finished(name) for name in find_lead(history, analysis).names}
        return tuple(fill_evenly(num_finished_by_name, target_runs=self.least_runs(confidence)))

    def starts(self, belief: Belief) -> int:
        return max(NUM_STARTS, belief.min_evaluations)

    def least_runs(self, confidence: float) -> int:
        return math.ceil(rule_of_three_runs(confidence) / self.batch_size)


@dataclass(frozen=True)
class DocumentFacts:
    """Facts about the documents in the store; `file` is the file that they were read from."""

    file: str
    num_documents: int
    num_items: int


@dataclass(frozen=True)
class DocumentsSetup:
    """Task, strategy and orders of a selection by documents. The settings are complete and checked."""

    settings: DocumentSettings
    facts: DocumentFacts
    task: Task
    strategy: LimitedDocuments
    strategy_params: Mapping[str, Any]

    @classmethod
    def of(cls, settings: DocumentSettings, task: Task, facts: DocumentFacts, names: Sequence[str]) -> "DocumentsSetup":
        complete = settings.with_metric_defaults(task.metric)
        inner_strategy = build_strategy(complete.without_default_limit(), list(names), has_counts=True)
        num_batches = -(-facts.num_documents // settings.batch_size)
        strategy = LimitedDocuments(inner_strategy, num_batches=num_batches, measure=task.measure)
        strategy.check(list(names))
        return cls(settings, facts, task, strategy, complete.strategy_params())

    def orders(self, names: Sequence[str], seed: int) -> Dict[str, np.ndarray]:
        """Return the order of the documents for every system. Shape of each: `(num_documents,)`."""
        is_shared = self.settings.documents_order == "shared"
        return {name: document_order(seed, self.facts.num_documents, None if is_shared else name) for name in names}

    def result(
        self, history: History, decision: Decision, *, seed: str, charges: Optional[Mapping[str, Charge]]
    ) -> DocumentsResult:
        """Return the result of a decision. `charges` is None if the file of answers is missing."""
        batch_size = self.settings.batch_size
        run_only_fields: Dict[str, Any] = {"collapsed": (), "ahead_on_shared_splits": None, "plain_loop": None}
        result = DocumentsResult.from_decision(
            history,
            decision,
            Metric.parse(self.task.metric),
            **run_only_fields,
            task=self.settings.task,
            positive_label=self.settings.positive_label,
            strategy=dict(self.strategy_params),
            target=self.strategy.confidence or CONFIDENCE,
            belief=self.strategy_params["belief"],
            seed=seed,
            documents={**asdict(self.facts), "order": self.settings.documents_order, "batch_size": batch_size},
        )
        posterior = analyse(history, self.strategy.belief).posterior
        ends = None if posterior is None else posterior.interval(INTERVAL_LEVEL)
        intervals = {} if ends is None else dict(zip(history.active, map(tuple, ends.tolist()), strict=True))
        systems = (
            replace(self._with_query_counts(system, history, charges), interval=intervals.get(system.name))
            for system in result.candidates
        )
        return replace(result, candidates=tuple(systems))

    def _with_query_counts(
        self, system: SystemResult, history: History, charges: Optional[Mapping[str, Charge]]
    ) -> SystemResult:
        """Return the system with the numbers of what it was asked."""
        name, batch_size, num_documents = system.name, self.settings.batch_size, self.facts.num_documents
        replicates = [evaluation.request.replicate for evaluation in history.evaluations_of(name)]
        unknown: Dict[str, int] = Counter()
        for evaluation in history.evaluations_of(name):
            for key, number in evaluation.metrics.items():
                if key.startswith(UNKNOWN_PREFIX):
                    unknown[key.removeprefix(UNKNOWN_PREFIX)] += int(number)
        num_queries, cost = (None, None) if charges is None else charges.get(name, (0, 0.0))
        return replace(
            system,
            measure=self.strategy.measure(history, name) if replicates else None,
            num_documents=sum(min(batch_size, num_documents - replicate * batch_size) for replicate in replicates),
            num_queries=num_queries,
            cost=cost,
            num_unknown=sum(unknown.values()),
            unknown_labels=dict(Counter(unknown).most_common(MAX_UNKNOWN_LABELS)),
        )


def build_task(settings: DocumentSettings) -> Task:
    return build(Task, {"type": settings.task}, positive_label=settings.positive_label, metric=settings.metric)


def answers_path(settings: DocumentSettings, directory: RunDirectory) -> Path:
    return directory.answers if settings.answers is None else Path(settings.answers)
