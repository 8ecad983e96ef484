from dataclasses import dataclass
from pathlib import Path
from typing import List, Tuple

SETS = "data"
MODEL = "model"
"""What the evaluation of a program has in its directory: the files of its sets, and its trained model."""


@dataclass(frozen=True)
class RunDirectory:
    """Knows every path of a run. Nobody else joins file names."""

    root: Path

    @property
    def store(self) -> Path:
        """The SQLite file with every request and outcome."""
        return self.root / "store.sqlite"

    @property
    def store_log(self) -> Path:
        """What has been written to the store and is not in its file yet. There while the store is open, or where its
        process was killed."""
        return self.root / "store.sqlite-wal"

    @property
    def report(self) -> Path:
        """Where a report of this selection is written, unless another place is given."""
        return self.root / "report"

    @property
    def lock(self) -> Path:
        """Held by the one process that may write."""
        return self.root / "store.lock"

    @property
    def log(self) -> Path:
        """What the selection itself did, with times."""
        return self.root / "selection.log"

    @property
    def notify_log(self) -> Path:
        """What the command of `--notify` printed."""
        return self.root / "notify.log"

    @property
    def selection_json(self) -> Path:
        return self.root / "selection.json"

    @property
    def evaluations_csv(self) -> Path:
        return self.root / "evaluations.csv"

    @property
    def vectors(self) -> Path:
        """Word-vector files cut down to the pool's words."""
        return self.root / "vectors"

    @property
    def tensorboard(self) -> Path:
        """TensorBoard's event files of the selection."""
        return self.root / "tensorboard"

    def check_log(self, candidate: str) -> Path:
        """What building the candidate's model printed before the first training."""
        return self.root / "checks" / f"{candidate}.log"

    def evaluation(self, name: str) -> Path:
        """The serialization directory of evaluation ``<candidate>-<replicate>``."""
        return self.root / "evaluations" / name

    def evaluation_log(self, name: str) -> Path:
        return self.evaluation(name) / "log.txt"

    def failure_log(self, name: str, attempt: int) -> Path:
        """The log of an attempt that failed, kept when the evaluation is tried again."""
        return self.root / "failures" / f"{name}.{attempt}.log"

    def archive(self, name: str) -> Path:
        """The trained model of an evaluation, where it was kept."""
        return self.evaluation(name) / "model.tar.gz"

    def model(self, name: str) -> Path:
        """What a program left as its trained model, where it was kept."""
        return self.evaluation(name) / MODEL

    def large(self, name: str) -> List[Path]:
        """What is large and of no use in the directory of an evaluation that failed."""
        directory = self.evaluation(name)
        found = [*directory.glob("*.th"), *directory.glob("*.tar.gz"), directory / SETS, self.model(name)]
        return [path for path in found if path.exists()]

    @property
    def answers(self) -> Path:
        """What systems answered about documents. Not among `contents`: it was paid for, and serves later selections."""
        return self.root / "answers.sqlite"

    def system_log(self, name: str) -> Path:
        """What a system wrote on its standard error."""
        return self.root / "systems" / f"{name}.log"

    @property
    def slurm(self) -> Path:
        """What the jobs of a selection on a Slurm cluster share with the command, and their own logs."""
        return self.root / "slurm"

    @property
    def detached_log(self) -> Path:
        """What a command that went into the background wrote since then."""
        return self.root / "detached.log"

    @property
    def prepared(self) -> Tuple[Path, ...]:
        """What the checks before the first evaluation write."""
        return self.vectors, self.root / "checks", self.root / "systems"

    @property
    def ended_before_its_first_run(self) -> bool:
        """Whether checks wrote here and nothing else did."""
        later = (self.store, self.selection_json, self.root / "evaluations")
        return any(path.exists() for path in self.prepared) and not any(path.exists() for path in later)

    @property
    def screening(self) -> "RunDirectory":
        """The first stage of a search; this directory has the second one."""
        return RunDirectory(self.root / "screening")

    @property
    def stores(self) -> Tuple[Path, Path]:
        """That of the selection, and that of a search's first stage."""
        return self.store, self.screening.store

    @property
    def next(self) -> "RunDirectory":
        """Where a selection is checked that is to take the place of the one in this directory."""
        return RunDirectory(self.root / "next")

    def contents(self) -> List[Path]:
        """Everything that is there and that a selection, or a report on it, made."""
        made = ["store.sqlite", "store.sqlite-wal", "store.sqlite-shm", "selection.log", "notify.log", "selection.json"]
        made += ["evaluations.csv", "vectors", "checks", "evaluations", "failures", "systems", "tensorboard", "report"]
        made += ["next", "screening", "slurm"]
        return [path for path in (self.root / name for name in made) if path.exists()]


def at_work_words(pid: int) -> str:
    """What stands in the log of a selection from the moment on when this process makes its runs."""
    return f"at work as process {pid} "
