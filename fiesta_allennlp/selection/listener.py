"""The observers of a selection."""

from typing import Sequence

from fiesta_allennlp.core.records import History, Outcome, Request
from fiesta_allennlp.strategies.decision import Decision


class Listener:
    """An observer of a selection, such as a progress display. A subclass leaves out what it does not observe."""

    def on_state(self, history: History, decision: Decision) -> None:
        """Called after every change of what is finished or pending."""

    def on_outcome(self, outcome: Outcome) -> None:
        """Called for every finished run and failure once it is recorded."""

    def on_waiting(self, requests: Sequence[Request]) -> None:
        """Called with the pending requests that wait for their next try, after every change of them."""
