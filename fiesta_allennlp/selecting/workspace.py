"""The run directory of a selection: how it is cleared, opened, closed and logged to, and its `evaluations.csv`."""

import csv
import json
import logging
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Collection, Dict, Iterator, List, Mapping, Optional, Sequence

from fiesta_allennlp.choosing.strategy import Decision
from fiesta_allennlp.core.directory import DirectoryLock, RunDirectory
from fiesta_allennlp.core.errors import FiestaError, StoreError, describe
from fiesta_allennlp.core.files import atomic_replacement, delete, to_csv_cell
from fiesta_allennlp.core.records import History, Outcome
from fiesta_allennlp.selecting.loop import Listener
from fiesta_allennlp.selecting.store import RunStore, check_store_not_lost, open_for_reading

logger = logging.getLogger(__name__)


def check_place(directory: RunDirectory, *, force: bool) -> bool:
    """Return whether a new selection replaces one that is in the directory. Refuse that unless `force`, and a directory
    with other files."""
    if not has_selection(directory):
        check_no_foreign_files(directory, force=force)
        return False
    if force:
        return True
    if not directory.store.exists():
        check_store_not_lost(directory)
    raise StoreError(f"{directory.root} already contains a selection. Use --recover, --force, or another directory.")


def has_selection(directory: RunDirectory) -> bool:
    """Return whether the directory has a selection that passed its checks, its runs, or a broken store. Refuse a
    directory where a selection is running."""
    if not directory.store.exists() and not directory.finished_runs:
        return False
    DirectoryLock(directory).release()
    with suppress(StoreError), open_for_reading(directory) as store:
        return bool(directory.finished_runs) or store.meta().is_started
    return True


def check_no_foreign_files(directory: RunDirectory, *, force: bool) -> None:
    """Refuse to begin a selection among other files, which nobody could tell apart from its own, unless `force`; and,
    in any case, beside results of a selection, or where none has begun beside files with names of its own."""
    results = (directory.selection_json, directory.evaluations_csv)
    for path in directory.contents():
        if path in results or not directory.lock.exists():
            raise StoreError(f"{path} would be overwritten. Move it, or choose another directory with -s.")
    if force:
        return
    own_names = {directory.lock.name, *(path.name for path in directory.contents())}
    names = sorted(path.name for path in directory.root.iterdir()) if directory.root.is_dir() else []
    foreign = [name for name in names if name not in own_names and not name.startswith((".", directory.answers.name))]
    if foreign:
        raise StoreError(
            f"{directory.root} contains other files, such as {', '.join(foreign[:3])}. Choose an empty directory, such "
            f"as {directory.root / 'selection'}, or add --force, which does not touch those files."
        )


def clear_directory(directory: RunDirectory, *, staging: Optional[RunDirectory] = None) -> None:
    """Make room for a new selection: delete only what a selection made. Then move what the checks of the new one made
    in the place `staging` here."""
    if not directory.store.exists() and not directory.finished_runs:
        return
    from fiesta_allennlp.running.slurm import end_left_jobs  # which a new directory needs not

    lock = DirectoryLock(directory)
    try:
        for workplace in (directory, *map(directory.confirmation, directory.confirmation_numbers)):
            end_left_jobs(workplace)
        for path in directory.contents():
            if staging is None or path != staging.root:
                delete(path)
                if os.path.lexists(path):
                    raise StoreError(f"{path} cannot be deleted. Choose another directory with -s.")
        for path in staging.preparation_paths if staging is not None else ():
            if path.exists():
                path.rename(directory.root / path.name)
    finally:
        lock.release()


@contextmanager
def open_store(directory: RunDirectory, *, create: bool) -> Iterator[RunStore]:
    """Yield the store of the directory, closed at the end, and keep a log. An error that ends the block is written into
    both, where there is room. Delete the store again if its selection did not begin."""
    store = RunStore(directory, create=create)
    delete(directory.staging.root)  # of a session that was killed
    try:
        with log_to_file(directory.log):
            try:
                yield store
            except Exception as error:
                logger.error("ended by an error: %s", describe(error))
                with suppress(FiestaError, OSError):
                    store.record_error(describe(error))
                raise
    finally:
        store.close(keep=store.meta().is_started)


class _LogFileHandler(logging.FileHandler):
    def handleError(self, record: logging.LogRecord) -> None:
        """Do nothing: a log that cannot be written, as on a full disk, is no reason to write on the terminal."""


@contextmanager
def log_to_file(path: Path) -> Iterator[None]:
    """Send this package's log to a file, and not to the terminal, which shows the progress."""
    package = logging.getLogger("fiesta_allennlp")
    handler = _LogFileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    level, propagate = package.level, package.propagate
    package.setLevel(logging.INFO)
    package.propagate = False
    package.addHandler(handler)
    try:
        yield
    finally:
        package.removeHandler(handler)
        package.setLevel(level)
        package.propagate = propagate
        handler.close()


SEED_COLUMNS = ("split_seed", "random_seed", "numpy_seed", "pytorch_seed")
CSV_COLUMNS = (
    *("candidate", "replicate", "status", "score", "metric", "seconds", *SEED_COLUMNS, "started_at"),
    *("file", "host", "gpu", "gpu_names", "job", "python", "versions", "error"),
)


def write_csv(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write `evaluations.csv` from the rows of a store, one line for every outcome, in order of finishing."""
    metrics: List[Dict[str, Any]] = [json.loads(row.get("metrics") or "{}") for row in rows]
    names = sorted({name for run_metrics in metrics for name in run_metrics})
    with atomic_replacement(path) as file, file.open("w", encoding="utf-8", newline="") as csv_file:
        writer = csv.writer(csv_file, lineterminator="\n")
        writer.writerow([*CSV_COLUMNS, *(to_csv_cell(f"metric:{name}") for name in names)])
        for row, run_metrics in zip(rows, metrics, strict=True):
            origin = json.loads(row.get("origin") or "{}")
            versions = ", ".join(f"{package} {version}" for package, version in origin.get("versions", {}).items())
            values = {**row, **origin, "versions": versions}
            if origin.get("file"):  # whose seeds are unknown
                values.update(dict.fromkeys(SEED_COLUMNS[1:]))
            writer.writerow(
                [to_csv_cell(value) for value in (*map(values.get, CSV_COLUMNS), *map(run_metrics.get, names))]
            )


@dataclass(frozen=True)
class BestModelKeeper(Listener):
    """Deletes the model of every run that is not the best of its candidate: the archive of an AllenNLP run, or the
    directory `model` of a program. `sign` is -1 if the lowest score is the best."""

    directory: RunDirectory
    sign: int = 1

    def on_state(self, history: History, decision: Decision) -> None:
        self.keep_only(history.candidates, history)

    def keep_only(self, candidates: Collection[Optional[str]], history: History) -> None:
        """Delete all models except the best one of each of these candidates."""
        for name in history.candidates:
            runs = [run for run in history.evaluations_of(name) if any(path.exists() for path in self._models(run))]
            best = max(runs, key=lambda run: self.sign * run.score, default=None) if name in candidates else None
            missed = (f for f in history.failures if f.kind == "score" and f.request.candidate == name)
            outcomes: List[Outcome] = [*runs, *missed]
            for path in [path for run in outcomes if run is not best for path in self._models(run)]:
                delete(path)

    def _models(self, run: Outcome) -> List[Path]:
        return [self.directory.archive(run.request.name), self.directory.model(run.request.name)]
