"""A selection of one family, such as one by training runs: its options, its checks and its evaluator."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, ContextManager, Mapping, Sequence, Tuple, Type, TypeVar

from rich.console import Console

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.records import Candidate, Decision, History
from fiesta_allennlp.selection.loop import Selection
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
