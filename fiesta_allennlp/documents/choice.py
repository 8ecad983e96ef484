"""The strategy of a selection by documents, which run out, and its result, as `selection.json` has it."""

import math
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Dict, Mapping, Optional, Sequence, Tuple, Type

from fiesta_allennlp.choosing.beliefs import Belief, MeasurePosterior
from fiesta_allennlp.choosing.beliefs.dirichlet_f_measure import FMeasurePosterior
from fiesta_allennlp.choosing.fixed_confidence import FixedConfidence
from fiesta_allennlp.choosing.stopping_rules import BayesianStop, StoppingRule
from fiesta_allennlp.choosing.strategy import Decision, RunLimit, build_strategy
from fiesta_allennlp.choosing.t_tests import INTERVAL_LEVEL
from fiesta_allennlp.core import choice_settings, options
from fiesta_allennlp.core.choice_settings import CONFIDENCE
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.metrics import Metric
from fiesta_allennlp.core.records import History
from fiesta_allennlp.core.registry import build
from fiesta_allennlp.documents.document_file import DocumentFacts
from fiesta_allennlp.documents.tasks import UNKNOWN_PREFIX, Task
from fiesta_allennlp.selecting.objections import UNITS, UNSEEDED
from fiesta_allennlp.selecting.results.candidate_result import CandidateResult
from fiesta_allennlp.selecting.results.result import Result, Words
from fiesta_allennlp.selecting.results.verdict import judge

DOCUMENTS_GROUP = "Documents and scoring"

TASKS, ORDERS = ("classification", "spans"), ("shared", "independent")

DEFAULT_BELIEF = "paired_measure"
DEFAULT_STOP = "enough_documents"
PAPER_BELIEF = "dirichlet_f_measure"
AVERAGE_BY_METRIC = {"f_measure": "binary", "macro_f1": "macro", "accuracy": "accuracy"}
"""The names of the metrics in the belief about measures."""

document_option = partial(options.option, group=DOCUMENTS_GROUP, is_fixed=True)
"""Declares an option that decides which scores are made, so it is fixed once a selection has begun."""


@dataclass(frozen=True)
class DocumentSettings(choice_settings.SelectionSettings):
    """The settings of `fiesta-documents`. Names and defaults are those of the command's options.

    `systems` are `NAME=` and an archive, a file of predictions or a system's config. `answers` is a file.
    """

    GROUPS: ClassVar[Tuple[str, ...]] = (DOCUMENTS_GROUP, options.SELECTION_GROUP, options.RESOURCES_GROUP)
    default_stop: ClassVar[str] = DEFAULT_STOP

    belief: Any = options.selection_option(
        None,
        f"model of the scores: {DEFAULT_BELIEF} (default), another name, or a JSON object with a `type`",
        factory=lambda: {"type": DEFAULT_BELIEF},
        metavar=choice_settings.CONFIG_METAVAR,
        decides="both",
    )
    stop: Any = options.restated_option(
        choice_settings.SelectionSettings,
        "stop",
        help=f"stopping rule: {DEFAULT_STOP} (default), bayesian or glr (guaranteed error rate); or JSON",
    )
    margin: Optional[float] = options.restated_option(
        choice_settings.SelectionSettings,
        "margin",
        help="accept a system within MARGIN of the best (default 0)",
        parse=None,
    )
    max_evaluations: Optional[int] = options.restated_option(
        choice_settings.SelectionSettings,
        "max_evaluations",
        help="stop after this many answers (default: when documents run out)",
    )
    systems: Tuple[str, ...] = options.option(
        (), "two or more of NAME=model.tar.gz, NAME=predictions.jsonl, NAME=system.jsonnet", metavar="SYSTEM"
    )
    documents: str = options.option(
        "", "a JSONL file of annotated documents", group=DOCUMENTS_GROUP, metavar="FILE.jsonl"
    )
    task: str = document_option("classification", "what the systems annotate: classification or spans", choices=TASKS)
    positive_label: Optional[str] = document_option(None, "score by the F-measure of this label alone", metavar="L")
    metric: Optional[str] = document_option(None, "accuracy: score classification by accuracy instead of the F-measure")
    fields: str = document_option("", "the file's names for id, items, label, tags, spans, such as label=sentiment")
    documents_order: str = document_option(
        "shared", "shared: one random order for all systems; independent: each its own, as in the paper", choices=ORDERS
    )
    batch_size: int = document_option(1, "documents per query", least=1)
    answers: Optional[str] = options.resource_option(
        None, "file of answers to reuse and extend, in any selection (default: DIR/answers.sqlite)", metavar="FILE"
    )
    workers: int = options.resource_option(1, "number of parallel queries", least=1)
    time_limit: float = options.resource_option(60.0, "seconds to wait for an answer", above=0)
    max_failures: int = choice_settings.max_failures_option("system", "queries")
    seed: Optional[int] = choice_settings.seed_option(options.RESOURCES_GROUP)
    include_package: Tuple[str, ...] = options.option((), "packages to import first")

    def with_metric_defaults(self, metric: str) -> "DocumentSettings":
        """Return these settings with a belief about this metric, and with the stopping rule for documents. Refuse a
        belief that cannot model the metric."""
        strategy = choice_settings.to_config(self.strategy, "--strategy") if self.strategy else {}
        belief = choice_settings.to_config(strategy.get("belief") or self.belief or DEFAULT_BELIEF, "--belief")
        if belief["type"] == PAPER_BELIEF and AVERAGE_BY_METRIC[metric] != "binary":
            raise ConfigError(f"--belief {PAPER_BELIEF} needs --positive-label, whose F-measure it models.")
        if belief["type"] == DEFAULT_BELIEF:
            choice_settings.fill_options(belief, {"average": AVERAGE_BY_METRIC[metric]}, "--belief")
        if "belief" in strategy:
            strategy["belief"] = belief
        complete = replace(self, strategy=strategy or None, belief=belief)
        if "stop" in strategy or (self.budget or strategy.get("budget")) is not None:
            return complete
        stop = choice_settings.to_config(self.stop or self.default_stop, "--stop")
        if stop["type"] == self.default_stop and self.batch_size > 1:
            choice_settings.fill_options(stop, {"batch_size": self.batch_size}, "--stop")
        return replace(complete, stop=stop)


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
