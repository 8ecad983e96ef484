"""The interface of executors, which make runs."""

import json
from abc import abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import Any, Collection, Iterator, Optional, Sequence

from fiesta_allennlp.core.records import Evaluation, Outcome, Request
from fiesta_allennlp.core.registry import Registrable


class Evaluator(Registrable):
    """Runs one request and returns one score.

    A process on any machine makes the runs from the evaluator's registered name and its fields. An evaluator is
    therefore a frozen dataclass of plain data, such as texts, numbers and lists, and it is registered by a module that
    workers import: one of `--include-package`.
    """

    @abstractmethod
    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        """Run the request, and write nothing outside `directory`.

        Raises:
            Exception: if anything goes wrong; the executor turns it into a `Failure`.
        """

    def for_request(self, request: Request) -> "Evaluator":
        """Return the evaluator of this request alone, which executors are given and send to workers."""
        return self

    def salvage(self, request: Request, directory: Path) -> Optional[Evaluation]:
        """Return the outcome of a run that finished in `directory` but was not recorded, if there is one."""
        return None

    def remedy(self, directory: Path) -> str:
        """Return the options, after a space, with which `--recover` may find the metric that the run in `directory` did
        not report."""
        return ""


def option_value(text: str) -> Any:
    """Return the JSON value that the text of an option has, such as a number; or the text itself."""
    with suppress(ValueError):
        return json.loads(text)
    return text


class Executor(Registrable):
    """Runs evaluators somewhere, several in parallel."""

    slots: int = 1
    """Limit on the runs in parallel. It may change while the executor is at work."""

    is_local: bool = False
    """True if all runs are made on this machine."""

    gives_devices: bool = False
    """True if each run sees only the devices that it is assigned, whatever its config says."""

    hides_gpus: bool = False
    """True if no run sees a GPU, whatever its config says."""

    num_threads: int = 1
    """The number of CPU threads of each run."""

    def queued_runs(self) -> Collection[str]:
        """Return the names of submitted runs that wait for a job to begin; none if that is unknown."""
        return ()

    @abstractmethod
    def submit(self, evaluator: Evaluator, request: Request) -> None:
        """Start a run, or queue it if all slots are busy. Does not wait for it.

        Raises:
            FiestaError: if it cannot run anywhere, for example because a cluster refuses it.
        """

    @abstractmethod
    def completed(self, *, timeout: Optional[float] = None) -> Iterator[Outcome]:
        """Yield outcomes in the order in which runs finish, and block until the next one.

        Ends when nothing is running or queued, or when nothing has finished for `timeout` seconds. Never raises for a
        run that failed: its outcome is a `Failure`.

        Raises:
            FiestaError: if nothing can run any more, for example because a cluster is gone.
        """

    @abstractmethod
    def abandon(self, requests: Sequence[Request]) -> None:
        """Stop these runs, running or queued, and free their slots. They yield no outcome.

        Must not be called while another thread waits in `completed`.
        """

    def describe(self) -> str:
        """Describe in words what runs where, to be shown before the first run."""
        return f"{self.slots} at a time"

    @abstractmethod
    def close(self) -> None:
        """Stop everything that is running, with its child processes. Idempotent."""
