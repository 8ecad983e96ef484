"""The interface of executors, which make runs."""

from abc import abstractmethod
from typing import Collection, Iterator, Optional, Sequence

from fiesta_allennlp.core.blame import NO_FACTS, MachineFacts
from fiesta_allennlp.core.records import Outcome, Request
from fiesta_allennlp.core.registry import Registrable
from fiesta_allennlp.isolation.evaluator import Evaluator


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

    can_choose_machines: bool = False
    """True if it keeps each run away from the machines in `machines` that the run has failed on."""

    machines: MachineFacts = NO_FACTS
    """Facts about the machines, from the last call of `use_machines`."""

    last_words: str = ""
    """A sentence for the user about what became of the runs when the executor was closed."""

    @property
    def queue_name(self) -> str:
        """The name of the queue in the run directory that `resume` takes over; empty if there is none."""
        return ""

    def resume(self) -> str:
        """Take over what an earlier session left running. Return a sentence for the user."""
        return ""

    def queued_runs(self) -> Collection[str]:
        """Return the names of submitted runs that no job or worker has taken yet; none if that is unknown."""
        return ()

    @abstractmethod
    def submit(self, evaluator: Evaluator, request: Request) -> None:
        """Start a run, or queue it if all slots are busy. Does not wait for it.

        Raises:
            FiestaError: if it cannot run anywhere, for example because a machine lacks its data.
        """

    def use_machines(self, machines: MachineFacts) -> None:
        """Take in how runs have fared on machines. Called before runs are submitted, after every change.

        Raises:
            FiestaError: if no machine is left.
        """
        self.machines = machines

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
