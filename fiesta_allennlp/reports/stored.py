"""What a directory says of its selection, finished, interrupted or running. Nothing there is locked or changed."""

import json
import os
import platform
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, Optional

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import StoreError
from fiesta_allennlp.records import History
from fiesta_allennlp.selection.loop import SECONDS_BETWEEN_NOTES
from fiesta_allennlp.selection.store import StoreReader, reading

LOCKS = Path("/proc/locks")
"""Where Linux lists the locks that are held."""

SECONDS_OF_SILENCE = 3 * SECONDS_BETWEEN_NOTES
"""A selection that has not written anything for so long is not running."""

OF_FILES = "files "
"""What the fingerprint of data begins with that only programs have read: it is not one of labels and groups."""


class Stored:
    """Everything that a report reads of a directory: no other module of reports reads a store.

    In `meta`, `environments` is empty and `document_facts` None where an older version made the selection.
    """

    def __init__(self, directory: RunDirectory, store: StoreReader) -> None:
        self.directory = directory
        self._store = store
        self.meta = store.meta()
        self.candidates = store.candidates()
        self.names = [candidate.name for candidate in self.candidates]

    @property
    def by_documents(self) -> bool:
        """Whether `fiesta-documents` made it."""
        return self.meta.kind == "documents"

    @property
    def fingerprint(self) -> str:
        """Of the pool: that of what the readers of AllenNLP configs give, or else that of the files that programs get.
        Empty where programs cut their own sets."""
        pools = [candidate.facts["pool"] for candidate in self.candidates]
        of_readers = [pool["fingerprint"] for pool in pools if not pool.get("is_of_program")]
        of_files = [f"{OF_FILES}{pool['fingerprint']}" for pool in pools if pool["fingerprint"]]
        return next(iter([*of_readers, *of_files]), "")

    def history(self, *, max_failures: int) -> History:
        """The history with the metrics of every evaluation."""
        return self._store.history(max_failures=max_failures)

    @property
    def running(self) -> bool:
        """Whether a selection is at work in the directory."""
        return is_running(self.directory, self.meta.environments[-1].get("host") if self.meta.environments else None)

    def stopped_by(self, num_evaluations: int) -> Optional[str]:
        """Why a selection that has more to do is not at work: what it wrote itself, or it was killed."""
        try:
            summary = json.loads(self.directory.selection_json.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return "interrupted"
        is_latest = summary.get("num_evaluations") == num_evaluations
        return summary.get("stopped_by") if is_latest else "interrupted"


@contextmanager
def opened(root: Path) -> Iterator[Stored]:
    """The selection in a directory, as it is at this moment.

    Raises:
        StoreError: where there is no selection, or its store is damaged.
    """
    directory = RunDirectory(root)
    with reading(directory) as store:
        if not store.meta().begun:
            raise StoreError(
                f"{root}: the selection has not begun: its candidates are being checked, or it was stopped before its "
                "first run. There is nothing to report yet."
            )
        yield Stored(directory, store)


def is_running(directory: RunDirectory, host: Optional[str]) -> bool:
    """Whether a selection is at work in the directory, found out without touching its lock.

    On the machine of this name, where it was started last, a running one holds the lock, which the system lists. From
    elsewhere, and where locks are not listed, it is one that has written to its store not long ago.
    """
    try:
        if host == platform.node():
            status = directory.lock.stat()
            file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
            return any(file in line.split() for line in LOCKS.read_text(encoding="ascii").splitlines())
    except OSError:
        pass
    log = directory.store_log
    return log.exists() and time.time() - log.stat().st_mtime < SECONDS_OF_SILENCE
