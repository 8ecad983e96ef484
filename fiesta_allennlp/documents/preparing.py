"""From the settings of a selection by documents to checked systems: all that is done before the first query."""

import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Mapping, Optional

from rich.console import Console

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.documents.answers import AnswerStore, system_key
from fiesta_allennlp.documents.choice import DocumentChoice, DocumentFacts, answers_path, task_of
from fiesta_allennlp.documents.document_file import DocumentFile, field_names, read_documents
from fiesta_allennlp.documents.given_systems import (
    GivenSystem,
    build_systems,
    close_systems,
    given_systems,
    open_systems,
)
from fiesta_allennlp.documents.settings import DocumentSettings
from fiesta_allennlp.documents.systems.base import System
from fiesta_allennlp.errors import ConfigError


@dataclass(frozen=True)
class Prepared:
    """Settings that were checked, and what they come to: no system is open yet."""

    choice: DocumentChoice
    file: DocumentFile
    given: Mapping[str, GivenSystem]
    systems: Mapping[str, System]

    @property
    def settings(self) -> DocumentSettings:
        return self.choice.settings


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
    task = task_of(settings)
    typed = given_systems(settings.systems)
    given = {name: typed[name] for name in sorted(typed, key=lambda n: order.index(n) if n in order else len(order))}
    file = read_documents(Path(settings.documents), task, field_names(settings.fields))
    facts = DocumentFacts(str(file.path), len(file.documents), file.num_items)
    choice = DocumentChoice.of(settings, task, facts, list(given))
    return Prepared(choice, file, given, build_systems(given, file))


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
    least, most = prepared.choice.strategy.bounds(len(prepared.systems))
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
