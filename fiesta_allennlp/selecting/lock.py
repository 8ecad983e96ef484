"""The lock of a run directory, and the check that its files are still the ones that were opened."""

import errno
import fcntl
import os
import platform
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import StoreError
from fiesta_allennlp.core.files import OWN_DIRECTORY_MODE

LOCK_TIMEOUT_SECONDS = 0.5
"""How long a writer waits for the lock. `is_locked` holds it for a moment."""

MAX_SECONDS_OF_SILENCE = 180
"""A running selection writes to its store at least once a minute, so three minutes of silence mean that it stopped."""

POLL_SECONDS = 0.01
MISSING_FILE_ERRNOS = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)  # the last one of a network file system


class DirectoryLock:
    """The lock of a run directory, which is made if necessary. It ends with the process, however that ends.

    Raise a `StoreError` if another process holds it, or if the directory is not writable.
    """

    def __init__(self, directory: RunDirectory) -> None:
        self._root = directory.root
        try:
            directory.root.mkdir(mode=OWN_DIRECTORY_MODE, parents=True, exist_ok=True)
            self._file: Optional[int] = _acquire(directory.lock)
        except BlockingIOError:
            message = f"{directory.root}: another selection is running here. Wait for it, or use another -s."
            raise StoreError(message) from None
        except OSError as error:
            reason = "it is a file" if directory.root.is_file() else error
            raise StoreError(f"{directory.root} is not writable: {reason}. Choose another with -s.") from error
        self._identities: Dict[Path, Optional[Tuple[int, int]]] = {}
        self.watch_files(directory.lock)

    def watch_files(self, *paths: Path) -> None:
        """Remember open files, for `check_files`. Their numbers stay theirs while they are open, even once deleted."""
        self._identities.update({path: _file_identity(path) for path in paths})

    @property
    def replaced_path(self) -> Optional[Path]:
        """The path at which another file lies, or none, instead of the one that was opened."""
        return next((path for path, identity in self._identities.items() if _file_identity(path) != identity), None)

    def check_files(self) -> None:
        """Raise a `StoreError` if the directory or one of its files was deleted, moved or replaced meanwhile: another
        selection may use the path by now."""
        if self.replaced_path is not None:
            raise StoreError(
                f"{self._root}: '{self.replaced_path.name}' was deleted, moved or replaced, so this selection has "
                "stopped. If you moved the directory, continue there with --recover."
            )

    def release(self) -> None:
        """Release the lock, if it is still held."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


def is_locked(directory: RunDirectory) -> bool:
    """Return whether a process on this machine holds the lock. Raise an `OSError` if that is unknown."""
    file = os.open(directory.lock, os.O_RDONLY)
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(file)


def is_at_work(directory: RunDirectory, environments: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a selection with these `environments` is running in the directory.

    On the same machine, it holds the lock. From another machine, check when the store was last written."""
    with suppress(OSError):
        if environments and environments[-1].get("host") == platform.node():
            return is_locked(directory)
    log = directory.store_log
    return log.exists() and time.time() - log.stat().st_mtime < MAX_SECONDS_OF_SILENCE


def _acquire(path: Path) -> int:
    deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file), path.stat()):
                return file
        except FileNotFoundError:  # it was deleted before it was locked
            pass
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(file)
                raise
        except BaseException:  # an interrupt, or a file system without locks
            os.close(file)
            raise
        os.close(file)
        time.sleep(POLL_SECONDS)


def _file_identity(path: Path) -> Optional[Tuple[int, int]]:
    """Return the numbers of the file at a path; None if there is none."""
    try:
        status = path.stat()
    except OSError as error:
        if error.errno in MISSING_FILE_ERRNOS:
            return None
        raise StoreError(f"{path} is unavailable: {error}. Nothing is lost: continue with --recover.") from error
    return status.st_dev, status.st_ino
