"""What becomes of runs that were killed or failed: which of them had finished, whether a failure ends the selection,
when a run starts again, and which finished runs count as failed by `--min-score`."""

import logging
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

from fiesta_allennlp.core.errors import DataError, StoreError
from fiesta_allennlp.core.metrics import Metric
from fiesta_allennlp.core.records import Evaluation, Failure, History, Outcome, Request
from fiesta_allennlp.running.executor import Evaluator

logger = logging.getLogger(__name__)

RETRY_PAUSES = (10.0, 60.0, 300.0, 1800.0)
"""Seconds before the second try, the third and so on; the last one again and again."""

MAX_PAUSES_AT_START = 2
"""The number of pauses while no run has ever finished: a mistake is more probable then than a lack that passes."""


def find_finished_run(evaluator: Evaluator, request: Request, directory: Path) -> Optional[Evaluation]:
    """Return the result of a run in `directory` whose command or process was killed after it had finished; None if it
    had not."""
    evaluation = evaluator.salvage(request, directory)
    if evaluation is not None:
        logger.info("%s had finished before it was killed; recording its score", request.name)
    return evaluation


def raise_if_fatal(failure: Failure, root: Path) -> None:
    """Raise an error if a failure ends the selection. A full disk fails all runs, and runs on other data cannot be
    pooled."""
    if failure.kind == "data":
        raise DataError(f"{failure.error}. Restore the data of {root}, then continue with --recover, or start over.")
    if failure.kind == "disk":
        reason = f"the disk is full: {failure.request.name} ended with {failure.error}"
        raise StoreError(f"{reason}. No run in {root} is lost. Free some space, then continue with --recover.")


def should_retry_run(failure: Failure, history: History, *, max_failures: int) -> bool:
    """Return whether a run is started again: if its process died, but not `max_failures` times, earlier sessions
    included; and if the machine lacked something. A run that raised would raise again with the same seeds."""
    if failure.kind == "killed":
        return 1 + sum((f.request, f.kind) == (failure.request, "killed") for f in history.failures) < max_failures
    return failure.kind == "machine"


class Retries:
    """The requests that are to be tried again, each after a pause that grows from try to try.

    They are kept in memory only: a resumed selection tries all of them at once, as often as a new one.
    """

    def __init__(self, pauses: Sequence[float]) -> None:
        self._pauses = pauses
        self.due_times: Dict[Request, float] = {}
        self._num_tries: Counter[Request] = Counter()
        self.num_failures_since_finish: Counter[Request] = Counter()  # the failures of each run since any last finished
        self._num_finished = 0
        # How many had finished when these began, and failed, for the first time.
        self._num_finished_at_start: Dict[Request, int] = {}
        self._num_finished_at_failure: Dict[Request, int] = {}

    def schedule(self, request: Request) -> None:
        pause = self._pauses[min(self._num_tries[request], len(self._pauses) - 1)]
        self._num_tries[request] += 1
        self._num_finished_at_failure.setdefault(request, self._num_finished)
        self.num_failures_since_finish[request] += 1
        self.due_times[request] = time.monotonic() + pause

    def is_hopeless(self, request: Request, *, at_start: bool) -> bool:
        """Return whether a run has failed after every pause, and twice since a run last finished; `at_start` no run
        ever has."""
        max_pauses = min(MAX_PAUSES_AT_START, len(self._pauses)) if at_start else len(self._pauses)
        return self._num_tries[request] > max_pauses and self.num_failures_since_finish[request] > 1

    def mark_unfit(self, failure: Failure, history: History, *, max_failures: int) -> Failure:
        """Turn a lack of the machine that hits one candidate or one run alone into its failure, while others finish.

        - For a candidate that has never finished a run, such as one that is too large for the card: after
          `max_failures` tries, if others have finished since it first failed. If they have only finished since it
          began, because the strategy now waits for this candidate alone: after a try for every pause, and its further
          runs at once.
        - For one run of a candidate that can finish others, such as one with a long batch: after a try for every pause,
          if others have finished since it first failed.
        """
        if failure.kind != "machine":
            return failure
        request = failure.request
        num_tries, max_tries = self._num_tries[request] + 1, max(max_failures, len(self._pauses) + 1)
        if history.own.num_finished(request.candidate):
            is_unfit = num_tries >= max_tries and self._has_finished_since(self._num_finished_at_failure, [request])
        else:
            own = [started for started in self._num_finished_at_start if started.candidate == request.candidate]
            is_known = any((f.request.candidate, f.kind) == (request.candidate, "unfit") for f in history.failures)
            since_failure = self._has_finished_since(self._num_finished_at_failure, own)
            since_start = self._has_finished_since(self._num_finished_at_start, own)
            is_unfit = (num_tries >= max(max_failures, 2) and since_failure) or (
                (is_known or num_tries >= max_tries) and since_start
            )
        return replace(failure, kind="unfit") if is_unfit else failure

    def _has_finished_since(self, finished_counts: Mapping[Request, int], requests: Sequence[Request]) -> bool:
        """Return whether a run has finished since one of these first began, or failed."""
        return any(self._num_finished > finished_counts.get(request, self._num_finished) for request in requests)

    def take_due(self, max_requests: int) -> List[Request]:
        """Return the requests whose pause is over, and forget their pause."""
        now = time.monotonic()
        due_requests = [request for request, due_time in self.due_times.items() if due_time <= now]
        due_requests = due_requests[: max(0, max_requests)]
        for request in due_requests:
            del self.due_times[request]
        return due_requests

    def drop(self, requests: Sequence[Request]) -> None:
        for request in requests:
            self.due_times.pop(request, None)
            self.num_failures_since_finish.pop(request, None)

    def record_start(self, request: Request) -> None:
        self._num_finished_at_start.setdefault(request, self._num_finished)

    def record_finish(self) -> None:
        """Record that a run has finished, so the machine does work."""
        self.num_failures_since_finish.clear()
        self._num_finished += 1

    def seconds_to_next(self, timeout: float) -> float:
        return max(0.0, min([timeout, *(due - time.monotonic() for due in self.due_times.values())]))


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
        evaluations = tuple(outcome for outcome in outcomes if isinstance(outcome, Evaluation))
        return replace(history, evaluations=evaluations, failures=(*history.failures, *failures))


NO_THRESHOLD = ScoreThreshold()
