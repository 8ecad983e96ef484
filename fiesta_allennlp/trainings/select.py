"""A selection from its settings to its result: store, checks, loop, summary. What the command line calls."""

import tempfile
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping

from rich.console import Console

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import ConfigError, StoreError
from fiesta_allennlp.listeners.progress import Progress
from fiesta_allennlp.listeners.tensorboard import tensorboard
from fiesta_allennlp.records import Decision
from fiesta_allennlp.seeding import fresh_entropy
from fiesta_allennlp.selection.environment import changed_code
from fiesta_allennlp.selection.loop import Listener, Listeners, Selection
from fiesta_allennlp.selection.session import clear, logging_to, opened, writing_results
from fiesta_allennlp.selection.store import RunStore
from fiesta_allennlp.selection.strategy_building import build_strategy
from fiesta_allennlp.selection.summary import summarise, write_csv, write_json
from fiesta_allennlp.trainings.candidates import Roster, read_roster
from fiesta_allennlp.trainings.config import with_absolute_paths
from fiesta_allennlp.trainings.evaluator import AllenNLPTraining
from fiesta_allennlp.trainings.executor_building import build_executor, check_gpus
from fiesta_allennlp.trainings.kept_archives import BestArchives
from fiesta_allennlp.trainings.pool import Pool
from fiesta_allennlp.trainings.preparation import Preparation
from fiesta_allennlp.trainings.preparing import load_candidates, mark_unchanged, prepare, prepare_stored, write_down
from fiesta_allennlp.trainings.settings import Settings, changed_settings, merge


@dataclass(frozen=True)
class Plan:
    """What a dry run tells. `least` and `most` are numbers of evaluations."""

    preparations: Mapping[str, Preparation]
    strategy: Mapping[str, Any]
    least: int
    most: int

    @property
    def pool(self) -> Pool:
        return next(iter(self.preparations.values())).pool


def plan(settings: Settings, console: Console) -> Plan:
    """Check everything and build every model once, without writing anything that stays. Trains nothing.

    # Raises

    `FiestaError` : as `select`.
    """
    configs = load_candidates(settings)
    strategy = build_strategy(settings, list(configs))
    with tempfile.TemporaryDirectory() as scratch:
        directory = RunDirectory(Path(scratch))
        with closing(build_executor(settings, directory)) as executor:
            check_gpus(configs, executor)
            console.print(f"It would train {executor.describe()}.", highlight=False, soft_wrap=True)
        preparations = prepare(configs, settings, directory, console)
    least, most = strategy.bounds(len(configs))
    return Plan(preparations, settings.strategy_params(), least, most)


def select(
    given: Mapping[str, Any],
    directory: Path,
    *,
    console: Console,
    recover: bool = False,
    force: bool = False,
    allow_removed: bool = False,
) -> Dict[str, Any]:
    """Run a selection to its decision, or go on with one. Returns the content of `selection.json`.

    # Parameters

    given : the settings that are not defaults; when recovering, what the store has stands below them.
    directory : where everything is kept.
    recover : go on with the selection in `directory`.
    force : delete the selection in `directory` first.
    allow_removed : when recovering, withdraw candidates of the store that are not given; else that is an error.

    # Raises

    `FiestaError` : where a setting, a config, the data or the directory is wrong; before the first training, wherever
        that can be known.
    """
    run_directory = RunDirectory(directory)
    if recover and force:
        raise ConfigError("--recover goes on with a selection and --force deletes it. Give one of them.")
    if allow_removed and not recover:
        raise ConfigError("--allow-removed withdraws candidates of a selection that is resumed. Add --recover.")
    if not recover:
        settings = merge(given)
        build_strategy(settings, list(load_candidates(settings)))
        if force and run_directory.store.exists():
            plan(settings, console)  # nothing is deleted for a selection that cannot begin
        clear(run_directory, force=force)
    with opened(run_directory, create=not recover) as store, logging_to(run_directory.log):
        if recover and not store.begun and not given.get("candidates"):
            raise StoreError(
                f"{directory}: the selection was stopped before its first training, so there is nothing to recover. "
                "Give its candidates and options again, without --recover."
            )
        settings = _settings(given, store, run_directory)
        least = 1 if recover and not allow_removed else 2  # a single one is refused for those that are not given
        configs = load_candidates(settings, least=least)
        roster = read_roster(configs, store, run_directory, allow_removed=allow_removed)
        return _run(settings, roster, store, run_directory, console)


def _run(
    settings: Settings, roster: Roster, store: RunStore, directory: RunDirectory, console: Console
) -> Dict[str, Any]:
    strategy = build_strategy(settings, list(roster.given))
    if roster.late:
        history = store.history(max_failures=settings.max_failures)
        strategy.check_room(roster.joined(history, max_failures=settings.max_failures))
    with closing(build_executor(settings, directory)) as executor:
        check_gpus(roster.given, executor)
        preparations = prepare_stored(roster, settings, store, directory, console)
        entropy = _entropy(settings, store)
        _note_changed_code(settings, store, console)
        write_down(roster, preparations, settings, store, entropy=entropy)
        console.print(f"Training {executor.describe()}.", highlight=False, soft_wrap=True)
        evaluator = AllenNLPTraining(
            configs={name: with_absolute_paths(config) for name, config in roster.configs.items()},
            metric=settings.metric,
            group_by=next(iter(preparations.values())).pool.group_by,
            vectors={name: dict(preparation.vectors) for name, preparation in preparations.items()},
            keep_archives=settings.keep != "none",
            free_device=executor.gives_devices,
            data=mark_unchanged(roster.given, preparations),
        )
        with _listening(settings, store, directory, console) as listener:
            decision = Selection(
                strategy=strategy,
                evaluator=evaluator,
                executor=executor,
                store=store,
                directory=directory,
                listener=listener,
                entropy=int(store.get_meta("entropy")),
                shared_splits=settings.splits == "shared",
                max_failures=settings.max_failures,
                max_hours=settings.max_hours,
            ).run()
    return _conclude(decision, settings, store, directory)


@contextmanager
def _listening(settings: Settings, store: RunStore, directory: RunDirectory, console: Console) -> Iterator[Listener]:
    """The progress, and what is asked for of TensorBoard's scalars and of keeping the best models."""
    with ExitStack() as stack:
        listeners: List[Listener] = [stack.enter_context(Progress(console, settings.metric))]
        if settings.keep == "best":
            listeners.append(BestArchives(directory, store.history(max_failures=settings.max_failures)))
        if settings.tensorboard:
            listeners.append(stack.enter_context(tensorboard(directory.tensorboard, settings.metric)))
        yield Listeners(listeners)


def _conclude(decision: Decision, settings: Settings, store: RunStore, directory: RunDirectory) -> Dict[str, Any]:
    history = store.history(max_failures=settings.max_failures)
    strategy = settings.strategy_params()
    about = {
        "metric": settings.metric,
        "strategy": strategy,
        "belief": strategy["belief"],
        "splits": settings.splits,
        "entropy": store.get_meta("entropy"),
    }
    summary = summarise(history, decision, about)
    with writing_results(directory):
        if settings.keep == "best" and decision.stopped_by not in ("interrupted", "max_hours"):
            BestArchives(directory, history).keep_only(summary["best"])
        write_csv(store.rows(), directory.evaluations_csv)
        write_json(summary, directory.selection_json)
    return summary


def _settings(given: Mapping[str, Any], store: RunStore, directory: RunDirectory) -> Settings:
    """The given settings above those in the store."""
    stored, entropy = store.get_meta("settings") or {}, store.get_meta("entropy")
    if "documents" in stored:
        raise StoreError(
            f"{directory.root}: the selection there is one of fiesta-documents. Resume it with that command."
        )
    if stored and str(given.get("entropy")) == entropy:
        given = {name: value for name, value in given.items() if name != "entropy"}
    settings = merge(stored, given)
    changed = changed_settings(stored, settings) if stored else []
    if changed:
        raise ConfigError(
            f"a selection that is resumed must make the same scores as before, but {' and '.join(changed)}. "
            "Leave that out, or start anew in another directory."
        )
    return settings


def _note_changed_code(settings: Settings, store: RunStore, console: Console) -> None:
    for name in changed_code(store.get_meta("environments") or [], settings.include_package):
        console.print(
            f"Note: the code of {name} is not what it was when this selection was at work last. What is trained from "
            "now on uses the new code; if scores change by it, start anew in another directory.",
            highlight=False,
            soft_wrap=True,
        )


def _entropy(settings: Settings, store: RunStore) -> int:
    """The store's, or, in a new one, what was asked for, or fresh."""
    entropy = store.get_meta("entropy")
    if entropy is not None:
        return int(entropy)
    return fresh_entropy() if settings.entropy is None else settings.entropy
