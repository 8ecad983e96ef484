"""The loop: ask the strategy, record the requests, let the workers work, record the outcomes."""

import logging
import math
import os
import platform
import shlex
import shutil
import time
from dataclasses import dataclass, field, replace
from typing import Callable, ContextManager, List, Mapping, Optional, Sequence, Set

from fiesta_allennlp.choosing.strategy import Decision, Strategy
from fiesta_allennlp.core import metrics, seeding
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import FiestaError, full_command, join_some, received_signals
from fiesta_allennlp.core.records import Evaluation, Failure, History, MachineHistory, Outcome, Request
from fiesta_allennlp.running.executor import Evaluator, Executor
from fiesta_allennlp.selecting import objections, recovery
from fiesta_allennlp.selecting.store import RunStore

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_SAVES = 60.0

SECONDS_BETWEEN_CHECKS = 1.0
"""Between two checks that no signal came and that the directory still belongs to the selection: its runs write there
too."""


class Listener:
    """An observer of a selection, such as a progress display. A subclass leaves out what it does not observe."""

    def on_state(self, history: History, decision: Decision) -> None:
        """Called after every change of what is finished or pending."""

    def on_outcome(self, outcome: Outcome) -> None:
        """Called for every finished run and failure once it is recorded."""


Display = Callable[..., ContextManager[Listener]]
"""Opens the display of a running selection, such as the live table, from its arguments."""


class BroughtUnits(Listener):
    """Ends a selection if the first new run of a candidate has another unit than the runs that were made before."""

    def on_state(self, history: History, decision: Decision) -> None:
        brought = [run.score for run in history.evaluations if run.request.is_brought]
        for name in history.candidates if brought else ():
            own = [run for run in history.evaluations_of(name) if not run.request.is_brought]
            if len(own) == 1 and metrics.have_two_units([*brought, own[0].score]):
                raise FiestaError(
                    f"{own[0].request.name}: the score is {own[0].score:g}, but those of --scores are from "
                    f"{min(brought):g} to {max(brought):g}: percents among fractions? No run is lost. Correct the "
                    f"table and start again, or continue with --recover --allow {objections.UNITS.name}."
                )


class WorkingTime:
    """The time that a selection has worked in all its sessions, and its limit.

    It is written into the store every minute, so a killed session loses a minute at most. Changes of the machine's
    clock do not affect it.
    """

    def __init__(self, store: RunStore, max_hours: Optional[float]) -> None:
        self._store = store
        self._max_seconds = math.inf if max_hours is None else 3600.0 * max_hours
        self._earlier_seconds = store.meta().working_seconds
        self._start = self._last_save = time.monotonic()

    @property
    def seconds(self) -> float:
        return self._earlier_seconds + time.monotonic() - self._start

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._max_seconds - self.seconds)

    def save(self, *, force: bool = False) -> None:
        """Write the time down, unless that was done less than a minute ago."""
        if force or time.monotonic() - self._last_save >= SECONDS_BETWEEN_SAVES:
            self._store.set_meta(working_seconds=self.seconds)
            self._last_save = time.monotonic()


@dataclass(frozen=True, kw_only=True)
class SelectionLoop:
    """A selection with everything that its loop needs. If the store has a history, the loop continues from there.

    `evaluators` make the runs, by candidate. `max_failures` is the number of failures after which a candidate is
    withdrawn (`History.num_counted_failures`). `max_hours` limits the loops of all sessions together.
    """

    strategy: Strategy
    evaluators: Mapping[str, Evaluator]
    executor: Executor
    listeners: Sequence[Listener]
    store: RunStore
    directory: RunDirectory
    seed: int
    max_failures: int
    shared_splits: bool = True
    max_hours: Optional[float] = None
    retries: recovery.Retries = field(default_factory=lambda: recovery.Retries(recovery.RETRY_PAUSES))
    active_requests: Set[Request] = field(default_factory=set, init=False)

    def run(self) -> Decision:
        """Continue until the strategy is done, and return the decision, with `stopped_by` set.

        After Ctrl-C (`interrupted`) or `max_hours`, unfinished runs stay pending in the store. They start again with
        the same seeds when the selection is resumed.
        """
        working_time = WorkingTime(self.store, self.max_hours)
        logger.info("at work as process %d on %s", os.getpid(), platform.node())
        try:
            decision = self._loop(working_time)
        except KeyboardInterrupt:
            logger.info("interrupted")
            decision = replace(self.strategy.recommend(self._read_history()), stopped_by="interrupted")
        finally:
            self.executor.close()
        working_time.save(force=True)
        logger.info("ended after %d runs, stopped by %s", len(self._read_history().evaluations), decision.stopped_by)
        return decision

    def _read_history(self) -> History:
        return self.store.history(max_failures=self.max_failures)

    def _loop(self, working_time: WorkingTime) -> Decision:
        self._resume_pending()
        while True:
            history = self._stop_unwanted()
            decision = self.strategy.recommend(history)
            self._notify_state(history, decision)
            if decision.stopped_by is not None:
                self._release_runs(history.pending)
                return decision
            if not working_time.seconds_left:
                return replace(decision, stopped_by="max_hours")
            for request in self.retries.take_due(self._num_free_slots):
                self._submit(request)
            requests = self._reserve_runs(history)
            for request in requests:
                self._submit(request)
            if requests:
                self._notify_state(self._read_history(), decision)
            if not self.active_requests and not self.retries.due_times:
                raise RuntimeError(f"{self.strategy} proposes no runs and does not stop. Fix its `propose`.")
            outcome = self._wait_for_outcome(timeout=min(SECONDS_BETWEEN_SAVES, working_time.seconds_left))
            working_time.save()
            if outcome is not None:
                self.active_requests.discard(outcome.request)
                if isinstance(outcome, Failure) and outcome.kind != "error":
                    outcome = self._find_finished_run(outcome.request) or outcome
                self._record(outcome)

    @property
    def _num_free_slots(self) -> int:
        return self.executor.slots - len(self.active_requests)

    def _notify_state(self, history: History, decision: Decision) -> None:
        for listener in self.listeners:
            listener.on_state(history, decision)

    def _resume_pending(self) -> None:
        """Take over finished work that was not recorded, and start the other pending requests again."""
        for request in self._read_history().pending:
            if evaluation := self._find_finished_run(request):
                self._record(evaluation)
        for request in self._stop_unwanted().pending:
            self._submit(request)

    def _find_finished_run(self, request: Request) -> Optional[Evaluation]:
        directory = self.directory.evaluation(request.name)
        return recovery.find_finished_run(self.evaluators[request.candidate], request, directory)

    def _stop_unwanted(self) -> History:
        """Stop runs of withdrawn candidates, and those that wait for their next try although their failure counts by
        now, so that their slots are free. Return the history."""
        history = self._read_history()
        unwanted_runs = [r for r in history.pending if r.candidate in history.withdrawn or history.has_failed(r)]
        if not unwanted_runs:
            return history
        logger.info("stop %s", join_some([request.name for request in unwanted_runs]))
        self._release_runs(unwanted_runs)
        return self._read_history()

    def _release_runs(self, requests: Sequence[Request]) -> None:
        self.active_requests.difference_update(requests)
        self.executor.abandon(requests)
        self.retries.drop(requests)
        self.store.release_pending(requests)
        for request in requests:
            shutil.rmtree(self.directory.evaluation(request.name), ignore_errors=True)

    def _reserve_runs(self, history: History) -> List[Request]:
        """Return the next requests of the strategy, once they are pending in the store."""
        if self._num_free_slots < 1 or len(self.retries.num_failures_since_finish) > self.executor.slots:
            return []  # nothing works on this machine: more requests would only fail too
        rng = seeding.strategy_rng(self.seed, self.store.num_reserved())
        requests: List[Request] = []
        for name in self.strategy.propose(history, self._num_free_slots, rng):
            replicate = self.store.next_replicate(name) + sum(request.candidate == name for request in requests)
            requests.append(seeding.make_request(self.seed, name, replicate, shared_splits=self.shared_splits))
        self.store.reserve(requests)
        return requests

    def _submit(self, request: Request) -> None:
        logger.info("start %s (split seed %d)", request.name, request.split_seed)
        self.retries.record_start(request)
        self.executor.submit(self.evaluators[request.candidate], request)
        self.active_requests.add(request)

    def _wait_for_outcome(self, *, timeout: float) -> Optional[Outcome]:
        """Return the next outcome; None if none has come when it is time to look again."""
        if self._num_free_slots > 0:
            timeout = self.retries.seconds_to_next(timeout)
        while True:
            if received_signals:  # Python drops what a handler raises in a callback, such as a `__del__`
                raise KeyboardInterrupt
            self.store.check_ownership()
            seconds, outcome = min(timeout, SECONDS_BETWEEN_CHECKS), None
            if self.active_requests:
                outcome = next(self.executor.completed(timeout=seconds), None)
            else:
                time.sleep(seconds)
            timeout -= seconds
            if outcome is not None or timeout <= 0:
                return outcome

    def _record(self, outcome: Outcome) -> None:
        """Record an outcome, and start a failed run again if that may help."""
        history, request, machine, will_retry = self._read_history(), outcome.request, outcome.origin.machine, False
        if isinstance(outcome, Failure):
            recovery.raise_if_fatal(outcome, self.directory.root)
            failed_runs = (*history.failures, outcome)
            will_retry = not MachineHistory(history.evaluations, failed_runs).is_of_candidate(outcome)
            if not will_retry:
                self._check_metric(outcome, history)
                outcome = self.retries.mark_unfit(outcome, history, max_failures=self.max_failures)
                will_retry = recovery.should_retry_run(outcome, history, max_failures=self.max_failures)
        recorded_outcome = self.store.record(outcome, will_retry=will_retry)
        if isinstance(outcome, Failure):
            logger.info("fail %s on %s: %s: %s", request.name, machine, outcome.kind, outcome.error)
        else:
            logger.info("end %s on %s: %s %s", request.name, machine, outcome.metric, outcome.score)
            self.retries.record_finish()
        new_history = self._read_history()
        for name in new_history.withdrawn - history.withdrawn:
            logger.warning("candidate %s is dropped: too many failures", name)
        for listener in self.listeners:
            listener.on_outcome(recorded_outcome)
        if isinstance(outcome, Failure) and will_retry:
            self._retry(outcome, new_history)
        else:
            self.retries.drop([request])

    def _check_metric(self, failure: Failure, history: History) -> None:
        """End the selection if the first run of a candidate did not report the metric: further runs would not do so
        either."""
        request = failure.request
        is_about_metric = failure.kind == "metric" and self.store.meta().kind == "trainings"
        if not is_about_metric or history.has_finished_own(request.candidate):
            return
        remedy = self.evaluators[request.candidate].remedy(self.directory.evaluation(request.name))
        command = f"{full_command('select')} -s {shlex.quote(str(self.directory.root))} --recover{remedy}"
        advice = "" if remedy else "Correct the program; for another command, add all candidates to this one. "
        raise FiestaError(f"{request.name}: {failure.error} No run is lost. {advice}Continue with: {command}")

    def _retry(self, failure: Failure, history: History) -> None:
        """Start a run again: at once if its process died, and after a pause if the machine lacked something, or may be
        broken."""
        request = failure.request
        if failure.kind != "machine" and history.machines.is_of_candidate(failure):
            self._submit(request)
            return
        self.retries.schedule(request)
        at_start = not history.evaluations
        if all(self.retries.is_hopeless(r, at_start=at_start) for r in [request, *self.active_requests]):
            raise FiestaError(
                f"{request.name} keeps failing because a file, memory or another resource is unavailable: "
                f"{failure.error}. Finished runs are safe. Fix this, then continue with --recover, or without this "
                f"candidate: list the others with --allow removed."
            )
        logger.info("%s will run again later: a resource is unavailable", request.name)
