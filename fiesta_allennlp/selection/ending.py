"""How a selection ended, for `--notify` and `selection.log`."""

from dataclasses import dataclass

from fiesta_allennlp.core.records import INCONCLUSIVE_REASONS, Decision, History

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
