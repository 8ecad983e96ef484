"""Selections among trained systems by documents, the family of `fiesta documents`."""

import os
import re
import secrets
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Sequence

from rich.console import Console

from fiesta_allennlp.choosing.forecast import LiveForecast
from fiesta_allennlp.choosing.strategy import Decision
from fiesta_allennlp.core.choice_settings import CONFIDENCE
from fiesta_allennlp.core.directory import RunDirectory, refuse_place
from fiesta_allennlp.core.errors import ConfigError, FiestaError, describe_as_sentence, join_some
from fiesta_allennlp.core.files import read_jsonnet
from fiesta_allennlp.core.metrics import Metric
from fiesta_allennlp.core.records import Candidate, History
from fiesta_allennlp.core.registry import build, build_with_packages
from fiesta_allennlp.core.seeding import document_order
from fiesta_allennlp.core.texts import check_names, split_name
from fiesta_allennlp.documents.annotated_documents import DocumentFile, Task, parse_field_names, read_documents
from fiesta_allennlp.documents.choice import DocumentsSetup, build_task
from fiesta_allennlp.documents.document_settings import DocumentSettings
from fiesta_allennlp.documents.queries import AnswerStore, CachedSystem, DocumentQueries, ThreadExecutor, read_charges
from fiesta_allennlp.documents.system import System
from fiesta_allennlp.running.machine import num_cores
from fiesta_allennlp.selecting.loop import Display, SelectionLoop
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.selecting.session import SelectionFamily, StoredState
from fiesta_allennlp.selecting.store import RunStore

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
        document_file = read_documents(Path(settings.documents), task, parse_field_names(settings.fields))
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
