"""The verdict about a finished run: it may miss `--min-score`."""

from dataclasses import dataclass, replace
from typing import Any, Mapping, Optional

from fiesta_allennlp.core.records import Evaluation, Failure, History, Outcome
from fiesta_allennlp.core.settings.metrics import Metric


@dataclass(frozen=True)
class ScoreThreshold:
    """The option `--min-score`, and whether lower scores are better. Without a score, every run works.

    A run with a worse score is a failure of the kind `score`. A store records this verdict beside the score, and judges
    again when a resumed selection sets, changes or drops the option.
    """

    score: Optional[float] = None
    minimise: bool = False

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], score: Optional[float] = None) -> "ScoreThreshold":
        """Return that of the settings in a store, or this one instead."""
        minimise = Metric.parse(settings.get("metric") or "").minimise
        return cls(settings.get("min_score") if score is None else score, minimise)

    def is_missed_by(self, score: float) -> bool:
        return self.score is not None and (score > self.score if self.minimise else score < self.score)

    def to_outcome(self, run: Evaluation) -> Outcome:
        """Return the run, or the failure that it is."""
        if not self.is_missed_by(run.score):
            return run
        side = "above" if self.minimise else "below"
        error = f"{run.metric} {run.score:g} is {side} --min-score {self.score:g}"
        return Failure(run.request, "score", error, run.seconds, run.started_at, origin=run.origin)

    def apply_to(self, history: History) -> History:
        """Return the history with the runs that missed the score as failures."""
        outcomes = [self.to_outcome(run) for run in history.evaluations]
        failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
        if not failures:
            return history
        evaluations = tuple(outcome for outcome in outcomes if isinstance(outcome, Evaluation))
        return replace(history, evaluations=evaluations, failures=(*history.failures, *failures))


NO_THRESHOLD = ScoreThreshold()
