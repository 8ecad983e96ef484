"""A selection from its settings to its result: flags, checks, directory, loop. A `SelectionFamily` fills in the
rest."""

import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, Generic, Iterator, List, Mapping

from rich.console import Console

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, StoreError, command
from fiesta_allennlp.core.files import delete
from fiesta_allennlp.core.records import Decision, History
from fiesta_allennlp.core.seeding import fresh_seed
from fiesta_allennlp.selection import workspace
from fiesta_allennlp.selection.environment import changed_code, check_directory, environment, with_this
from fiesta_allennlp.selection.family import Checked, Given, Prepared, Resumed, SelectionFamily
from fiesta_allennlp.selection.loop import Selection
from fiesta_allennlp.selection.options import as_json, changed_options
from fiesta_allennlp.selection.result import Result
from fiesta_allennlp.selection.settings import overlay
from fiesta_allennlp.selection.store import COMMANDS, Meta, RunStore, check_not_lost
from fiesta_allennlp.selection.summary import count_text, write_csv
from fiesta_allennlp.strategies.margins import kept_margin, unfixed


def run_selection(
    family: SelectionFamily[Given, Checked, Prepared],
    given: Mapping[str, Any],
    root: Path,
    *,
    console: Console,
    recover: bool = False,
    force: bool = False,
    allow_removed: bool = False,
) -> Result:
    """Run a selection to its decision, or resume one, and return its result.

    Args:
        given: the settings that are not defaults. If recovering, they win over those in the store.
        root: the directory that keeps everything.
        recover: continue the selection in the directory.
        force: delete the selection in the directory, but only once the new one has passed all checks.
        allow_removed: if recovering, withdraw candidates of the store that are not given, instead of refusing.
    """
    if recover and force:
        raise ConfigError("--recover continues a selection and --force deletes it. Use one or the other.")
    if allow_removed and not recover:
        raise ConfigError("--allow-removed applies to a resumed selection. Add --recover.")
    with ExitStack() as stack:
        session = _Session(family, given, RunDirectory(root), console, stack)
        return session.resume(allow_removed=allow_removed) if recover else session.begin(force=force)


@contextmanager
def rehearsed(
    family: SelectionFamily[Given, Checked, Prepared], settings: Given, console: Console
) -> Iterator[Prepared]:
    """Check, build and open everything for a new selection, and keep nothing, for a dry run."""
    with tempfile.TemporaryDirectory() as scratch:
        directory = RunDirectory(Path(scratch))
        checked = family.check(settings, Resumed(directory), allow_removed=False)
        with family.prepared(checked, directory, directory, console) as prepared:
            yield prepared


@dataclass(frozen=True)
class _Session(Generic[Given, Checked, Prepared]):
    """A call of `run_selection`. The stack closes everything that it opens."""

    family: SelectionFamily[Given, Checked, Prepared]
    given: Mapping[str, Any]
    directory: RunDirectory
    console: Console
    stack: ExitStack

    def resume(self, *, allow_removed: bool) -> Result:
        family, directory = self.family, self.directory
        store = self._opened(create=False)
        meta = store.meta()
        check_directory(meta.environments)
        known = store.history(max_failures=1)
        is_scored = bool(known.evaluations) or any(failure.kind == "score" for failure in known.failures)
        settings = self._resumed_settings(meta, is_scored=is_scored)
        history = store.history(max_failures=settings.max_failures)
        stored = Resumed(directory, meta, tuple(store.candidates()), history)
        checked = family.check(settings, stored, allow_removed=allow_removed)
        num_done = len(history.evaluations)
        self.console.print(f"{directory.root}: continuing after {count_text(num_done, family.step)}.")
        return self._run(settings, self._prepared(checked, directory), store, num_done=num_done)

    def begin(self, *, force: bool) -> Result:
        family, directory = self.family, self.directory
        settings = family.settings(**overlay(self.given, of=family.settings))
        is_to_be_deleted = workspace.has_begun(directory)
        if is_to_be_deleted and not force:
            raise workspace.already_there(directory)
        if not is_to_be_deleted:
            workspace.check_nobody_elses(directory, force=force)
        checked = family.check(settings, Resumed(directory), allow_removed=False)
        if not is_to_be_deleted:
            workspace.clear(directory)
            store = self._opened(create=True)
            return self._run(settings, self._prepared(checked, directory), store)
        place = directory.next
        delete(place.root)
        place.root.mkdir(parents=True)
        self.stack.callback(delete, place.root)
        prepared = self._prepared(checked, place)  # the old one is deleted only for a selection that can begin
        workspace.clear(directory, instead=place)
        return self._run(settings, prepared, self._opened(create=True))

    def _run(self, given: Given, prepared: Prepared, store: RunStore, *, num_done: int = 0) -> Result:
        """Write everything about the selection into the store in one step, from which on it can be recovered. Then
        choose, and conclude."""
        family = self.family
        recorded, meta = family.recorded(prepared, given), store.meta()
        settings = recorded.settings
        seed = meta.seed or str(fresh_seed() if settings.seed is None else settings.seed)
        here = environment(settings.include_package, recorded.code)
        for name in changed_code(meta.environments, here):
            self.console.print(
                f"Note: the code of {name} has changed since this selection last ran. New runs use the new code. If it "
                "changes scores, start over in another directory."
            )
        if meta.settings and (changed_options(meta.settings, settings) or "max_failures" in self.given):
            store.reopen("metric")  # runs may have reported another metric, or are to be tried once more
        with family.work(prepared, store, self.console, seed=int(seed)) as parts:
            store.put_candidates(
                recorded.candidates,
                kind=family.name,
                settings=as_json(settings),
                seed=seed,
                environments=with_this(meta.environments, here),
                changes=(*meta.changes, *self._changes(meta, settings, num_done)),
                **recorded.meta,
            )
            decision = Selection(
                **vars(parts),
                store=store,
                directory=self.directory,
                seed=int(seed),
                max_failures=settings.max_failures,
                without=family.without,
                may_be_unfit=family.may_be_unfit,
            ).run()
        return self._concluded(prepared, store.history(max_failures=settings.max_failures), decision, store)

    def _concluded(self, prepared: Prepared, history: History, decision: Decision, store: RunStore) -> Result:
        """Write the results, and return what `selection.json` says."""
        result = self.family.result(prepared, history, decision, store.meta())
        result = replace(result, directory=self.directory.root)
        store.check_own()
        try:
            self.family.conclude(prepared, history, decision)
            write_csv(store.rows(), self.directory.evaluations_csv)
            store.check_own()
            result.write()
        except OSError as error:
            raise StoreError(
                f"{self.directory.root}: the results cannot be written: {error}. They are safe in "
                f"{self.directory.store.name}. Free some disk space, then write them with --recover."
            ) from error
        return result

    def _opened(self, *, create: bool) -> RunStore:
        return self.stack.enter_context(workspace.opened(self.directory, create=create))

    def _prepared(self, checked: Checked, place: RunDirectory) -> Prepared:
        return self.stack.enter_context(self.family.prepared(checked, self.directory, place, self.console))

    def _resumed_settings(self, meta: Meta, *, is_scored: bool) -> Given:
        """Return the given settings above those in the store. Until a run is scored, the metric may change."""
        family, given, root = self.family, self.given, self.directory.root
        if not meta.begun:
            self._check_begun()
        stored = meta.settings or {}
        if stored and meta.kind != family.name:
            raise StoreError(
                f"{root}: the selection was started with {command(COMMANDS[meta.kind])}. Resume it with that command."
            )
        if str(given.get("seed")) == meta.seed:
            given = {name: value for name, value in given.items() if name != "seed"}
        if kept_margin(given.get("margin"), stored.get("margin")):
            given = {name: value for name, value in given.items() if name != "margin"}
        if given.get("min_score", stored.get("min_score")) != stored.get("min_score"):
            stored = {**stored, "margin": unfixed(stored.get("margin"))}  # other runs have failed now
        settings = family.settings(**overlay(stored, given, of=family.settings))
        kept = stored if is_scored else {**stored, "metric": getattr(settings, "metric", None)}
        forbidden = changed_options(kept, settings) if stored else []
        if forbidden:
            raise ConfigError(
                f"a resumed selection must produce the same scores as before, but {' and '.join(forbidden)}. "
                "Remove the option, or start over in another directory."
            )
        return settings

    def _check_begun(self) -> None:
        """Refuse to resume a store without settings, unless they are passed again and no run exists."""
        directory, family = self.directory, self.family
        check_not_lost(directory)
        if not self.given.get(family.given):
            raise StoreError(
                f"{directory.root}: nothing to recover: the selection was stopped before its first {family.step}. "
                f"Repeat its {family.given} and options, without --recover."
            )

    def _changes(self, meta: Meta, settings: Given, num_done: int) -> List[Dict[str, Any]]:
        """List how a resumed selection changes its choice of runs and its end, after `num_done` runs."""
        if not num_done:
            return []
        of = self.family.settings
        before = of(**overlay(meta.settings or {}, of=of)).deciding()
        return [
            {"option": name, "before": before[name], "now": now, "num_done": num_done}
            for name, now in settings.deciding().items()
            if before[name] != now
        ]
