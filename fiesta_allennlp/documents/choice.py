"""The strategy of a selection by documents, which run out, and its result, as `selection.json` has it."""

import math
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Dict, Mapping, Optional, Sequence, Tuple, Type

from fiesta_allennlp.choosing.beliefs import Belief, MeasurePosterior
from fiesta_allennlp.choosing.beliefs.dirichlet_f_measure import FMeasurePosterior
from fiesta_allennlp.choosing.fixed_confidence import FixedConfidence
from fiesta_allennlp.choosing.stopping_rules import BayesianStop, StoppingRule
from fiesta_allennlp.choosing.strategy import Decision, RunLimit, build_strategy
from fiesta_allennlp.choosing.t_tests import INTERVAL_LEVEL
from fiesta_allennlp.core.choice_settings import CONFIDENCE
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.metrics import UNKNOWN_PREFIX, Metric
from fiesta_allennlp.core.records import History
from fiesta_allennlp.core.registry import build
from fiesta_allennlp.documents.annotated_documents import DocumentFacts, Task
from fiesta_allennlp.documents.document_settings import DocumentSettings
from fiesta_allennlp.selecting.objections import UNITS, UNSEEDED
from fiesta_allennlp.selecting.results.candidate_result import CandidateResult
from fiesta_allennlp.selecting.results.result import Result, Words
from fiesta_allennlp.selecting.results.verdict import judge

MAX_UNKNOWN_LABELS = 3
"""Answers that are no gold label, of which a result has the commonest."""

NO_LIMIT = 10**9

RARE_KIND = 0.25
"""Share of the documents that belong to a kind which must not be missing."""

NUM_STARTS = 3
"""Documents, or batches, that every system begins with."""


@dataclass(frozen=True)
class SystemResult(CandidateResult):
    """A system in numbers. `measure` is over everything that it was asked about; None before its first answer. Kept
    answers count neither in `num_queries` nor in `cost`, which are None if unknown.

    `num_unknown` answers are no gold label; `unknown_labels` are the commonest of them with their numbers.

    `scores` are those of single documents or of batches. `interval` is the 95% credible interval of the measure of all
    answers on all documents like these, by the selection's posterior; None if the posterior is not about measures.
    """

    measure: Optional[float] = None
    num_documents: int = 0
    num_queries: Optional[int] = None
    cost: Optional[float] = None
    num_unknown: int = 0
    unknown_labels: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class DocumentsResult(Result):
    """The content of `selection.json` of a selection by documents.

    `candidates` are `SystemResult` records. `documents` describes the file and how the selection used it.
    `num_queries` is the number of queries made and `cost` their cost; both exclude kept answers, and are None if
    unknown.
    """

    candidates: Tuple[SystemResult, ...]
    task: str = ""
    positive_label: Optional[str] = None
    documents: Mapping[str, Any] = field(default_factory=dict)

    candidate_class: ClassVar[Type[CandidateResult]] = SystemResult
    by_documents: ClassVar[bool] = True

    @property
    def words(self) -> Words:
        noun, plural = ("document", "documents") if self.documents.get("batch_size", 1) == 1 else ("batch", "batches")
        return Words("system", "systems", noun, plural, f"answered {plural}", "system")

    @property
    def compared(self) -> Tuple[Any, ...]:
        """Nothing: a measure of all answers together has no single scores."""
        return ()

    @property
    def num_queries(self) -> Optional[int]:
        return self._total("num_queries")

    @property
    def cost(self) -> Optional[float]:
        return self._total("cost")

    def _total(self, name: str) -> Any:
        numbers = [getattr(system, name) for system in self.candidates if getattr(system, name) is not None]
        return sum(numbers) if numbers else None


@StoppingRule.register("enough_documents")
class EnoughDocuments(BayesianStop):
    """Stops as `bayesian` does, if the winner and its nearest rival have answered enough documents. It is the default
    of `fiesta documents`.

    Of a few documents, those on which two systems differ may all favor one of them by chance, and a kind of documents
    may be missing. With delta = 1 - confidence, both systems need n documents::

        n >= ln(1 / delta) / 0.25

    that is, 7 at .8 and 12 at .95. A kind to which a quarter of all documents belong is then missing with probability
    delta at most.

    Args:
        batch_size: number of documents in a query.
    """

    def __init__(self, *, batch_size: int = 1) -> None:
        self.batch_size = batch_size

    def starts(self, belief: Belief) -> int:
        return max(NUM_STARTS, belief.min_evaluations)

    def least_runs(self, confidence: float) -> int:
        return math.ceil(math.ceil(round(-math.log(1 - confidence) / RARE_KIND, 9)) / self.batch_size)


class DocumentsSetup:
    """Task and strategy of a selection by documents.

    The strategy stops when each system that could be the best has been through all `num_batches`, which are documents
    or batches of them.

    Raises:
        ConfigError: if there are too few documents, or the options do not go together.
    """

    def __init__(self, settings: DocumentSettings, task: Task, facts: DocumentFacts, names: Sequence[str]) -> None:
        self._settings, self.task, self.facts = settings, task, facts
        self.num_batches = -(-facts.num_documents // settings.batch_size)
        complete, limit = settings.with_metric_defaults(task.metric), RunLimit(self.num_batches, task.measure)
        self.strategy_params = complete.strategy_params()
        self.strategy = strategy = build_strategy(complete, list(names), has_counts=True, run_limit=limit)
        if isinstance(strategy, FixedConfidence) and strategy.max_evaluations is None:
            strategy.max_evaluations = NO_LIMIT  # documents run out before
        if self.num_batches < strategy.num_starts:
            counts = f"at least {strategy.num_starts} documents or batches, but the file has only {self.num_batches}"
            raise ConfigError(f"the first queries need {counts}. Add documents or use a smaller --batch-size.")

    def result(
        self, history: History, decision: Decision, *, seed: str, charges: Optional[Mapping[str, Tuple[int, float]]]
    ) -> DocumentsResult:
        """Return the result of a decision. `charges` is None if the file of answers is missing."""
        batch_size = self._settings.batch_size
        result = DocumentsResult.from_decision(
            history,
            judge(history, decision, self.strategy, allowed=(UNSEEDED.name, UNITS.name)),
            Metric.parse(self.task.metric),
            task=self._settings.task,
            positive_label=self._settings.positive_label,
            strategy=dict(self.strategy_params),
            target=self.strategy.confidence or CONFIDENCE,
            belief=self.strategy_params["belief"],
            seed=seed,
            documents={**asdict(self.facts), "order": self._settings.documents_order, "batch_size": batch_size},
        )
        intervals: Dict[str, Any] = {}
        if isinstance(decision.posterior, (FMeasurePosterior, MeasurePosterior)):  # those that are about the measure
            ends = decision.posterior.interval(INTERVAL_LEVEL)
            intervals = dict(zip(history.active, map(tuple, ends.tolist()), strict=True))
        systems = []
        for system in result.candidates:
            evaluations = history.evaluations_of(system.name)
            starts = [evaluation.request.replicate * batch_size for evaluation in evaluations]
            unknown: "Counter[str]" = Counter()
            for name, number in (metric for evaluation in evaluations for metric in evaluation.metrics.items()):
                if name.startswith(UNKNOWN_PREFIX):
                    unknown[name.removeprefix(UNKNOWN_PREFIX)] += int(number)
            num_queries, cost = (None, None) if charges is None else charges.get(system.name, (0, 0.0))
            complete = replace(
                system,
                interval=intervals.get(system.name),
                measure=self.task.measure(history, system.name) if evaluations else None,
                num_documents=sum(min(batch_size, self.facts.num_documents - start) for start in starts),
                num_queries=num_queries,
                cost=cost,
                num_unknown=unknown.total(),
                unknown_labels=dict(unknown.most_common(MAX_UNKNOWN_LABELS)),
            )
            systems.append(complete)
        return replace(result, candidates=tuple(systems))


def build_task(settings: DocumentSettings) -> Task:
    return build(Task, {"type": settings.task}, positive_label=settings.positive_label, metric=settings.metric)
