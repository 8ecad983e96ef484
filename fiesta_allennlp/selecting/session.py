"""A selection from its settings to its result: checks, directory, loop. A `SelectionFamily` fills in the rest."""

import shlex
import tempfile
from abc import ABC, abstractmethod
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, ContextManager, Iterator, Mapping, Optional, Sequence, TypeVar, Union

from rich.console import Console

from fiesta_allennlp.choosing.strategy import Decision
from fiesta_allennlp.core import files, seeding, texts
from fiesta_allennlp.core.choice_settings import SelectionSettings
from fiesta_allennlp.core.directory import RunDirectory, refuse_place
from fiesta_allennlp.core.errors import ConfigError, StoreError, full_command
from fiesta_allennlp.core.options import changed_options, flag, settings_to_json
from fiesta_allennlp.core.records import Candidate, History
from fiesta_allennlp.selecting import objections, provenance, workspace
from fiesta_allennlp.selecting.loop import Display, Listener, SelectionLoop
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.selecting.store import COMMAND_BY_KIND, Meta, RunStore, check_store_not_lost
from fiesta_allennlp.version import __version__


@dataclass(frozen=True)
class StoredState:
    """The content of the store when a selection is resumed. A new selection may begin with runs that were made before,
    or with candidates whose checks another selection has passed."""

    directory: RunDirectory = field(default_factory=lambda: RunDirectory(Path()))
    meta: Meta = field(default_factory=Meta)
    candidates: tuple[Candidate, ...] = ()
    history: History = field(default_factory=lambda: History(()))
    brought: Optional[provenance.BroughtRuns] = None


Family = TypeVar("Family", bound="SelectionFamily")


class SelectionFamily(ABC):
    """A selection of one family. It is checked first, then prepared, and then it works.

    `name` is written into the store, `settings_class` is the class of its settings, and `candidates_option` the option
    that names the candidates. `run_noun` is the word for a run. `settings` are complete once it is prepared,
    `candidates` then have their facts, and the store keeps both, with `meta`, further arguments of `put_candidates`. Of
    the files in `code_files`, which runs execute in addition to the packages of `--include-package`, it keeps digests.
    """

    name: ClassVar[str]
    settings_class: ClassVar[type[SelectionSettings]]
    candidates_option: ClassVar[str]
    run_noun: ClassVar[str]

    settings: SelectionSettings
    brought: Optional[provenance.BroughtRuns] = None

    @classmethod
    @abstractmethod
    def check(cls: type[Family], settings: Any, stored: StoredState) -> Family:
        """Check everything that can be known without writing: files and options, also against the store."""

    @abstractmethod
    def prepare_runs(self, directory: RunDirectory, console: Console) -> ContextManager[None]:
        """Build, open and try what the runs need; close it at the end of the context. Logs and working files are
        written below `directory` and are found in the directory of the selection afterwards."""

    @property
    @abstractmethod
    def candidates(self) -> Sequence[Candidate]: ...

    @property
    def meta(self) -> Mapping[str, Any]:
        return {}

    @property
    def code_files(self) -> Sequence[str]:
        return ()

    @abstractmethod
    def open_loop(
        self, store: RunStore, console: Console, display: Display, *, seed: int
    ) -> ContextManager[SelectionLoop]:
        """Open what the loop works with, until the end of the context."""

    @abstractmethod
    def result(self, history: History, decision: Decision, *, seed: str) -> Result:
        """Return the result of the decision."""

    def conclude(self, history: History, result: Result) -> None:
        """Tidy up after the result."""
        return None


def run_selection(
    family: type[Family],
    settings: Union[Mapping[str, Any], SelectionSettings],
    root: Path,
    *,
    console: Console,
    display: Display = lambda *args, **options: nullcontext(Listener()),
    recover: bool = False,
    force: bool = False,
    beginning: Optional[StoredState] = None,
) -> Result:
    """Run a selection to its decision, or resume one, and return its result.

    Args:
        settings: those that are not defaults. If recovering, they win over those in the store. A new selection also
            takes complete settings.
        root: the directory that keeps everything.
        display: opens the display of the runs; by default nothing is shown.
        recover: continue the selection in the directory.
        force: delete the selection in the directory, but only once the new one has passed all checks.
        beginning: what a new selection begins with.
    """
    if recover and force:
        raise ConfigError("--recover continues a selection and --force deletes it. Use one or the other.")
    if beginning is not None and recover:
        raise ConfigError("--scores is for a new selection, but --recover resumes one. Remove --scores.")
    allowed = settings.get("allow", ()) if isinstance(settings, Mapping) else getattr(settings, "allow", ())
    if objections.REMOVED.name in allowed and not recover:
        raise ConfigError(f"--allow {objections.REMOVED.name} applies to a resumed selection. Add --recover.")
    with ExitStack() as stack:
        session = _Session(family, RunDirectory(root), console, display, stack)
        if recover and not isinstance(settings, SelectionSettings):
            return session.resume(settings)
        if not isinstance(settings, SelectionSettings):
            settings = family.settings_class.from_layers(settings)
        return session.start(settings, force=force, beginning=beginning)


@contextmanager
def dry_run(
    family: type[Family], settings: SelectionSettings, console: Console, beginning: Optional[StoredState] = None
) -> Iterator[Family]:
    """Check, build and open everything for a new selection, and keep nothing, for a dry run."""
    with tempfile.TemporaryDirectory() as scratch:
        directory = RunDirectory(Path(scratch))
        selection = family.check(settings, replace(beginning or StoredState(), directory=directory))
        with selection.prepare_runs(directory, console):
            yield selection


@dataclass(frozen=True)
class _Session:
    """A call of `run_selection`. The stack closes everything that it opens."""

    family: type[SelectionFamily]
    directory: RunDirectory
    console: Console
    display: Display
    stack: ExitStack

    def start(self, settings: SelectionSettings, *, force: bool, beginning: Optional[StoredState]) -> Result:
        """Begin a selection. With `force`, an old one is deleted once the new one can begin."""
        directory, staging = self.directory, self.directory.staging
        if self.family.name != "confirmation":
            refuse_place(directory.root, "-s")
        replaces_selection = workspace.check_place(directory, force=force)
        selection = self.family.check(settings, replace(beginning or StoredState(), directory=directory))
        if not replaces_selection:
            workspace.clear_directory(directory)
            store = self.stack.enter_context(workspace.open_store(directory, create=True))
            self.stack.enter_context(selection.prepare_runs(directory, self.console))
            return self._run(selection, store)
        files.delete(staging.root)
        staging.root.mkdir(mode=files.OWN_DIRECTORY_MODE, parents=True)
        self.stack.callback(files.delete, staging.root)
        self.stack.enter_context(selection.prepare_runs(staging, self.console))
        workspace.clear_directory(directory, staging=staging)
        return self._run(selection, self.stack.enter_context(workspace.open_store(directory, create=True)))

    def resume(self, new_settings: Mapping[str, Any]) -> Result:
        """Continue the selection in the directory."""
        family, directory = self.family, self.directory
        if directory.root.exists():
            files.check_private(directory.root)
        store = self.stack.enter_context(workspace.open_store(directory, create=False))
        meta = store.meta()
        provenance.check_current_directory(meta.environments)
        if not meta.is_started:  # such a store has no settings: they must be passed again, and no run may exist
            check_store_not_lost(directory)
            if not new_settings.get(family.candidates_option):
                reason = f"the selection was stopped before its first {family.run_noun}. Repeat it without --recover"
                raise StoreError(f"{directory.root}: nothing to recover: {reason}.")
        all_history = store.history(max_failures=1)
        is_scored = any(all_history.has_finished_own(name) for name in all_history.candidates)
        settings = self._merge_settings(new_settings, meta, is_scored=is_scored)
        history = store.history(max_failures=settings.max_failures)
        selection = family.check(settings, StoredState(directory, meta, tuple(store.candidates()), history))
        num_finished = len(history.evaluations)
        self.console.print(f"{directory.root}: continuing after {texts.count_text(num_finished, family.run_noun)}.")
        self.stack.enter_context(selection.prepare_runs(directory, self.console))
        changes = []  # of the choice of runs and its end
        if num_finished:
            old_values = meta.to_settings(family.settings_class).decision_options()
            changes = [
                {"option": name, "before": old_values[name], "now": new_value, "num_done": num_finished}
                for name, new_value in selection.settings.decision_options().items()
                if old_values[name] != new_value
            ]
        if changes:
            options = texts.names_text([flag(change["option"]) for change in changes])
            caution = "A choice that the scores suggested voids the target"
            self.console.print(f"Note: {options} changed, as every report will state. {caution}.")
        return self._run(selection, store, changes=changes)

    def _merge_settings(self, new_settings: Mapping[str, Any], meta: Meta, *, is_scored: bool) -> SelectionSettings:
        """Return given settings above those in the store. Until a run is scored, metric and overrides can change."""
        family, root = self.family, self.directory.root
        stored_settings = meta.settings or {}
        if stored_settings and meta.kind != family.name:
            of = f" {shlex.quote(str(root.parent))} --recover" if meta.kind == "confirmation" else ""
            raise StoreError(f"{root}: resume this selection with {full_command(COMMAND_BY_KIND[meta.kind])}{of}.")
        replaced: dict[str, Any] = {}
        if "allow" in stored_settings:
            kept = {objection.name for objection in objections.OBJECTIONS if objection.is_kept}
            replaced["allow"] = tuple(name for name in stored_settings["allow"] if name in kept)
        if str(new_settings.get("seed")) == meta.seed:
            new_settings = {name: value for name, value in new_settings.items() if name != "seed"}
        settings = meta.to_settings(family.settings_class, new_settings, **replaced)
        for name in () if is_scored else ("metric", "overrides"):
            replaced[name] = getattr(settings, name, None)
        forbidden_changes = changed_options({**stored_settings, **replaced}, settings) if stored_settings else []
        if forbidden_changes:
            changes = " and ".join(forbidden_changes)
            raise ConfigError(f"scores must stay comparable, but {changes}. Undo it, or start over elsewhere.")
        return settings

    def _run(self, selection: SelectionFamily, store: RunStore, *, changes: Sequence[dict[str, Any]] = ()) -> Result:
        """Write everything about the selection into the store in one step, from which on it can be recovered. Then
        choose, and write the results."""
        settings, meta, values = selection.settings, store.meta(), dict(selection.meta)
        seed = meta.seed or str(seeding.fresh_seed() if settings.seed is None else settings.seed)
        environment = provenance.describe_environment(settings.include_package, selection.code_files)
        for name in provenance.changed_code(meta.environments, environment):
            remedy = "If that changes scores, start over in another directory."
            self.console.print(f"Note: the code of {name} has changed since this selection last ran. {remedy}")
        with selection.open_loop(store, self.console, self.display, seed=int(seed)) as loop:
            if selection.brought is not None:
                for sentence in selection.brought.sentences:
                    self.console.print(f"Note: {sentence}")
                values.update(brought=selection.brought.outcomes, brought_facts=selection.brought.facts)
            store.put_candidates(
                selection.candidates,
                kind=selection.name,
                settings=settings_to_json(settings),
                version=__version__,
                source=asdict(provenance.package_source()),
                seed=seed,
                environments=provenance.append_environment(meta.environments, environment),
                changes=(*meta.changes, *changes),
                error=None,
                **values,
            )
            decision = loop.run()
        history = store.history(max_failures=settings.max_failures)
        result = replace(selection.result(history, decision, seed=seed), directory=self.directory.root)
        store.check_ownership()
        try:
            selection.conclude(history, result)
            workspace.write_csv(store.rows(), self.directory.evaluations_csv)
            store.check_ownership()
            result.write()
        except OSError as error:
            reason = f"{self.directory.root}: the results cannot be written: {error}"
            raise StoreError(f"{reason}. The store has them: free some disk space, then use --recover.") from error
        return result
