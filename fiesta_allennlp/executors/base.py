"""The interfaces of executors, which make runs, and of evaluators, which define them."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Iterator, List, Mapping, Optional, Sequence

from fiesta_allennlp.core.records import Evaluation, Outcome, Request
from fiesta_allennlp.core.registry import Registrable


class Evaluator(ABC):
    """Runs one request and returns one score.

    The executor sends the evaluator to worker processes, so it must be picklable and hold no state.
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

    def files(self, request: Request) -> List[str]:
        """Return the data files that the run reads. An executor sends them to a machine that lacks them."""
        return []

    def made_files(self, request: Request) -> List[str]:
        """Return the data files that were made for this selection, which no other machine can have."""
        return []

    def reading(self, local_paths: Mapping[str, str]) -> "Evaluator":
        """Return the same evaluator for a machine that has these files in other places.

        The files that it writes name the original places.
        """
        return self


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

    last_words: str = ""
    """A sentence for the user about what became of the runs when the executor was closed."""

    @property
    def queue_name(self) -> str:
        """The name of the queue in the run directory that `resume` takes over; empty if there is none."""
        return ""

    def resume(self) -> str:
        """Take over what an earlier session left running. Return a sentence for the user."""
        return ""

    @abstractmethod
    def submit(self, evaluator: Evaluator, request: Request) -> None:
        """Start a run, or queue it if all slots are busy. Does not wait for it.

        Raises:
            FiestaError: if it cannot run anywhere, for example because a machine lacks its data.
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
