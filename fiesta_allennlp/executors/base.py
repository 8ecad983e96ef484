"""What runs evaluations, and what is run: an executor and an evaluator."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Iterator, List, Mapping, Optional, Sequence

from allennlp.common import Registrable

from fiesta_allennlp.records import Evaluation, Outcome, Request


class Evaluator(ABC):
    """Answers one request with one score. It is sent to worker processes, so it must be picklable and hold no state."""

    @abstractmethod
    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        """Make the evaluation, writing nothing outside `directory`.

        Raises:
            Exception: Whatever goes wrong; the executor turns it into a `Failure`.
        """

    def salvage(self, request: Request, directory: Path) -> Optional[Evaluation]:
        """The outcome of an evaluation that finished in `directory` but was not recorded, if there is one."""
        return None

    def files(self, request: Request) -> List[str]:
        """The data files that the evaluation reads: what has to be sent to a machine that lacks them."""
        return []

    def made_files(self, request: Request) -> List[str]:
        """Those that were made for this selection, which no other machine can have."""
        return []

    def reading(self, places: Mapping[str, str]) -> "Evaluator":
        """The same evaluator, on a machine that has these files at other places. What it leaves behind names the
        original ones."""
        return self


class Executor(Registrable):
    """Runs evaluations somewhere, several at once."""

    slots: int = 1
    """How many evaluations run at once. It may change while the executor is at work."""

    gives_devices: bool = False
    """Each evaluation sees the devices that it is given and no others, whatever its config says."""

    hides_gpus: bool = False
    """No evaluation sees a GPU, whatever its config says."""

    last_words: str = ""
    """What the user should hear of closing it."""

    def submit(self, evaluator: Evaluator, request: Request) -> None:
        """Start an evaluation, or queue it where all slots are busy. Does not wait for it.

        Raises:
            FiestaError: where it could not run anywhere, as when a machine lacks its data.
        """
        raise NotImplementedError

    def completed(self, *, timeout: Optional[float] = None) -> Iterator[Outcome]:
        """Outcomes in order of finishing; blocks for the next one; ends when nothing is running or queued, or when
        nothing has finished for `timeout` seconds.

        Never raises for an evaluation that failed: that is a `Failure`.

        Raises:
            FiestaError: where nothing can run any more, as when a cluster is gone.
        """
        raise NotImplementedError

    def abandon(self, requests: Sequence[Request]) -> None:
        """Stop these evaluations, running or queued, and free their slots. No outcome comes of them.

        Must not be called while another thread waits in `completed`.
        """
        raise NotImplementedError

    def describe(self) -> str:
        """What runs where, in words, to be shown before the first training."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop whatever is running, with its child processes. Idempotent."""
        raise NotImplementedError
