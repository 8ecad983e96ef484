"""The loop: ask the strategy, write the requests down, let the workers work, write the outcomes down."""

import logging
import shutil
from dataclasses import dataclass, replace
from typing import List, Optional, Protocol, Sequence, Set

from fiesta_allennlp.errors import StoreError
from fiesta_allennlp.evaluators.base import Evaluator
from fiesta_allennlp.executors.base import Executor
from fiesta_allennlp.records import UNDECIDED, Decision, Failure, History, Outcome, Request
from fiesta_allennlp.run_directory import RunDirectory
from fiesta_allennlp.run_store import RunStore
from fiesta_allennlp.seeding import make_request, strategy_rng
from fiesta_allennlp.strategies.base import Strategy
from fiesta_allennlp.working_time import WorkingTime

logger = logging.getLogger(__name__)


class Listener(Protocol):
    """What wants to know how a selection goes, such as a progress display."""

    def on_state(self, history: History, decision: Decision) -> None:
        """Called after every change of what is finished or pending."""

    def on_outcome(self, outcome: Outcome) -> None:
        """Called for every evaluation and failure once it is written down."""


@dataclass(frozen=True)
class Listeners:
    """Several listeners as one, told in turn."""

    listeners: Sequence[Listener]

    def on_state(self, history: History, decision: Decision) -> None:
        for listener in self.listeners:
            listener.on_state(history, decision)

    def on_outcome(self, outcome: Outcome) -> None:
        for listener in self.listeners:
            listener.on_outcome(outcome)


@dataclass(frozen=True)
class Selection:
    """One selection: everything that its loop needs. Where the store has a history, the loop goes on from there.

    # Parameters

    entropy : the root of all seeds.
    shared_splits : replicate k of every candidate is trained on split k.
    max_failures : a candidate with that many failures is withdrawn.
    max_hours : the most that all sessions may take together, these loops only; None for no limit.
    """

    strategy: Strategy
    evaluator: Evaluator
    executor: Executor
    store: RunStore
    directory: RunDirectory
    listener: Listener
    entropy: int
    shared_splits: bool = True
    max_failures: int = 3
    max_hours: Optional[float] = None

    def run(self) -> Decision:
        """Go on until the strategy is done. Returns the decision, with `stopped_by` set.

        Ctrl-C (`KeyboardInterrupt`) ends it with `stopped_by` `interrupted`, and `max_hours` with that: what was
        running stays pending in the store, and is started again with the same seeds when the selection is resumed.
        """
        working_time = WorkingTime(self.store, self.max_hours)
        try:
            decision = self._loop(working_time)
        except KeyboardInterrupt:
            decision = replace(self.strategy.recommend(self._history()), stopped_by="interrupted")
        finally:
            self.executor.close()
        working_time.note(at_once=True)
        if decision.stopped_by in UNDECIDED:
            decision = replace(decision, credible_margin=self.strategy.credible_margin(self._history()))
        return decision

    def _history(self) -> History:
        return self.store.history(max_failures=self.max_failures)

    def _loop(self, working_time: WorkingTime) -> Decision:
        submitted = self._resume_pending()
        while True:
            history = self._drop_withdrawn(submitted)
            decision = self.strategy.recommend(history)
            self.listener.on_state(history, decision)
            if decision.stopped_by is not None:
                self._forget(history.pending)
                return decision
            if working_time.is_over:
                return replace(decision, stopped_by="max_hours")
            requests = self._choose(history, self.executor.slots - len(submitted))
            for request in requests:
                self._submit(request, submitted)
            if requests:
                self.listener.on_state(self._history(), decision)
            if not submitted:
                raise RuntimeError(f"{self.strategy} proposes nothing, waits for nothing and has not stopped.")
            outcome = next(self.executor.completed(timeout=working_time.seconds_to_wait), None)
            working_time.note()
            if outcome is None:
                continue
            outcome = self._salvaged(outcome)
            submitted.discard(outcome.request)
            if self._record(outcome):
                self._submit(outcome.request, submitted)

    def _resume_pending(self) -> Set[Request]:
        """Take over finished work that was not recorded, and start the rest of the pending requests again."""
        submitted: Set[Request] = set()
        history = self._history()
        for request in history.pending:
            evaluation = self.evaluator.salvage(request, self.directory.evaluation(request.name))
            if evaluation is not None:
                logger.info("%s had finished before the interruption: its score is taken over", request.name)
                self._record(evaluation)
            elif request.candidate in history.withdrawn:
                self._forget([request])
            else:
                self._submit(request, submitted)
        return submitted

    def _drop_withdrawn(self, submitted: Set[Request]) -> History:
        """Stop trainings of candidates that have been withdrawn, so that their slots are free. Returns the history."""
        history = self._history()
        unwanted = [request for request in history.pending if request.candidate in history.withdrawn]
        if not unwanted:
            return history
        logger.info("stop %s", ", ".join(request.name for request in unwanted))
        self._forget(unwanted)
        submitted.difference_update(unwanted)
        return self._history()

    def _salvaged(self, outcome: Outcome) -> Outcome:
        """The outcome, or the score of a training that had finished when its process was ended."""
        if isinstance(outcome, Failure) and outcome.kind != "error":
            directory = self.directory.evaluation(outcome.request.name)
            return self.evaluator.salvage(outcome.request, directory) or outcome
        return outcome

    def _choose(self, history: History, slots: int) -> List[Request]:
        if slots < 1:
            return []
        rng = strategy_rng(self.entropy, self.store.num_reserved())
        names = self.strategy.propose(history, slots, rng)
        requests: List[Request] = []
        for name in names:
            replicate = self.store.next_replicate(name) + sum(request.candidate == name for request in requests)
            requests.append(make_request(self.entropy, name, replicate, shared_splits=self.shared_splits))
        self.store.reserve(requests)
        return requests

    def _submit(self, request: Request, submitted: Set[Request]) -> None:
        logger.info("start %s (split seed %d)", request.name, request.split_seed)
        self.executor.submit(self.evaluator, request)
        submitted.add(request)

    def _record(self, outcome: Outcome) -> bool:
        """Write an outcome down; true where the request is to be started again.

        A training whose process died, or for which the machine lacked something, is tried again; one that raised would
        raise again with the same seeds.

        # Raises

        `StoreError` : where the disk is full. The request stays pending.
        """
        try_again = False
        if isinstance(outcome, Failure) and outcome.kind == "disk":
            raise StoreError(
                f"the disk is full: {outcome.request.name} ended with {outcome.error}. Nothing that finished in "
                f"{self.directory.root} is lost: make room, then go on with --recover."
            )
        if isinstance(outcome, Failure):
            name = outcome.request.candidate
            failures = self._history().failures
            num_failures = 1 + sum(failure.request.candidate == name for failure in failures)
            try_again = outcome.kind in ("killed", "machine") and num_failures < self.max_failures
            if num_failures == self.max_failures:
                logger.warning("candidate %s is withdrawn after %d failures", name, num_failures)
        self.store.record(outcome, try_again=try_again)
        self.listener.on_outcome(outcome)
        return try_again

    def _forget(self, pending: Sequence[Request]) -> None:
        """Stop what nobody waits for any more, and forget it."""
        self.executor.abandon(pending)
        self.store.release(pending)
        for request in pending:
            shutil.rmtree(self.directory.evaluation(request.name), ignore_errors=True)
