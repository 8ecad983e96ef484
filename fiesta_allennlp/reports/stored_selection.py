"""Opens the current state of a selection in a directory. Nothing is locked or changed."""

from contextlib import contextmanager
from pathlib import Path
from typing import Dict, Iterator, Optional

from fiesta_allennlp.candidates.pool import Preparation, preparation_from_facts
from fiesta_allennlp.candidates.studies import Trial, trials_of
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import StoreError
from fiesta_allennlp.core.records import History
from fiesta_allennlp.selecting.database import translated_store_errors
from fiesta_allennlp.selecting.lock import is_at_work
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.selecting.store import StoreReader, open_for_reading


class StoredSelection:
    """The content of a run directory that a report reads."""

    def __init__(self, directory: RunDirectory, store: StoreReader) -> None:
        self.directory = directory
        self.meta = store.meta()
        self.candidates = store.candidates()
        self.names = [candidate.name for candidate in self.candidates]
        self.read_history = store.history
        self.preparations: Dict[str, Preparation] = {}
        if self.meta.kind != "documents":
            with translated_store_errors(directory.store):
                self.preparations = {
                    candidate.name: preparation_from_facts(candidate.facts) for candidate in self.candidates
                }

    @property
    def trials(self) -> Dict[str, Trial]:
        """The trials of a study that are candidates, by name."""
        return trials_of({candidate.name: candidate for candidate in self.candidates})

    @property
    def is_running(self) -> bool:
        """True if a selection is running in the directory."""
        return is_at_work(self.directory, self.meta.environments)

    def find_stop_reason(self, history: History) -> Optional[str]:
        """Return why an unfinished selection is not running: the recorded reason, or `interrupted` after a kill."""
        num_scored = len(history.evaluations) + sum(failure.kind == "score" for failure in history.failures)
        try:
            result = Result.read(self.directory.root)
        except StoreError:
            return "interrupted"
        is_latest = result.num_evaluations + sum(c.num_missed for c in result.candidates) == num_scored
        return result.stopped_by if is_latest else "interrupted"


@contextmanager
def open_selection(root: Path) -> Iterator[StoredSelection]:
    """Open the current state of the selection in a directory."""
    directory = RunDirectory(root)
    with open_for_reading(directory) as store:
        if not store.meta().is_started:
            raise StoreError(f"{root}: the selection has not begun its first run, so there is nothing to report yet.")
        selection = StoredSelection(directory, store)
        if not selection.candidates:
            raise StoreError(f"{root}: the store has no candidates. Restore it from a copy.")
        yield selection
