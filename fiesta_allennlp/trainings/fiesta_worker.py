"""`fiesta worker`: makes runs of a selection on any machine that shares its directory."""

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Callable, ClassVar, Optional, Tuple

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, FiestaError, full_command
from fiesta_allennlp.core.files import check_private, read_json
from fiesta_allennlp.selection.options import check_options, option

if TYPE_CHECKING:
    from fiesta_allennlp.isolation.run_queue import RunQueue, Terms

WORKER_GROUP = "Worker"


@dataclass(frozen=True)
class QueueWorkerSettings:
    """The settings of `fiesta worker`. Names and defaults are those of the command's options."""

    GROUPS: ClassVar[Tuple[str, ...]] = (WORKER_GROUP,)

    directory: Path = option(Path(), "the directory of a selection with --executor workers", metavar="DIR", parse=Path)
    cuda_device: Optional[str] = option(
        None, "the GPUs of the runs, such as 0 or 0,1, within CUDA_VISIBLE_DEVICES (default: all)", group=WORKER_GROUP
    )
    max_hours: Optional[float] = option(None, "start no new run after this many hours", group=WORKER_GROUP, above=0)
    idle: float = option(
        30.0, "exit after this many minutes without a run (default 30)", group=WORKER_GROUP, metavar="MINUTES", above=0
    )

    def __post_init__(self) -> None:
        check_options(self)


def run_worker(settings: QueueWorkerSettings, report: Callable[[str], None]) -> None:
    """Make runs until the selection ends, or for as long as the settings say.

    Raises:
        ConfigError: if a selection that has not ended waits for no workers there, or this worker cannot make its runs.
        FiestaError: if the file system fails, or another user could have written a file of the queue.
    """
    from fiesta_allennlp.trainings.preparation import resolve_devices

    if settings.cuda_device is not None:
        devices = resolve_devices(settings.cuda_device.split(","), "--cuda-device")
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(devices)
    try:
        _run_worker(settings, settings.directory.absolute(), report)
    except OSError as error:
        raise FiestaError(f"{settings.directory}: {error}. Another worker takes its run.") from error


def _run_worker(settings: QueueWorkerSettings, root: Path, report: Callable[[str], None]) -> None:
    from fiesta_allennlp.isolation.queue_worker import heartbeat, make_queued_runs
    from fiesta_allennlp.isolation.run_queue import Worker

    name, idle = Worker.current(settings.cuda_device or "").name, 60 * settings.idle
    deadline = float("inf") if settings.max_hours is None else time.monotonic() + 3600 * settings.max_hours
    queue = find_queue(root)
    if queue is None:
        report(f"The selection in {root} has ended and has no runs to make.")
        return
    terms = _check_terms(queue)
    report(f"Working for {root} as {name}.")
    with heartbeat(queue, name, terms.jobs["seconds_between_signs"]):
        num_runs = make_queued_runs(queue, terms, name, seconds_idle=idle, deadline=deadline, report=report)
    if not root.exists():
        raise FiestaError(f"{root} was moved or deleted. The worker has ended, and another one takes its run.")
    report(f"{num_runs} run(s) made; {'this worker' if queue.is_open else 'the selection'} has ended.")


def find_queue(root: Path) -> "Optional[RunQueue]":
    """Return the queue of the selection in a directory; None if the selection has ended. Raise a `ConfigError` if it
    has no queue for another reason, or this user cannot work for it."""
    from fiesta_allennlp.isolation.run_queue import RunQueue  # which --help does without

    directory = RunDirectory(root)
    if not directory.store.exists():
        raise ConfigError(f"{root} contains no selection. Start one with {full_command('select')} --executor workers.")
    for queue_directory in (workplace.queue for workplace in directory.workplaces):
        if queue_directory.exists():
            check_private(queue_directory, root)
        if queues := RunQueue.open_queues(queue_directory):
            return queues[0]
    if _has_ended(directory):
        return None
    raise ConfigError(
        f"no selection in {root} waits for workers. Continue it with: {full_command('select')} -s {root} --recover "
        "--executor workers"
    )


def _has_ended(directory: RunDirectory) -> bool:
    """Return whether the selection has come to its end, decided or not."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        return read_json(directory.selection_json)["stopped_by"] not in (None, "interrupted")
    return False


def _check_terms(queue: "RunQueue") -> "Terms":
    """Return the terms of the queue, and go to the directory of its command. Raise a `ConfigError` if this worker
    cannot make its runs as the command would."""
    terms = queue.terms
    path = queue.root.parent
    if not (os.path.exists(terms.place) and os.path.samefile(terms.place, path)):
        raise ConfigError(
            f"the selection's own machine has {terms.place}, but this machine has it at {path}. Use the same path on "
            "all machines. If you moved it, continue it first with --recover."
        )
    try:
        os.chdir(terms.current_directory)
    except OSError as error:
        place = terms.current_directory
        raise ConfigError(f"{place}, where the selection began, is unavailable here: {error.strerror}.") from error
    return terms
