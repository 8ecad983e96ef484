"""Selections among trained systems by documents, the family of `fiesta documents`: their strategy for documents that
run out, their result, and their loop."""

import math
import os
import re
import secrets
import sys
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Type

from rich.console import Console

from fiesta_allennlp.choosing.beliefs import Belief, MeasurePosterior
from fiesta_allennlp.choosing.beliefs.dirichlet_f_measure import FMeasurePosterior
from fiesta_allennlp.choosing.fixed_confidence import FixedConfidence
from fiesta_allennlp.choosing.forecast import LiveForecast
from fiesta_allennlp.choosing.stopping_rules import BayesianStop, StoppingRule
from fiesta_allennlp.choosing.strategy import Decision, RunLimit, build_strategy
from fiesta_allennlp.choosing.t_tests import INTERVAL_LEVEL
from fiesta_allennlp.core.choice_settings import CONFIDENCE
from fiesta_allennlp.core.directory import RunDirectory, refuse_place
from fiesta_allennlp.core.errors import ConfigError, FiestaError, describe_as_sentence, join_some
from fiesta_allennlp.core.files import read_jsonnet
from fiesta_allennlp.core.metrics import UNKNOWN_PREFIX, Metric
from fiesta_allennlp.core.records import Candidate, History
from fiesta_allennlp.core.registry import build, build_with_packages
from fiesta_allennlp.core.seeding import document_order
from fiesta_allennlp.core.texts import check_names, split_name
from fiesta_allennlp.documents.annotated_documents import DocumentFacts, DocumentFile, Task, read_documents
from fiesta_allennlp.documents.document_settings import DocumentSettings
from fiesta_allennlp.documents.queries import AnswerStore, CachedSystem, DocumentQueries, ThreadExecutor, read_charges
from fiesta_allennlp.documents.system import System
from fiesta_allennlp.running.machine import num_cores
from fiesta_allennlp.selecting.loop import Display, SelectionLoop
from fiesta_allennlp.selecting.objections import UNITS, UNSEEDED
from fiesta_allennlp.selecting.results.candidate_result import CandidateResult
from fiesta_allennlp.selecting.results.result import Result, Words
from fiesta_allennlp.selecting.results.verdict import judge
from fiesta_allennlp.selecting.session import SelectionFamily, StoredState
from fiesta_allennlp.selecting.store import RunStore

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


ARCHIVE_SUFFIX = ".tar.gz"
ARCHIVE_START_SECONDS = 300.0
SYSTEM_FORMS = "NAME=model.tar.gz, NAME=predictions.jsonl, or NAME=system.jsonnet"


def parse_systems(texts: Sequence[str], packages: Sequence[str] = ()) -> Dict[str, Candidate]:
    """Return the systems by name, in the order given. Archives may need `packages`."""
    named = map(split_name, texts)
    sources = [(name or re.sub(r"\.tar\.gz$|\.[^.]*$", "", Path(source).name), source) for name, source in named]
    check_names(sources, noun="system", min_count=2, remedy=f"Pass each as {SYSTEM_FORMS}.")
    return {name: Candidate(name, source, _system_config(name, source, packages)) for name, source in sources}


def build_systems(candidates: Mapping[str, Candidate], documents: DocumentFile, task: Task) -> Dict[str, System]:
    """Build the systems and check them for these documents, without opening them."""
    systems: Dict[str, System] = {}
    first_names: Dict[str, str] = {}
    for name, system in candidates.items():
        with _naming_errors(name, system):
            systems[name] = build(System, system.config)
            systems[name].check(documents, task)
            first_name = first_names.setdefault(systems[name].fingerprint(), name)
        if first_name != name:
            raise ConfigError(f"the systems '{first_name}' and '{name}' are the same. Remove one, or set 'version'.")
    return systems


@contextmanager
def _naming_errors(name: str, system: Candidate) -> Iterator[None]:
    try:
        yield
    except (FiestaError, OSError) as error:
        raise ConfigError(f"system '{name}' ({system.source}): {describe_as_sentence(error)}") from error


def _system_config(name: str, source: str, packages: Sequence[str]) -> Dict[str, Any]:
    if source.endswith(".jsonl"):
        return {"type": "predictions", "path": source}
    where = f"system '{name}': {source}"
    if not source.endswith((ARCHIVE_SUFFIX, ".jsonnet", ".json")):
        raise ConfigError(f"{where} has an unknown format. Pass {SYSTEM_FORMS}.")
    if not os.path.isfile(source):
        raise ConfigError(f"{where}: file not found. Check the path.")
    if source.endswith(ARCHIVE_SUFFIX):
        options = (f"--include-package={package}" for package in packages)
        command = [sys.executable, "-m", "fiesta_allennlp.documents.archive_server", source, *options]
        return {"type": "command", "command": command, "each": "item", "start_time_limit": ARCHIVE_START_SECONDS}
    config = read_jsonnet(Path(source), label=where)
    if not isinstance(config, dict) or "type" not in config:
        raise ConfigError(f"{where} must be an object whose 'type' is one of {join_some(System.available())}.")
    return config


NUM_PROGRESS_LINES = 20
"""The approximate number of lines that a round of all documents prints if the output is not a terminal."""


@dataclass(frozen=True)
class DocumentSelection(SelectionFamily):
    """A selection among trained systems, whose runs ask one of them about a document, or a batch. `run` is the name
    under which answers are paid for, and `answers` the file that keeps them."""

    name = "documents"
    settings_class = DocumentSettings
    candidates_option = "systems"
    run_noun = "query"

    settings: DocumentSettings
    setup: DocumentsSetup
    document_file: DocumentFile
    candidate_by_name: Mapping[str, Candidate]
    systems: Mapping[str, System]
    directory: RunDirectory
    answers: Path
    run: str

    @classmethod
    def check(cls, settings: DocumentSettings, stored: StoredState) -> "DocumentSelection":
        """Check everything without opening a system. Systems come in the store's order, and new ones after them."""
        if not settings.documents:
            raise ConfigError("--documents is missing: pass a JSONL file of documents with their gold annotation.")
        task = build_task(settings)
        parsed = parse_systems(settings.systems, settings.include_package)
        stored_names = [candidate.name for candidate in stored.candidates if candidate.name in parsed]
        candidates = {name: parsed[name] for name in dict.fromkeys([*stored_names, *parsed])}
        document_file = read_documents(Path(settings.documents), task, settings.fields)
        setup = build_with_packages(
            settings.include_package, lambda: DocumentsSetup(settings, task, document_file.facts, list(candidates))
        )
        systems = build_with_packages(settings.include_package, lambda: build_systems(candidates, document_file, task))
        for name, candidate in candidates.items():
            candidates[name] = replace(candidate, facts={"fingerprint": systems[name].fingerprint()})
        _check_unchanged(document_file, candidates, stored)
        directory, run = stored.directory, stored.meta.run or secrets.token_hex(16)
        answers = directory.answers if settings.answers is None else Path(settings.answers)
        if answers.name != directory.answers.name:
            refuse_place(answers, "--answers", new=directory)
        return cls(settings, setup, document_file, candidates, systems, directory, answers, run)

    @contextmanager
    def prepare_runs(self, directory: RunDirectory, console: Console) -> Iterator[None]:
        """Check the file of answers and open the systems, with logs in `directory`; close them at the end."""
        if self.answers.exists():
            AnswerStore(self.answers, run="").close()
        console.print(f"Opening {len(self.systems)} systems ...")

        def open_system(name: str) -> None:
            with _naming_errors(name, self.candidate_by_name[name]):
                self.systems[name].open(directory.system_log(name), time_limit=self.settings.time_limit)

        with ThreadPoolExecutor(max_workers=num_cores()) as pool:  # loading a model keeps a core busy for seconds
            try:
                list(pool.map(open_system, self.systems))
                yield
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                for system in self.systems.values():
                    system.close()

    @property
    def candidates(self) -> List[Candidate]:
        return list(self.candidate_by_name.values())

    @property
    def meta(self) -> Mapping[str, Any]:
        facts = asdict(self.setup.facts)
        return {"documents": self.document_file.fingerprint, "document_facts": facts, "run": self.run}

    @contextmanager
    def open_loop(self, store: RunStore, console: Console, display: Display, *, seed: int) -> Iterator[SelectionLoop]:
        settings, setup, strategy = self.settings, self.setup, self.setup.strategy
        num_documents, is_shared = len(self.document_file.documents), settings.documents_order == "shared"
        metric, runs_per_line = Metric.parse(setup.task.metric), -(-setup.num_batches // NUM_PROGRESS_LINES)
        target, make_forecast = strategy.confidence or CONFIDENCE, LiveForecast()
        with closing(AnswerStore(self.answers, run=self.run)) as answers:
            evaluator = DocumentQueries(
                documents=self.document_file.documents,
                task=setup.task,
                orders={n: document_order(seed, num_documents, None if is_shared else n) for n in self.systems},
                batch_size=settings.batch_size,
                cached_systems={name: CachedSystem(name, system, answers) for name, system in self.systems.items()},
            )

            def make_result(history: History, decision: Decision) -> Result:
                forecast = make_forecast(strategy, history, decision, seed=seed, workers=settings.workers)
                own: Dict[str, Any] = {"target": target, "forecast": forecast, "running": True}
                return Result.from_decision(history, decision, metric, collapsed=(), lead=None, **own)

            with display(console, report_every=runs_per_line, make_result=make_result) as progress:
                yield SelectionLoop(
                    strategy=strategy,
                    evaluators=defaultdict(lambda: evaluator),
                    executor=ThreadExecutor(self.directory, workers=settings.workers, on_stop=answers.stopping.set),
                    listeners=[progress],
                    store=store,
                    directory=self.directory,
                    seed=seed,
                    max_failures=settings.max_failures,
                    shared_splits=is_shared,
                )

    def result(self, history: History, decision: Decision, *, seed: str) -> Result:
        return self.setup.result(history, decision, seed=seed, charges=read_charges(self.answers, run=self.run))


def _check_unchanged(file: DocumentFile, candidates: Mapping[str, Candidate], stored: StoredState) -> None:
    """Refuse to resume with other documents or changed systems; new systems may join."""
    root = stored.directory.root
    if stored.meta.documents not in (None, file.fingerprint):
        changed = f"{file.path} has changed since the selection in {root} began"
        raise ConfigError(f"{changed}. Undo the change, or start over elsewhere with --answers.")
    for candidate in stored.candidates:
        name = candidate.name
        if name not in candidates:
            missing = f"system '{name}' ({candidate.source}) of the selection in {root} is missing"
            raise ConfigError(f"{missing}. Pass all of its systems, or none to take them from the store.")
        if candidates[name].facts != candidate.facts:
            changed = f"system '{name}' ({candidates[name].source}) has changed"
            raise ConfigError(f"{changed} since the selection in {root} began. Undo the change, or rename it.")
