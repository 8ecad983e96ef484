"""A selection from its settings to its result: flags, checks, directory, loop. A `SelectionFamily` fills in the
rest."""

import os
import tempfile
from abc import ABC, abstractmethod
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import (
    Any,
    ClassVar,
    ContextManager,
    Dict,
    Generic,
    Iterator,
    List,
    Mapping,
    Sequence,
    Tuple,
    Type,
    TypeVar,
    Union,
)

from rich.console import Console

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, StoreError, full_command
from fiesta_allennlp.core.files import delete
from fiesta_allennlp.core.records import Candidate, Decision, History
from fiesta_allennlp.core.seeding import fresh_seed
from fiesta_allennlp.selection import workspace
from fiesta_allennlp.selection.environment import changed_code, check_directory, environment, with_this
from fiesta_allennlp.selection.loop import Selection
from fiesta_allennlp.selection.options import as_json, changed_options
from fiesta_allennlp.selection.result import Result
from fiesta_allennlp.selection.settings import SelectionSettings
from fiesta_allennlp.selection.store import COMMANDS, Meta, RunStore, check_not_lost
from fiesta_allennlp.selection.summary import count_text, write_csv
from fiesta_allennlp.strategies.base import is_recorded_margin, without_fixed_number


@dataclass(frozen=True)
class Resumed:
    """The content of the store when a selection is resumed; empty for a new selection."""

    directory: RunDirectory
    meta: Meta = field(default_factory=Meta)
    candidates: Tuple[Candidate, ...] = ()
    history: History = field(default_factory=lambda: History(()))


Family = TypeVar("Family", bound="SelectionFamily")


class SelectionFamily(ABC):
    """A selection of one family. It is checked first, then prepared, and then it works.

    `name` is written into the store, `options` is the class of its settings, and `positional` the option that names the
    candidates. `step` is the word for a run. `settings` are complete once it is prepared, `candidates` then have their
    facts, and the store keeps both, with `meta`, which are further fields of `Meta`. Of the files in `code`, which runs
    execute in addition to the packages of `--include-package`, it keeps digests.
    """

    name: ClassVar[str]
    options: ClassVar[Type[SelectionSettings]]
    positional: ClassVar[str]
    step: ClassVar[str]

    settings: SelectionSettings

    @classmethod
    @abstractmethod
    def check(cls: Type[Family], settings: Any, stored: Resumed, *, allow_removed: bool) -> Family:
        """Check everything that can be known without writing: files and options, also against the store."""

    @abstractmethod
    def prepared(self, directory: RunDirectory, console: Console) -> ContextManager[None]:
        """Build, open and try what the runs need; close it at the end of the context. Logs and working files are
        written below `directory` and are found in the directory of the selection afterwards."""

    @property
    @abstractmethod
    def candidates(self) -> Sequence[Candidate]: ...

    @property
    def meta(self) -> Mapping[str, Any]:
        return {}

    @property
    def code(self) -> Sequence[str]:
        return ()

    @abstractmethod
    def work(self, store: RunStore, console: Console, *, seed: int) -> ContextManager[Selection]:
        """Open what the loop works with, until the end of the context."""

    @abstractmethod
    def result(self, history: History, decision: Decision, *, seed: str) -> Result:
        """Return the result of the decision."""

    def conclude(self, history: History, decision: Decision) -> None:
        """Tidy up after the decision."""
        return None


def run_selection(
    family: Type[Family],
    settings: Union[Mapping[str, Any], SelectionSettings],
    root: Path,
    *,
    console: Console,
    recover: bool = False,
    force: bool = False,
    allow_removed: bool = False,
) -> Result:
    """Run a selection to its decision, or resume one, and return its result.

    Args:
        given: the settings that are not defaults. If recovering, they win over those in the store. A new selection also
            takes complete settings.
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
        session = _Session(family, RunDirectory(root), console, stack)
        if isinstance(settings, SelectionSettings):
            return session.begin(settings, force=force)
        if recover:
            return session.resume(settings, allow_removed=allow_removed)
        return session.begin(family.options.of(settings), force=force)


@contextmanager
def rehearsed(family: Type[Family], settings: SelectionSettings, console: Console) -> Iterator[Family]:
    """Check, build and open everything for a new selection, and keep nothing, for a dry run."""
    with tempfile.TemporaryDirectory() as scratch:
        directory = RunDirectory(Path(scratch))
        selection = family.check(settings, Resumed(directory), allow_removed=False)
        with selection.prepared(directory, console):
            yield selection


@dataclass(frozen=True)
class _Session(Generic[Family]):
    """A call of `run_selection`. The stack closes everything that it opens."""

    family: Type[Family]
    directory: RunDirectory
    console: Console
    stack: ExitStack

    def resume(self, new_settings: Mapping[str, Any], *, allow_removed: bool) -> Result:
        family, directory = self.family, self.directory
        store = self._opened(create=False)
        meta = store.meta()
        check_directory(meta.environments)
        if directory.store.stat().st_uid != os.getuid():
            self.console.print(
                f"Note: {directory.store} belongs to another user. Resuming it runs the programs and imports the "
                "packages that it names."
            )
        all_history = store.history(max_failures=1)
        is_scored = bool(all_history.evaluations) or any(failure.kind == "score" for failure in all_history.failures)
        settings = self._resumed_settings(new_settings, meta, is_scored=is_scored)
        history = store.history(max_failures=settings.max_failures)
        stored = Resumed(directory, meta, tuple(store.candidates()), history)
        selection = family.check(settings, stored, allow_removed=allow_removed)
        num_done = len(history.evaluations)
        self.console.print(f"{directory.root}: continuing after {count_text(num_done, family.step)}.")
        self._prepare(selection, directory)
        if meta.settings and (changed_options(meta.settings, selection.settings) or "max_failures" in new_settings):
            store.reopen("metric")  # runs may have reported another metric, or are to be tried once more
        return self._run(selection, store, changes=self._changes(meta, selection.settings, num_done))

    def begin(self, settings: SelectionSettings, *, force: bool) -> Result:
        directory = self.directory
        is_to_be_deleted = workspace.has_begun(directory)
        if is_to_be_deleted and not force:
            raise workspace.already_there(directory)
        if not is_to_be_deleted:
            workspace.check_nobody_elses(directory, force=force)
        selection = self.family.check(settings, Resumed(directory), allow_removed=False)
        if not is_to_be_deleted:
            workspace.clear(directory)
            store = self._opened(create=True)
            self._prepare(selection, directory)
            return self._run(selection, store)
        preparation_directory = directory.staging
        delete(preparation_directory.root)
        preparation_directory.root.mkdir(parents=True)
        self.stack.callback(delete, preparation_directory.root)
        self._prepare(selection, preparation_directory)  # the old one is deleted only for a selection that can begin
        workspace.clear(directory, instead=preparation_directory)
        return self._run(selection, self._opened(create=True))

    def _run(self, selection: Family, store: RunStore, *, changes: Sequence[Dict[str, Any]] = ()) -> Result:
        """Write everything about the selection into the store in one step, from which on it can be recovered. Then
        choose, and conclude."""
        settings, meta = selection.settings, store.meta()
        seed = meta.seed or str(fresh_seed() if settings.seed is None else settings.seed)
        current_environment = environment(settings.include_package, selection.code)
        for name in changed_code(meta.environments, current_environment):
            self.console.print(
                f"Note: the code of {name} has changed since this selection last ran. New runs use the new code. If it "
                "changes scores, start over in another directory."
            )
        with selection.work(store, self.console, seed=int(seed)) as loop:
            store.put_candidates(
                selection.candidates,
                kind=selection.name,
                settings=as_json(settings),
                seed=seed,
                environments=with_this(meta.environments, current_environment),
                changes=(*meta.changes, *changes),
                **selection.meta,
            )
            decision = loop.run()
        return self._concluded(selection, store.history(max_failures=settings.max_failures), decision, store)

    def _concluded(self, selection: Family, history: History, decision: Decision, store: RunStore) -> Result:
        """Write the results, and return what `selection.json` says."""
        result = selection.result(history, decision, seed=str(store.meta().seed))
        result = replace(result, directory=self.directory.root)
        store.check_own()
        try:
            selection.conclude(history, decision)
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

    def _prepare(self, selection: Family, directory: RunDirectory) -> None:
        self.stack.enter_context(selection.prepared(directory, self.console))

    def _resumed_settings(self, new_settings: Mapping[str, Any], meta: Meta, *, is_scored: bool) -> SelectionSettings:
        """Return the given settings above those in the store. Until a run is scored, the metric may change."""
        family, root = self.family, self.directory.root
        if not meta.begun:
            self._check_begun(new_settings)
        stored = meta.settings or {}
        if stored and meta.kind != family.name:
            raise StoreError(
                f"{root}: the selection was started with {full_command(COMMANDS[meta.kind])}. Resume it with that "
                "command."
            )
        if str(new_settings.get("seed")) == meta.seed:
            new_settings = {name: value for name, value in new_settings.items() if name != "seed"}
        if is_recorded_margin(new_settings.get("margin"), stored.get("margin")):
            new_settings = {name: value for name, value in new_settings.items() if name != "margin"}
        if new_settings.get("min_score", stored.get("min_score")) != stored.get("min_score"):
            stored = {**stored, "margin": without_fixed_number(stored.get("margin"))}  # other runs have failed now
        settings = family.options.of(stored, new_settings)
        comparable = stored if is_scored else {**stored, "metric": getattr(settings, "metric", None)}
        forbidden = changed_options(comparable, settings) if stored else []
        if forbidden:
            raise ConfigError(
                f"a resumed selection must produce the same scores as before, but {' and '.join(forbidden)}. "
                "Remove the option, or start over in another directory."
            )
        return settings

    def _check_begun(self, new_settings: Mapping[str, Any]) -> None:
        """Refuse to resume a store without settings, unless they are passed again and no run exists."""
        directory, family = self.directory, self.family
        check_not_lost(directory)
        if not new_settings.get(family.positional):
            raise StoreError(
                f"{directory.root}: nothing to recover: the selection was stopped before its first {family.step}. "
                f"Repeat its {family.positional} and options, without --recover."
            )

    def _changes(self, meta: Meta, settings: SelectionSettings, num_done: int) -> List[Dict[str, Any]]:
        """List how a resumed selection changes its choice of runs and its end, after `num_done` runs."""
        if not num_done:
            return []
        old_values = self.family.options.of(meta.settings or {}).deciding()
        return [
            {"option": name, "before": old_values[name], "now": value, "num_done": num_done}
            for name, value in settings.deciding().items()
            if old_values[name] != value
        ]
