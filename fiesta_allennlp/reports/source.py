import difflib
from dataclasses import dataclass, field, replace
from typing import Any, FrozenSet, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.beliefs import Belief
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.records import Decision, History
from fiesta_allennlp.reports.content import TRAININGS, Interval, Words
from fiesta_allennlp.strategies.base import believed


@dataclass(frozen=True)
class Source:
    """Everything that a report is made from.

    # Parameters

    name : the directory or file, as it was given.
    history : scores, with the metrics of every evaluation. Evaluations with equal split seed share a split.
    decision : what is made of them; of a table of scores, what the belief says of all.
    belief : the selection's own; `belief_name` as in its settings.
    asked_confidence : the probability at which the selection stops; None where it spends a budget, and of a table.
    is_selection : whether evaluations were chosen one after the other; else they are a table, in no order.
    adaptive : whether the numbers of scores depend on scores, of one candidate at least.
    running : whether the selection is at work at this moment.
    removed : the candidates that the user took out.
    num_parameters : by candidate, as far as they are known.
    checklist : what is needed to repeat it all, as pairs of key and value.
    data : a digest of the data; equal split seeds mean equal splits of equal data. Empty where it is not known.
    split_names : of a table, what its splits are called, by split seed.
    notes : what else has to be known of these scores.
    words : what candidates and evaluations are called.
    documents : of a selection by documents, the content of `selection.json` as it would be now.
    intervals : of such a one, the 95 % credible intervals of the measure, as far as they are known.
    """

    name: str
    metric: str
    history: History
    decision: Decision
    belief: Belief
    belief_name: str
    asked_confidence: Optional[float] = None
    is_selection: bool = False
    adaptive: bool = False
    running: bool = False
    removed: FrozenSet[str] = frozenset()
    num_parameters: Mapping[str, int] = field(default_factory=dict)
    checklist: Tuple[Tuple[str, str], ...] = ()
    data: str = ""
    split_names: Tuple[str, ...] = ()
    notes: Tuple[str, ...] = ()
    words: Words = TRAININGS
    documents: Optional[Mapping[str, Any]] = None
    intervals: Mapping[str, Interval] = field(default_factory=dict)

    def check_name(self, name: str) -> None:
        """# Raises

        `ConfigError` : where there is no candidate of this name, with the near ones.
        """
        known = self.history.candidates
        if name not in known:
            near = difflib.get_close_matches(name, known, n=2)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise ConfigError(f"{self.name}: there is no candidate '{name}'.{hint} There are: {', '.join(known)}.")

    def restricted(self, names: Sequence[str]) -> "Source":
        """The same with these candidates only, which are there, withdrawn or not; what is believed is of them alone."""
        history = self.history
        kept = History(
            candidates=tuple(names),
            evaluations=tuple(e for e in history.evaluations if e.request.candidate in names),
            failures=tuple(f for f in history.failures if f.request.candidate in names),
        )
        decision = believed(kept, self.belief, margin=self.decision.margin).decision
        return replace(self, history=kept, decision=decision)


def development_name(history: History, metric: str) -> Optional[str]:
    """What the trainings call the development score of their best epoch; None where none of them told one."""
    name = f"best_validation_{metric}"
    return name if any(name in evaluation.metrics for evaluation in history.evaluations) else None
