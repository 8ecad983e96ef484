from typing import Iterator, Sequence

from allennlp.common import Registrable

from fiesta_allennlp.evaluators.base import Evaluator
from fiesta_allennlp.records import Outcome, Request


class Executor(Registrable):
    """Runs evaluations somewhere, several at once."""

    slots: int = 1
    """How many evaluations run at once."""

    def submit(self, evaluator: Evaluator, request: Request) -> None:
        """Start an evaluation, or queue it where all slots are busy. Returns at once."""
        raise NotImplementedError

    def completed(self) -> Iterator[Outcome]:
        """Outcomes in order of finishing; blocks for the next one; ends when nothing is running or queued.

        Never raises for an evaluation that failed: that is a `Failure`.
        """
        raise NotImplementedError

    def abandon(self, requests: Sequence[Request]) -> None:
        """Stop these evaluations, running or queued, and free their slots. No outcome comes of them.

        Must not be called while another thread waits in `completed`.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Stop whatever is running, with its child processes. Idempotent."""
        raise NotImplementedError
