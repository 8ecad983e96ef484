"""What a report is made from."""

from dataclasses import dataclass, field, replace
from typing import Any, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.beliefs import Belief
from fiesta_allennlp.errors import ConfigError, did_you_mean
from fiesta_allennlp.records import Decision, History
from fiesta_allennlp.reports.content import Origin
from fiesta_allennlp.reports.formats import Interval
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.summary import summarise
from fiesta_allennlp.strategies.base import believed
from fiesta_allennlp.strategies.minimising import MinimisingBelief


@dataclass(frozen=True)
class Source(Origin):
    """Everything that a report is made from.

    Attributes:
        name: the directory or file, as it was given.
        metric: as `--metric` notes it, `-NAME` where the lowest mean is the best. Scores have their natural sign.
        history: scores, with the metrics of every evaluation. Evaluations with equal split seed share a split.
        decision: what is made of them; of a table of scores, what the belief says of all.
        belief: the selection's own, for a highest mean, as `belief_name` in its settings; see `directed_belief`.
        is_selection: whether evaluations were chosen one after the other; else they are a table, in no order.
        num_parameters: by candidate, as far as they are known.
        data: a digest of the data; equal split seeds mean equal splits of equal data. Empty where it is not known.
        split_names: of a table, what its splits are called, by split seed.
        table_notes: of a table, sentences about what its splits and seeds mean.
        documents: of a selection by documents, the content of `selection.json` as it would be now.
        intervals: of such a one, the 95 % credible intervals of the measure, as far as they are known.
    """

    name: str
    metric: str
    history: History
    decision: Decision
    belief: Belief
    belief_name: str
    is_selection: bool = False
    num_parameters: Mapping[str, Optional[int]] = field(default_factory=dict)
    data: str = ""
    split_names: Tuple[str, ...] = ()
    table_notes: Tuple[str, ...] = ()
    documents: Optional[Mapping[str, Any]] = None
    intervals: Mapping[str, Interval] = field(default_factory=dict)

    @property
    def scored_by(self) -> Metric:
        """The metric, with its direction."""
        return Metric.of(self.metric)

    @property
    def directed_belief(self) -> Belief:
        """The belief, whose P(best) is that of the lowest mean where the metric is minimised."""
        return MinimisingBelief(self.belief) if self.scored_by.minimise else self.belief

    @property
    def development(self) -> Optional[str]:
        """What the runs call the development score of their best epoch; None where none of them told one, or it is the
        score itself."""
        if self.scored == "validation":
            return None
        name = f"best_validation_{self.scored_by.name}"
        return name if any(name in evaluation.metrics for evaluation in self.history.evaluations) else None

    def summary(self) -> Mapping[str, Any]:
        """The content of `selection.json` as it would be now; of its settings, those that tell what scores are of."""
        about = {"metric": self.metric, "splits": self.splits, "score": self.scored}
        return self.documents or summarise(self.history, self.decision, about)

    def check_name(self, name: str) -> None:
        """Refuse the name of an unknown candidate.

        Raises:
            ConfigError: where there is no candidate of this name, with the near ones.
        """
        known = self.history.candidates
        if name not in known:
            hint = did_you_mean(name, known, most=2)
            raise ConfigError(f"{self.name}: there is no candidate '{name}'.{hint} Candidates: {', '.join(known)}.")

    def restricted(self, names: Sequence[str]) -> "Source":
        """The same with these candidates only, which are there, withdrawn or not; what is believed is of them alone."""
        kept = only(self.history, names)
        decision = believed(kept, self.directed_belief, margin=self.decision.margin).decision
        return replace(self, history=kept, decision=decision)


def only(history: History, names: Sequence[str]) -> History:
    """The history of these candidates, none of them withdrawn, without what is pending."""
    return History(
        candidates=tuple(names),
        evaluations=tuple(e for e in history.evaluations if e.request.candidate in names),
        failures=tuple(f for f in history.failures if f.request.candidate in names),
    )
