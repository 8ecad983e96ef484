"""A selection from what was given to its result, whatever gives the scores: flags, settings, checks, directory, loop.

What the kinds of selections do not have in common is a `Kind`.
"""

import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import (
    Any,
    Dict,
    Generic,
    Iterator,
    List,
    Mapping,
    Sequence,
)

from rich.console import Console

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import ConfigError, StoreError
from fiesta_allennlp.seeding import fresh_entropy
from fiesta_allennlp.selection.environment import changed_code, with_this
from fiesta_allennlp.selection.kind import Checked, Given, Kind, Prepared, Stored
from fiesta_allennlp.selection.loop import Selection
from fiesta_allennlp.selection.options import as_json, by_own_names, changed_options
from fiesta_allennlp.selection.settings import SelectionSettings, overlay
from fiesta_allennlp.selection.store import Meta, RunStore
from fiesta_allennlp.selection.summary import count_text, write_csv, write_json
from fiesta_allennlp.selection.workspace import (
    already_there,
    clear,
    has_begun,
    logging_to,
    made_room,
    opened,
    writing_results,
)

COMMANDS = {"trainings": "fiesta-select", "documents": "fiesta-documents", "screening": "fiesta-search"}
"""By the kind of selection that a command makes."""


def run_selection(
    kind: Kind[Given, Checked, Prepared],
    given: Mapping[str, Any],
    root: Path,
    *,
    console: Console,
    recover: bool = False,
    force: bool = False,
    allow_removed: bool = False,
) -> Dict[str, Any]:
    """Run a selection to its decision, or go on with one. Returns the content of `selection.json`.

    Args:
        given: the settings that are not defaults; when recovering, what the store has stands below them.
        root: the directory where everything is kept.
        recover: go on with the selection in the directory.
        force: delete the selection in the directory first, but only once the new one has passed all checks.
        allow_removed: when recovering, withdraw candidates of the store that are not given; else that is an error.

    Raises:
        FiestaError: where a setting, a file or the directory is wrong; before the first evaluation, wherever that can
            be known.
    """
    if recover and force:
        raise ConfigError("--recover goes on with a selection and --force deletes it. Give one of them.")
    if allow_removed and not recover:
        raise ConfigError("--allow-removed withdraws candidates of a selection that is resumed. Add --recover.")
    with ExitStack() as stack:
        if recover:
            begun = _resume(kind, given, RunDirectory(root), stack, console=console, allow_removed=allow_removed)
        else:
            begun = _begin(kind, given, RunDirectory(root), stack, console=console, force=force)
        return _run(kind, begun, RunDirectory(root), console)


@contextmanager
def rehearsed(kind: Kind[Given, Checked, Prepared], settings: Given, console: Console) -> Iterator[Prepared]:
    """What a dry run tells of: all is checked, built and opened as for a new selection, and nothing stays.

    Raises:
        FiestaError: as `run_selection`, of settings and files.
    """
    with tempfile.TemporaryDirectory() as scratch:
        directory = RunDirectory(Path(scratch))
        checked = kind.check(settings, Stored(directory), allow_removed=False)
        with kind.prepared(checked, directory, directory, console) as prepared:
            yield prepared


@dataclass(frozen=True)
class _Begun(Generic[Given, Prepared]):
    """A selection that passed its checks, its open store, and how many runs have finished."""

    settings: Given
    prepared: Prepared
    store: RunStore
    num_done: int = 0


def _resume(
    kind: Kind[Given, Checked, Prepared],
    given: Mapping[str, Any],
    directory: RunDirectory,
    stack: ExitStack,
    *,
    console: Console,
    allow_removed: bool,
) -> _Begun[Given, Prepared]:
    store = stack.enter_context(opened(directory, create=False))
    stack.enter_context(logging_to(directory.log))
    meta = store.meta()
    settings = _resumed_settings(kind, given, meta, directory.root)
    history = store.history(max_failures=settings.max_failures)
    stored = Stored(directory, meta, tuple(store.candidates()), history)
    checked = kind.check(settings, stored, allow_removed=allow_removed)
    num_done = len(history.evaluations)
    done = count_text(num_done, kind.step)
    console.print(f"{directory.root}: going on after {done}.", highlight=False, markup=False, soft_wrap=True)
    prepared = stack.enter_context(kind.prepared(checked, directory, directory, console))
    return _Begun(settings, prepared, store, num_done)


def _begin(
    kind: Kind[Given, Checked, Prepared],
    given: Mapping[str, Any],
    directory: RunDirectory,
    stack: ExitStack,
    *,
    console: Console,
    force: bool,
) -> _Begun[Given, Prepared]:
    settings = kind.settings(**overlay(given, of=kind.settings))
    is_to_be_deleted = has_begun(directory)
    if is_to_be_deleted and not force:
        raise already_there(directory)
    checked = kind.check(settings, Stored(directory), allow_removed=False)
    if is_to_be_deleted:  # only for a selection that can begin
        place = stack.enter_context(made_room(directory.next))
        prepared = stack.enter_context(kind.prepared(checked, directory, place, console))
        clear(directory, instead=place)
    else:
        clear(directory)
    store = stack.enter_context(opened(directory, create=True))
    stack.enter_context(logging_to(directory.log))
    if not is_to_be_deleted:
        prepared = stack.enter_context(kind.prepared(checked, directory, directory, console))
    return _Begun(settings, prepared, store)


def _run(
    kind: Kind[Given, Checked, Prepared], begun: _Begun[Given, Prepared], directory: RunDirectory, console: Console
) -> Dict[str, Any]:
    """Write everything that the selection is about into the store, all or none: from then on it can be recovered. Then
    choose, and write down what came out."""
    prepared, store = begun.prepared, begun.store
    settings = kind.settled(prepared, begun.settings)
    meta = store.meta()
    entropy = meta.entropy or str(fresh_entropy() if settings.entropy is None else settings.entropy)
    files = kind.code(prepared)
    _note_changed_code(settings, meta, files, console)
    with kind.work(prepared, store, console, entropy=int(entropy)) as work:
        store.put_candidates(
            kind.rows(prepared),
            kind=kind.name,
            settings=as_json(settings),
            entropy=entropy,
            environments=with_this(meta.environments, settings.include_package, files),
            changes=(*meta.changes, *_changes(kind, meta, settings, begun.num_done)),
            **kind.meta(prepared),
        )
        decision = Selection(
            strategy=work.strategy,
            evaluator=work.evaluator,
            executor=work.executor,
            store=store,
            directory=directory,
            listener=work.listener,
            entropy=int(entropy),
            shared_splits=work.shared_splits,
            max_failures=settings.max_failures,
            max_hours=work.max_hours,
            without=kind.without,
            may_be_unfit=kind.may_be_unfit,
        ).run()
    history = store.history(max_failures=settings.max_failures)
    summary = kind.summary(prepared, history, decision, store.meta())
    with writing_results(directory):
        kind.conclude(prepared, history, decision)
        write_csv(store.rows(), directory.evaluations_csv)
        write_json(summary, directory.selection_json)
    return summary


def _resumed_settings(kind: Kind[Given, Checked, Prepared], given: Mapping[str, Any], meta: Meta, root: Path) -> Given:
    """The given settings above those in the store."""
    if not meta.begun and not given.get(kind.given):
        raise StoreError(
            f"{root}: the selection was stopped before its first {kind.step}, so there is nothing to recover. Give its "
            f"{kind.given} and options again, without --recover."
        )
    stored = meta.settings or {}
    if stored and meta.kind != kind.name:
        raise StoreError(
            f"{root}: the selection there is one of {COMMANDS.get(meta.kind, meta.kind)}. Resume it with that command."
        )
    given = by_own_names(given)
    if str(given.get("entropy")) == meta.entropy:
        given = {name: value for name, value in given.items() if name != "entropy"}
    settings = kind.settings(**overlay(stored, given, of=kind.settings))
    forbidden = changed_options(stored, settings) if stored else []
    if forbidden:
        raise ConfigError(
            f"a selection that is resumed must make the same scores as before, but {' and '.join(forbidden)}. Leave "
            "that out, or start again in another directory."
        )
    return settings


def _changes(kind: Kind[Given, Checked, Prepared], meta: Meta, settings: Given, num_done: int) -> List[Dict[str, Any]]:
    """What a resumed selection changes of how runs are chosen and when it ends, after `num_done` runs."""
    if not num_done:
        return []
    before = kind.settings(**overlay(meta.settings or {}, of=kind.settings)).deciding()
    return [
        {"option": name, "before": before[name], "now": now, "num_done": num_done}
        for name, now in settings.deciding().items()
        if before[name] != now
    ]


def _note_changed_code(settings: SelectionSettings, meta: Meta, files: Sequence[str], console: Console) -> None:
    for name in changed_code(meta.environments, settings.include_package, files):
        console.print(
            f"Note: the code of {name} is not what it was when this selection was at work last. What is evaluated from "
            "now on uses the new code; if scores change by it, start again in another directory.",
            highlight=False,
            soft_wrap=True,
        )
