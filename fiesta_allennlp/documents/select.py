"""A selection by documents from its settings to its result. What the command line calls."""

import secrets
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, Mapping, Tuple

from rich.console import Console

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.documents.answers import AnswerStore
from fiesta_allennlp.documents.choice import answers_path
from fiesta_allennlp.documents.evaluator import DocumentQueries, Station
from fiesta_allennlp.documents.given_systems import close_systems
from fiesta_allennlp.documents.preparing import Prepared, open_prepared, plan_documents, prepare
from fiesta_allennlp.documents.settings import DocumentSettings, changed_document_settings
from fiesta_allennlp.errors import ConfigError, StoreError
from fiesta_allennlp.executors.threads import ThreadExecutor
from fiesta_allennlp.listeners.progress import Progress
from fiesta_allennlp.records import Decision
from fiesta_allennlp.seeding import fresh_entropy
from fiesta_allennlp.selection.environment import with_this
from fiesta_allennlp.selection.loop import Selection
from fiesta_allennlp.selection.session import clear, logging_to, opened, writing_results
from fiesta_allennlp.selection.settings import option, overlay
from fiesta_allennlp.selection.store import RunStore
from fiesta_allennlp.selection.summary import write_csv, write_json

LINES_OF_PROGRESS = 20
"""About so many lines a round of all documents prints off a terminal."""


def select_system(
    given: Mapping[str, Any], directory: Path, *, console: Console, recover: bool = False, force: bool = False
) -> Dict[str, Any]:
    """Choose among systems, or go on with that. Returns the content of `selection.json`.

    # Parameters

    given : the settings that are not defaults; when recovering, what the store has stands below them.
    directory : where everything is kept.
    recover : go on with the selection in `directory`.
    force : delete the selection in `directory` first. Its answers stay.

    # Raises

    `FiestaError` : where a setting, a document, a system or the directory is wrong; before the first query, wherever
        that can be known.
    """
    run_directory = RunDirectory(directory)
    if recover and force:
        raise ConfigError("--recover goes on with a selection and --force deletes it. Give one of them.")
    if not recover:
        settings = DocumentSettings(**overlay(given, of=DocumentSettings))
        prepare(settings, order=[])
        if force and run_directory.store.exists():
            plan_documents(settings, None, console)  # nothing is deleted for a selection that cannot begin
        clear(run_directory, force=force)
    with opened(run_directory, create=not recover) as store, logging_to(run_directory.log):
        if recover and not store.begun:
            raise StoreError(
                f"{directory}: the selection was stopped before its first query, so there is nothing to recover. Give "
                "its systems and options again, without --recover."
            )
        settings = _settings(given, store, run_directory)
        prepared = prepare(settings, order=[candidate["name"] for candidate in store.candidates()])
        _check_unchanged(prepared, store, run_directory)
        return _run(prepared, store, run_directory, console)


def _run(prepared: Prepared, store: RunStore, directory: RunDirectory, console: Console) -> Dict[str, Any]:
    settings, names = prepared.settings, list(prepared.systems)
    open_prepared(prepared, directory, console)
    try:
        entropy, run = _root(settings, store)
        path = answers_path(settings, directory.root)
        with closing(AnswerStore(path or directory.answers, run=run)) as answers:
            _write_down(prepared, store, entropy=entropy, run=run)
            evaluator = DocumentQueries(
                documents=prepared.file.documents,
                task=prepared.choice.task,
                orders=prepared.choice.orders(names, int(entropy)),
                batch_size=settings.batch_size,
                stations={name: Station(name, system, answers) for name, system in prepared.systems.items()},
            )
            decision = _choose(prepared, evaluator, store, directory, entropy=int(entropy), console=console)
            return _conclude(decision, prepared, answers, store, directory)
    finally:
        close_systems(prepared.systems)


def _choose(
    prepared: Prepared,
    evaluator: DocumentQueries,
    store: RunStore,
    directory: RunDirectory,
    *,
    entropy: int,
    console: Console,
) -> Decision:
    settings, choice = prepared.settings, prepared.choice

    def stop() -> None:
        for station in evaluator.stations.values():
            station.stop()

    with Progress(console, choice.task.metric, every=-(-choice.strategy.num_batches // LINES_OF_PROGRESS)) as progress:
        return Selection(
            strategy=choice.strategy,
            evaluator=evaluator,
            executor=ThreadExecutor(directory, workers=settings.workers, on_stop=stop),
            store=store,
            directory=directory,
            listener=progress,
            entropy=entropy,
            shared_splits=settings.documents_order == "shared",
            max_failures=settings.max_failures,
        ).run()


def _root(settings: DocumentSettings, store: RunStore) -> Tuple[str, str]:
    """The entropy, and the name under which answers are paid for: the store's, or those of a new selection."""
    entropy, run = store.get_meta("entropy"), store.get_meta("run")
    if entropy is not None:
        return entropy, run
    return str(fresh_entropy() if settings.entropy is None else settings.entropy), secrets.token_hex(16)


def _write_down(prepared: Prepared, store: RunStore, *, entropy: str, run: str) -> None:
    """Everything that the selection is about, all or none: from then on it can be recovered."""
    store.put_candidates(
        [
            {
                "name": name,
                "source": system.source,
                "config": dict(system.config),
                "facts": {"fingerprint": prepared.systems[name].fingerprint()},
            }
            for name, system in prepared.given.items()
        ],
        settings=prepared.settings.as_json(),
        documents=prepared.file.fingerprint,
        document_facts=asdict(prepared.choice.facts),
        entropy=entropy,
        run=run,
        environments=with_this(store.get_meta("environments") or [], prepared.settings.include_package),
    )


def _settings(given: Mapping[str, Any], store: RunStore, directory: RunDirectory) -> DocumentSettings:
    """The given settings above those in the store."""
    stored, entropy = store.get_meta("settings") or {}, store.get_meta("entropy")
    if stored and "documents" not in stored:
        raise StoreError(f"{directory.root}: the selection there is one of fiesta-select. Resume it with that command.")
    if stored and str(given.get("entropy")) == entropy:
        given = {name: value for name, value in given.items() if name != "entropy"}
    settings = DocumentSettings(**overlay(stored, given, of=DocumentSettings))
    changed = changed_document_settings(stored, settings) if stored else []
    if changed:
        name = changed[0]
        raise ConfigError(
            f"a selection that is resumed must make the same scores as before, but {option(name)} was "
            f"{stored.get(name)} and is now {getattr(settings, name)}. Leave that out, or start anew in another "
            "directory."
        )
    return settings


def _check_unchanged(prepared: Prepared, store: RunStore, directory: RunDirectory) -> None:
    """Refuse to go on with other documents or other systems; new systems may join."""
    fingerprint = store.get_meta("documents")
    if fingerprint is not None and fingerprint != prepared.file.fingerprint:
        raise ConfigError(
            f"{prepared.file.path} is not what it was when the selection in {directory.root} began. Undo the change, "
            "or start anew in another directory: the answers are kept, with --answers for other directories too."
        )
    for candidate in store.candidates():
        name = candidate["name"]
        if name not in prepared.systems:
            raise ConfigError(
                f"system '{name}' ({candidate['source']}) belongs to the selection in {directory.root} but is not "
                "given. Give all of its systems, or none to take them from the store."
            )
        if prepared.systems[name].fingerprint() != candidate["facts"]["fingerprint"]:
            raise ConfigError(
                f"system '{name}' ({prepared.given[name].source}) is not what it was when the selection in "
                f"{directory.root} began. Undo the change, give it another name to add it as another system, or start "
                "anew in another directory."
            )


def _conclude(
    decision: Decision, prepared: Prepared, answers: AnswerStore, store: RunStore, directory: RunDirectory
) -> Dict[str, Any]:
    history = store.history(max_failures=prepared.settings.max_failures)
    summary = prepared.choice.summary(history, decision, entropy=store.get_meta("entropy"), charges=answers.charges())
    with writing_results(directory):
        write_csv(store.rows(), directory.evaluations_csv)
        write_json(summary, directory.selection_json)
    return summary
