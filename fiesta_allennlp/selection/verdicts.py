"""The verdicts about finished runs: a run may miss `--min-score`, or show that the seed has no effect."""

from dataclasses import dataclass, replace
from typing import Any, Mapping, Optional, Sequence

from fiesta_allennlp.core.records import Evaluation, Failure, History, Outcome
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.objections import UNSEEDED


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


NUM_EQUAL_RUNS, NUM_EQUAL_SCORES = 3, 5
"""The number of first runs that must be equal: of runs with several metrics, and of runs with the score alone, which
ties by chance on a small test set: three runs of ExtraTrees tie in 1.5% of cases on 899 images."""

STATUS_BY_KIND = {"score": "missed", "seed": "failed"}
"""The status in the store of a run that a verdict made a failure, by the kind of failure."""


@dataclass(frozen=True)
class Verdicts:
    """The rules by which a store turns finished runs into failures. Without `checks_seeds`, equal runs are accepted."""

    score_threshold: ScoreThreshold = NO_THRESHOLD
    checks_seeds: bool = False

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "Verdicts":
        """Return the verdicts by the settings in a store."""
        return cls(ScoreThreshold.from_settings(settings), checks_seeds=UNSEEDED.name not in settings.get("allow", ()))

    def to_outcome(self, run: Evaluation, earlier_runs: Sequence[Evaluation]) -> Outcome:
        """Return the run, or the failure that it is. `earlier_runs` are the finished runs of its candidate."""
        equal_failure = self._equal_failure(run, earlier_runs) if self.checks_seeds else None
        return equal_failure or self.score_threshold.to_outcome(run)

    def _equal_failure(self, run: Evaluation, earlier_runs: Sequence[Evaluation]) -> Optional[Failure]:
        """Return a failure if the first runs of a candidate report equal metrics, whatever their splits."""
        first_runs = [*(earlier for earlier in earlier_runs if not earlier.request.is_brought), run]
        is_complete = len(first_runs) == (NUM_EQUAL_RUNS if len(run.metrics) > 1 else NUM_EQUAL_SCORES)
        if not is_complete or any((r.score, r.metrics) != (run.score, run.metrics) for r in first_runs):
            return None
        reason = f"the seed has no effect: {', '.join(r.request.name for r in first_runs)} report equal metrics"
        error = f"{reason} ({run.metric} {run.score:g}). Use the seed in the program, or add --allow unseeded"
        return Failure(run.request, "seed", error, run.seconds, run.started_at, origin=run.origin)
