"""The paths of a run directory, its lock, and the check that its files are still those that were opened."""

import errno
import fcntl
import os
import platform
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from fiesta_allennlp.core import files, texts
from fiesta_allennlp.core.errors import ConfigError, StoreError
from fiesta_allennlp.core.files import OWN_DIRECTORY_MODE

DATA_DIRECTORY, OUTPUT_DIRECTORY = "data", "output"
"""The entries of a program's run: the files of its sets, and the program's own directory."""

LOG_FILE = "log.txt"
"""The output of a run."""

MODEL_DIRECTORY = f"{OUTPUT_DIRECTORY}/model"
"""The place where a program leaves its trained model."""

RUN_FILE = "run.json"
"""All that repeats a run that has not finished."""

OUTCOME_FILE = "outcome.json"
"""The outcome, and all that repeats the run. Written last and in one step, so that its presence means that the run is
complete."""


CONFIRMATION_PATTERN = re.compile(r"confirmation(?:-([1-9]\d{0,3}))?")
"""The names of the directories of confirmations: the first has no number."""


CONTENTS = (
    *("selection.json", "evaluations.csv", "store.sqlite", "store.sqlite-wal", "store.sqlite-shm", "selection.log"),
    *("vectors", "checks", "evaluations", "failures", "systems", "tensorboard", "report", "next", "jobs"),
    "confirmation.json",
)
"""The names of what a selection, or a report on it, makes. Results come before the store, so that none is left without
one."""


def _path_below_root(name: str) -> "cached_property[Path]":
    """A path below the root of a run directory."""
    return cached_property(lambda directory: directory.root / name)


@dataclass(frozen=True)
class RunDirectory:
    """Knows every path of a run. Nobody else joins file names."""

    root: Path

    store = _path_below_root("store.sqlite")  # every request and outcome
    store_log = _path_below_root("store.sqlite-wal")  # SQLite's, while the store is open, or after a kill
    lock = _path_below_root("store.lock")  # held by the one process that may write
    log = _path_below_root("selection.log")
    selection_json = _path_below_root("selection.json")
    confirmation_json = _path_below_root("confirmation.json")  # the verdicts, in the directory of a confirmation
    evaluations_csv = _path_below_root("evaluations.csv")
    report = _path_below_root("report")
    vectors = _path_below_root("vectors")
    jobs = _path_below_root("jobs")  # folders that jobs of a cluster share with the command, and their logs
    answers = _path_below_root("answers.sqlite")  # not among `contents`: they were paid for

    def check_log(self, candidate: str) -> Path:
        """The output of checking the candidate before its first run."""
        return self.root / "checks" / f"{texts.file_name(candidate)}.log"

    def evaluation(self, name: str) -> Path:
        """The serialization directory of run ``<candidate>-<replicate>``."""
        return self.root / "evaluations" / texts.file_name(name)

    def evaluation_log(self, name: str) -> Path:
        return self.evaluation(name) / LOG_FILE

    def failure_log(self, name: str, attempt: int) -> Path:
        """The log of a failed attempt, kept when the run is tried again."""
        return self.root / "failures" / f"{texts.file_name(name)}.{attempt}.log"

    def archive(self, name: str) -> Path:
        """The trained model of an AllenNLP run, if it was kept."""
        return self.evaluation(name) / "model.tar.gz"

    def model(self, name: str) -> Path:
        """The trained model of a program's run, if it was kept."""
        return self.evaluation(name) / MODEL_DIRECTORY

    def large_files(self, name: str) -> List[Path]:
        """The large and useless files of a failed run."""
        directory = self.evaluation(name)
        paths = [*directory.glob("*.th"), *directory.glob("*.tar.gz"), directory / DATA_DIRECTORY, self.model(name)]
        return [path for path in paths if path.exists()]

    def system_log(self, name: str) -> Path:
        """The standard error of a system."""
        return self.root / "systems" / f"{texts.file_name(name)}.log"

    @property
    def preparation_paths(self) -> Tuple[Path, ...]:
        """The files that the checks before the first run write."""
        return self.vectors, self.root / "checks", self.root / "systems"

    def confirmation(self, number: int) -> "RunDirectory":
        """The directory of a confirmation of this selection, counted from 1."""
        return RunDirectory(self.root / ("confirmation" if number == 1 else f"confirmation-{number}"))

    @property
    def confirmation_numbers(self) -> List[int]:
        """The numbers of the confirmations of this selection, in order."""
        matches = (CONFIRMATION_PATTERN.fullmatch(path.parent.name) for path in self.root.glob("*/store.sqlite"))
        return sorted(int(match[1] or 1) for match in matches if match)

    @property
    def staging(self) -> "RunDirectory":
        """The directory in which a new selection is checked before it replaces this one."""
        return RunDirectory(self.root / "next")

    def contents(self) -> List[Path]:
        """Everything here that a selection, or a report on it, made, in the order of `CONTENTS`."""
        paths = [*(self.root / name for name in CONTENTS), *self.root.glob(f".*{files.PART_SUFFIX}*")]
        paths += [self.confirmation(number).root for number in self.confirmation_numbers]
        return [path for path in paths if os.path.lexists(path)]

    @property
    def finished_runs(self) -> Set[str]:
        """The names of the runs that left an outcome here, whatever the store says; not those still arriving from
        another machine."""
        run_directories = (path.parent for path in (self.root / "evaluations").glob(f"*/{OUTCOME_FILE}"))
        return {directory.name for directory in run_directories if directory.suffix != files.PART_SUFFIX}


def refuse_place(path: Path, option: str, *, new: Optional[RunDirectory] = None) -> None:
    """Refuse a path with the name of a file or folder of a selection, in the directory of one, or of a `new` one.

    Raises:
        ConfigError: with the option that names the path.
    """
    place = path.resolve()
    for directory in map(RunDirectory, place.parents):
        name = place.relative_to(directory.root).parts[0]
        names = *CONTENTS, directory.lock.name, directory.answers.name
        is_own = name in names or CONFIRMATION_PATTERN.fullmatch(name)
        if is_own and (directory.lock.exists() or (new is not None and directory.root == new.root.resolve())):
            raise ConfigError(f"{option} {path} is among the files of the selection in {directory.root}. Change it.")


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
