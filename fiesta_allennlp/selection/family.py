"""A family of selections, such as one by training runs: its options, its checks and its evaluator."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, ContextManager, Generic, Mapping, Sequence, Tuple, Type, TypeVar

from rich.console import Console

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.records import Candidate, Decision, History
from fiesta_allennlp.selection.loop import LoopParts, Selection
from fiesta_allennlp.selection.result import Result
from fiesta_allennlp.selection.settings import SelectionSettings
from fiesta_allennlp.selection.store import Meta, RunStore


@dataclass(frozen=True)
class Resumed:
    """The content of the store when a selection is resumed; empty for a new selection."""

    directory: RunDirectory
    meta: Meta = field(default_factory=Meta)
    candidates: Tuple[Candidate, ...] = ()
    history: History = field(default_factory=lambda: History(()))


Given = TypeVar("Given", bound=SelectionSettings)
Checked = TypeVar("Checked")
Prepared = TypeVar("Prepared")


@dataclass(frozen=True)
class Recorded(Generic[Given]):
    """The data that the store keeps of a prepared selection: its settings, with what only the preparation could find
    out; its candidates with their facts; and further fields of `Meta`. Of the files in `code`, which runs execute in
    addition to the packages of `--include-package`, it keeps digests."""

    settings: Given
    candidates: Sequence[Candidate]
    meta: Mapping[str, Any] = field(default_factory=dict)
    code: Sequence[str] = ()


class SelectionFamily(ABC, Generic[Given, Checked, Prepared]):
    """A family of selections: its options, its checks before the first run, and its evaluator.

    `name` is written into the store, `settings` is the class of its options, and `given` the option that names the
    candidates. `step` is the word for a run, and `without` the advice how to continue without a candidate. With
    `may_be_unfit`, a lack that repeatedly hits one candidate alone is that candidate's failure.
    """

    name: ClassVar[str]
    settings: Type[Given]
    given: ClassVar[str]
    step: ClassVar[str]
    without: ClassVar[str] = Selection.without
    may_be_unfit: ClassVar[bool] = True

    @abstractmethod
    def check(self, settings: Given, stored: Resumed, *, allow_removed: bool) -> Checked:
        """Check everything that can be known without writing: files and options, also against the store."""

    @abstractmethod
    def prepared(
        self, checked: Checked, directory: RunDirectory, place: RunDirectory, console: Console
    ) -> ContextManager[Prepared]:
        """Build, open and try what the runs need; close it at the end of the context. Logs and working files are
        written below `place` and are found below `directory` afterwards."""

    @abstractmethod
    def recorded(self, prepared: Prepared, settings: Given) -> Recorded[Given]:
        """Return what the store keeps of the prepared selection, which was given these settings."""

    @abstractmethod
    def work(self, prepared: Prepared, store: RunStore, console: Console, *, seed: int) -> ContextManager[LoopParts]:
        """Open the parts that the loop works with, until the end of the context."""

    @abstractmethod
    def result(self, prepared: Prepared, history: History, decision: Decision, meta: Meta) -> Result:
        """Return the result of the decision."""

    def conclude(self, prepared: Prepared, history: History, decision: Decision) -> None:
        """Tidy up after the decision."""
