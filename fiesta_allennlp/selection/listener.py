"""The observers of a selection, and how it ended, for `--notify` and `selection.log`."""

from dataclasses import dataclass
from typing import Sequence

from fiesta_allennlp.core.origin import Machine
from fiesta_allennlp.core.records import History, Outcome, Request
from fiesta_allennlp.strategies.decision import INCONCLUSIVE_REASONS, Decision

EVENT_BY_REASON = {
    **dict.fromkeys(INCONCLUSIVE_REASONS, "inconclusive"),
    "interrupted": "interrupted",
    "failures": "no_comparison",
}
"""The event at the end of a selection without a decision, by what ended it."""


@dataclass(frozen=True)
class Ending:
    """The event at the end of a selection, and a message about it."""

    event: str
    message: str

    @classmethod
    def from_decision(cls, history: History, decision: Decision) -> "Ending":
        text = f"{decision.best or 'no candidate'} after {len(history.evaluations)} runs"
        event = EVENT_BY_REASON.get(str(decision.stopped_by), "decision")
        return cls(event, f"{text}, stopped by {decision.stopped_by}")


class Listener:
    """An observer of a selection, such as a progress display. A subclass leaves out what it does not observe."""

    def on_state(self, history: History, decision: Decision) -> None:
        """Called after every change of what is finished or pending."""

    def on_outcome(self, outcome: Outcome) -> None:
        """Called for every finished run and failure once it is recorded."""

    def on_broken_machine(self, machine: Machine, error: str) -> None:
        """Called once for each machine that takes no more runs, with the last error there."""

    def on_start(self, request: Request) -> None:
        """Called before each run starts."""

    def on_end(self, history: History, decision: Decision) -> None:
        """Called once the results of the final decision are written."""

    def on_waiting(self, requests: Sequence[Request]) -> None:
        """Called with the pending requests that wait for their next try, after every change of them."""
