import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import List, Set, Tuple

from fiesta_allennlp.core import files, texts

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
        """Everything here that a selection, or a report on it, made. Results come before the store, so that none is
        left without one."""
        names = "selection.json evaluations.csv store.sqlite store.sqlite-wal store.sqlite-shm selection.log"
        names += " vectors checks evaluations failures systems tensorboard report next jobs confirmation.json"
        paths = [*(self.root / name for name in names.split()), *self.root.glob(f".*{files.PART_SUFFIX}*")]
        paths += [self.confirmation(number).root for number in self.confirmation_numbers]
        return [path for path in paths if os.path.lexists(path)]

    @property
    def finished_runs(self) -> Set[str]:
        """The names of the runs that left an outcome here, whatever the store says; not those still arriving from
        another machine."""
        run_directories = (path.parent for path in (self.root / "evaluations").glob(f"*/{OUTCOME_FILE}"))
        return {directory.name for directory in run_directories if directory.suffix != files.PART_SUFFIX}
