"""The loop with a real store and real strategies. Only the trainings are replaced, by scores computed at once."""

import json
import logging
import math
import time
from collections import Counter, deque
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional, Sequence, Set, Tuple, Type
from unittest.mock import Mock

import numpy as np
import pytest

from fiesta_allennlp.choosing.strategy import Decision, Strategy
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import DataError, FiestaError, StoreError
from fiesta_allennlp.core.records import Candidate, Evaluation, Failure, Origin, Outcome, Request
from fiesta_allennlp.core.registry import build
from fiesta_allennlp.core.seeding import make_request, strategy_rng
from fiesta_allennlp.running.executor import Evaluator, Executor
from fiesta_allennlp.selecting.loop import SelectionLoop
from fiesta_allennlp.selecting.recovery import RETRY_PAUSES, Retries
from fiesta_allennlp.selecting.store import RunStore

MEANS = {"a": 0.60, "b": 0.64, "c": 0.55}


@dataclass(frozen=True)
class Normal(Evaluator):
    """A score that depends on the request's seeds alone, as a training's does."""

    saved: Tuple[Request, ...] = ()

    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        noise = np.random.default_rng([request.split_seed, request.random_seed]).normal(scale=0.02)
        return Evaluation(request, MEANS[request.candidate] + noise, "m")

    def salvage(self, request: Request, directory: Path) -> Optional[Evaluation]:
        return self.evaluate(request, directory) if request in self.saved else None


@dataclass
class Inline(Executor):
    """Works when it is asked for an outcome, on the last one submitted: so outcomes come out of order.

    `hosts` make the outcomes in turn.
    """

    slots: int = 1
    interrupt_after: Optional[int] = None
    fail: Callable[[Request, int, str], Optional[str]] = lambda request, attempt, host: None
    hosts: Sequence[str] = ()
    queue: Deque[Tuple[Evaluator, Request]] = field(default_factory=deque)
    started: List[Request] = field(default_factory=list)
    abandoned: List[Request] = field(default_factory=list)
    num_done: int = 0

    def submit(self, evaluator: Evaluator, request: Request) -> None:
        assert len(self.queue) < max(self.slots, 4), "more work than there are workers"
        self.queue.append((evaluator, request))
        self.started.append(request)

    def completed(self, *, timeout: Optional[float] = None) -> Iterator[Outcome]:
        while self.queue:
            if self.num_done == self.interrupt_after:
                raise KeyboardInterrupt
            self.num_done += 1
            evaluator, request = self.queue.pop()
            host = self.hosts[(self.num_done - 1) % len(self.hosts)] if self.hosts else ""
            kind = self.fail(request, self.started.count(request), host)
            outcome = Failure(request, kind, "as told") if kind else evaluator.evaluate(request, Path())
            yield replace(outcome, origin=Origin(host, is_only_machine=False)) if host else outcome

    def abandon(self, requests: Sequence[Request]) -> None:
        self.queue = deque((evaluator, request) for evaluator, request in self.queue if request not in requests)
        self.abandoned.extend(requests)

    def close(self) -> None:
        self.queue.clear()


BAD_AND_GOOD = ("bad", "good")
"""Two machines."""


def fails(kind: str, *names: str, tries: float = math.inf) -> Callable[[Request, int, str], Optional[str]]:
    """What fails so many times in this way: these runs, all runs of these candidates, or all on these hosts."""
    return lambda request, attempt, host: (
        kind if attempt <= tries and {request.name, request.candidate, host} & {*names} else None
    )


@dataclass
class Run:
    """One directory in which a selection is run, and run again."""

    directory: RunDirectory
    params: dict
    seed: int = 1
    max_failures: int = 3
    max_hours: Optional[float] = None
    pauses: Sequence[float] = (0.0, 0.0)

    def go(self, executor: Any = None, *, resume: bool = False, evaluator: Any = None, **inline: Any) -> Decision:
        """Run it on an executor, which is `Inline` with these options unless it is given."""
        store = RunStore(self.directory, create=not resume)
        store.put_candidates([Candidate(name, name, {}, {}) for name in MEANS])
        self.executor = executor or Inline(**inline)
        try:
            self.decision = SelectionLoop(
                strategy=build(Strategy, {"belief": {"type": "student_t"}, **self.params}),
                evaluators=dict.fromkeys(MEANS, evaluator or Normal()),
                executor=self.executor,
                store=store,
                directory=self.directory,
                listeners=[],
                seed=self.seed,
                max_failures=self.max_failures,
                max_hours=self.max_hours,
                retries=Retries(self.pauses),
            ).run()
            return self.decision
        finally:
            self.history, self.rows = store.history(max_failures=self.max_failures), store.rows()
            store.close()

    def scores(self) -> Set[Tuple[str, int, float]]:
        return {(e.request.candidate, e.request.replicate, e.score) for e in self.history.evaluations}

    def undisturbed(self) -> "Run":
        """The same selection in another directory, where nothing fails or is interrupted. It is over, and made once
        for all tests."""
        key = json.dumps(self.params)
        if key not in UNDISTURBED:
            root = self.directory.root.parent / "other"
            UNDISTURBED[key] = replace(self, directory=RunDirectory(root), max_hours=None)
            UNDISTURBED[key].go()
        return UNDISTURBED[key]


UNDISTURBED: Dict[str, Run] = {}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(RunDirectory(tmp_path / "run"), {"type": "top_two", "confidence": 0.99})


@pytest.mark.parametrize("slots", [1, 4])
def test_the_best_is_found_by_keyed_seeds_and_not_searched_again(
    run: Run, slots: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: List[int] = []
    rng = Mock(side_effect=lambda seed, key: (keys.append(key), strategy_rng(seed, key))[1])
    monkeypatch.setattr("fiesta_allennlp.selecting.loop.seeding.strategy_rng", rng)
    with caplog.at_level(logging.INFO, "fiesta_allennlp"):
        decision = run.go(slots=slots)
    assert (decision.best, decision.stopped_by, run.history.pending) == ("b", "confidence", ())
    assert decision.confidence is not None and decision.confidence >= 0.99
    requests = [evaluation.request for evaluation in run.history.evaluations]
    assert requests == [make_request(1, r.candidate, r.replicate, shared_splits=True) for r in requests]
    assert keys[0] == 0 and keys == sorted(keys) and len(set(keys)) > 2, "each choice has draws of its own"
    assert run.go(resume=True) == decision and run.executor.started == []


@pytest.mark.parametrize("kind", ["error", "killed", "machine"])
@pytest.mark.parametrize("interrupt_after", [0, 3])
def test_a_bad_machine_costs_no_candidate_and_changes_no_score(run: Run, kind: str, interrupt_after: int) -> None:
    """Also across sessions."""
    other = run.undisturbed()
    if interrupt_after:
        first = run.go(hosts=BAD_AND_GOOD, fail=fails(kind, "bad"), interrupt_after=interrupt_after)
        assert first.stopped_by == "interrupted"
    decision = run.go(resume=bool(interrupt_after), hosts=BAD_AND_GOOD, fail=fails(kind, "bad"))
    assert decision == other.decision and run.scores() == other.scores()
    assert {failure.origin.host for failure in run.history.failures} == {"bad"}
    assert run.history.withdrawn == set()


def test_a_run_that_waits_for_its_next_try_has_failed_once_its_machine_finishes_a_run(run: Run) -> None:
    run.pauses = (60.0, 60.0)  # it would wait so long, but the other run finishes first
    run.go(slots=2, hosts=["only"], fail=fails("error", "b-0"))
    failed_run = run.executor.started[1]
    assert failed_run.name == "b-0"
    assert run.executor.started.count(failed_run) == 1 and run.executor.abandoned[0] == failed_run
    assert run.history.num_counted_failures(failed_run.candidate) == 1 and run.decision.best == "b"


@pytest.mark.parametrize("interrupt_after", [0, 4, 11])
def test_a_resumed_run_is_the_uninterrupted_one(run: Run, interrupt_after: int) -> None:
    other = run.undisturbed()
    first = run.go(interrupt_after=interrupt_after)
    assert first.stopped_by == "interrupted"
    assert len(run.history.evaluations) == interrupt_after
    assert len(run.history.pending) == 1
    assert run.go(resume=True) == other.go(resume=True)
    assert run.scores() == other.scores()
    assert [row["candidate"] for row in run.rows] == [row["candidate"] for row in other.rows]


def test_an_interruption_at_every_step_loses_nothing_with_many_workers(run: Run) -> None:
    run.params = {"type": "sequential_halving", "budget": 24}
    resume = False
    while run.go(resume=resume, slots=3, interrupt_after=1).stopped_by == "interrupted":
        resume = True
    assert len(run.history.evaluations) <= 24
    counts = Counter(e.request.name for e in run.history.evaluations)
    assert set(counts.values()) == {1}


def test_pending_requests_come_first_unless_they_finished_unrecorded(run: Run) -> None:
    """Four are pending, of which two are salvaged, and there is one worker."""
    run.go(slots=4, interrupt_after=2)
    saved, rest = run.history.pending[:2], run.history.pending[2:]
    assert len(rest) == 2
    assert run.go(resume=True, slots=1, evaluator=Normal(saved=saved)).stopped_by == "confidence"
    assert tuple(run.executor.started[:2]) == rest and not set(saved) & set(run.executor.started)
    assert {(s.candidate, s.replicate) for s in saved} <= {(c, r) for c, r, _ in run.scores()}


@pytest.mark.parametrize(
    ("kind", "failing", "tries"),
    [("killed", ("c-2",), 2), ("killed", ("b-0", "b-1", "b-2", "b-4"), 1), ("machine", ("b-0", "b-3", "b-4"), 2)],
)
def test_what_finishes_at_last_has_the_same_seeds_and_its_failures_do_not_count(
    run: Run, kind: str, failing: Tuple[str, ...], tries: int
) -> None:
    """More failures of the winner than a candidate may have."""
    run.go(fail=fails(kind, *failing, tries=tries))
    assert run.scores() == run.undisturbed().scores()
    failures = [(f.request.name, f.kind) for f in run.history.failures]
    assert Counter(failures) == dict.fromkeys([(name, kind) for name in failing], tries)
    assert [row["status"] for row in run.rows].count("failed") == len(failures)
    assert (run.history.withdrawn, run.history.num_counted_failures("b")) == (frozenset(), 0)


def test_a_candidate_that_fails_too_often_is_withdrawn_until_more_failures_are_allowed(run: Run) -> None:
    """A run that raises is not tried again; the next replicate is."""
    decision = run.go(slots=2, fail=fails("error", "b"))
    assert (decision.best, decision.stopped_by, run.history.withdrawn) == ("a", "confidence", {"b"})
    assert sorted(failure.request.name for failure in run.history.failures) == ["b-0", "b-1", "b-2"]
    run.max_failures = 4
    assert (run.go(resume=True).best, run.history.withdrawn) == ("b", frozenset())
    assert {r for c, r, _ in run.scores() if c == "b"} >= {3, 4}


def test_one_training_is_tried_as_often_as_a_candidate_may_fail_in_all_sessions(run: Run) -> None:
    run.go(fail=fails("killed", "b-0"), interrupt_after=3)
    deaths = len(run.history.failures)
    assert deaths == 2 and run.history.withdrawn == frozenset()
    run.go(resume=True, fail=fails("killed", "b-0"))
    assert [failure.request.name for failure in run.history.failures] == ["b-0"] * 3
    assert run.history.withdrawn == {"b"}


def test_a_machine_that_goes_on_lacking_something_ends_the_selection_in_order(run: Run) -> None:
    with pytest.raises(FiestaError, match="a-2 keeps failing .*as told.*--recover.*--allow removed"):
        run.go(fail=fails("machine", "a-2"))
    before = run.scores()
    assert [request.name for request in run.history.pending] == ["a-2"]
    assert [failure.request.name for failure in run.history.failures] == ["a-2"] * 3
    assert before and run.history.withdrawn == frozenset()
    with pytest.raises(FiestaError, match="a-2 keeps failing"):
        run.go(resume=True, fail=fails("machine", "a-2"))
    assert run.executor.started.count(run.history.pending[0]) == 3, "a resumed selection has fresh tries"
    run.go(resume=True)
    assert run.scores() == run.undisturbed().scores() > before


def test_a_withdrawn_candidate_is_not_tried_again(run: Run) -> None:
    run.pauses = (600.0,)
    kinds = {"a-0": "machine", "a-1": "error"}
    run.max_failures = 1
    decision = run.go(slots=4, fail=lambda request, attempt, host: kinds.get(request.name))
    assert (run.history.withdrawn, decision.best) == ({"a"}, "b")
    assert run.history.pending == ()
    assert run.executor.started.count(make_request(1, "a", 0, shared_splits=True)) == 1


def test_an_interrupt_ends_a_pause_at_once(
    run: Run, monkeypatch: pytest.MonkeyPatch, ctrl_c: Callable[[], None]
) -> None:
    asked: List[float] = []
    stub = SimpleNamespace(sleep=lambda seconds: (asked.append(seconds), ctrl_c()), monotonic=time.monotonic)
    monkeypatch.setattr("fiesta_allennlp.selecting.loop.time", stub)
    run.pauses = (600.0,)
    decision = run.go(fail=fails("machine", *MEANS))
    assert decision.stopped_by == "interrupted"
    assert asked == [1.0], "a signal is looked for every second"
    run.go(resume=True)
    assert run.scores() == run.undisturbed().scores()


def test_running_trainings_of_a_withdrawn_candidate_are_stopped_and_free_their_slots(run: Run) -> None:
    """Four workers begin with a, b, c and a again; the second a fails first."""
    run.max_failures = 1
    decision = run.go(slots=4, fail=fails("error", "a"))
    first, again = (make_request(1, "a", replicate, shared_splits=True) for replicate in (0, 1))
    assert run.executor.started[3] == again
    assert run.executor.abandoned[0] == first
    assert [failure.request for failure in run.history.failures] == [again]
    assert (decision.stopped_by, run.history.pending) == ("confidence", ())


def test_a_training_that_finished_as_it_was_killed_is_not_trained_again(run: Run) -> None:
    saved = make_request(1, "c", 2, shared_splits=True)
    run.go(evaluator=Normal(saved=(saved,)), fail=fails("killed", "c-2"))
    assert run.scores() == run.undisturbed().scores()
    assert run.executor.started.count(saved) == 1
    assert run.history.failures == ()


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        ("disk", StoreError, "the disk is full: c-2 .*--recover"),
        ("data", DataError, "as told.*--recover"),
    ],
)
def test_a_full_disk_and_changed_data_end_the_selection_and_are_nobodys_failure(
    run: Run, kind: str, error: Type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        run.go(fail=fails(kind, "c-2"))
    assert [request.name for request in run.history.pending] == ["c-2"]
    assert run.history.failures == ()
    run.go(resume=True)
    assert run.scores() == run.undisturbed().scores()


@dataclass
class Simulated(Executor):
    """Works in a time of its own: each run takes its seconds, and each outcome moves the time to its end.

    `now` is that time, in seconds, and `idle` how long workers had nothing to do, all together.
    """

    seconds: float
    slots: int = 4
    now: float = 0.0
    idle: float = 0.0
    lacks: Callable[[Request, float], bool] = lambda request, now: False
    seconds_to_fail: float = 1.0
    begun: List[Tuple[float, Request]] = field(default_factory=list)
    running: List[Tuple[float, Request, Evaluator]] = field(default_factory=list)

    def submit(self, evaluator: Evaluator, request: Request) -> None:
        assert len(self.running) < self.slots
        seconds = self.seconds_to_fail if self.lacks(request, self.now) else self.seconds
        self.running.append((self.now + seconds, request, evaluator))
        self.begun.append((self.now, request))

    def completed(self, *, timeout: Optional[float] = None) -> Iterator[Outcome]:
        while self.running:
            end, request, evaluator = min(self.running, key=lambda work: (work[0], work[1].key))
            wait = end - self.now
            self.idle += (self.slots - len(self.running)) * (wait if timeout is None else min(wait, timeout))
            if timeout is not None and timeout < wait:
                self.now += timeout
                return
            self.now = end
            self.running.remove((end, request, evaluator))
            if self.lacks(request, self.now - self.seconds_to_fail):
                yield Failure(request, "machine", "as told")
            else:
                yield replace(evaluator.evaluate(request, Path()), seconds=self.seconds)

    def abandon(self, requests: Sequence[Request]) -> None:
        self.running = [work for work in self.running if work[1] not in requests]

    def close(self) -> None:
        self.running.clear()


Simulate = Callable[..., Simulated]


class Hours:
    """A clock that shows the simulated time of an executor, counted from where the machine's clock stood."""

    def __init__(self, executor: Simulated, begin: float) -> None:
        self.executor, self.begin = executor, begin

    def monotonic(self) -> float:
        return self.begin + self.executor.now

    def sleep(self, seconds: float) -> None:
        assert not self.executor.running and seconds > 0
        self.executor.now += seconds


@pytest.fixture
def simulated(run: Run, monkeypatch: pytest.MonkeyPatch) -> Simulate:
    """Makes an executor whose time is that of the selection too, which pauses as long as it does for users."""
    run.pauses = RETRY_PAUSES

    def make(*args: Any, clock_begins_at: float = 0.0, **kwargs: Any) -> Simulated:
        executor = Simulated(*args, **kwargs)
        for module in ("selecting.recovery", "selecting.loop"):
            monkeypatch.setattr(f"fiesta_allennlp.{module}.time", Hours(executor, clock_begins_at))
        # Else each minute is a write.
        monkeypatch.setattr("fiesta_allennlp.selecting.loop.SECONDS_BETWEEN_SAVES", 600.0)
        return executor

    return make


EQUALLY = {"type": "non_adaptive_fb", "budget": 12}


def test_the_others_are_trained_while_one_waits_to_be_tried_again(run: Run, simulated: Simulate) -> None:
    run.params = EQUALLY
    executor = simulated(3600.0, slots=2, lacks=lambda request, now: request.name == "a-0" and now < 2000.0)
    decision = run.go(executor)
    tries = [begun for begun, request in executor.begun if request.name == "a-0"]
    assert tries[0] == 0.0 and tries[-1] >= 2000.0
    assert decision.stopped_by == "budget"
    assert executor.idle < RETRY_PAUSES[0]
    assert run.scores() == run.undisturbed().scores()


@pytest.mark.parametrize(("works_until", "tries"), [(9.0, [9.0, 20.0, 81.0, 382.0, 2183.0]), (0.0, [0.0, 11.0, 72.0])])
def test_the_pauses_grow_until_the_selection_ends(
    run: Run, simulated: Simulate, works_until: float, tries: List[float]
) -> None:
    """After all pauses, or two where no run ever finished."""
    executor = simulated(9.0, slots=1, lacks=lambda request, now: now >= works_until)
    with pytest.raises(FiestaError, match="keeps failing"):
        run.go(executor)
    first = executor.begun[int(works_until > 0)][1]
    assert [begun for begun, request in executor.begun if request == first] == tries


@pytest.mark.parametrize(("slots", "seconds"), [(1, 1.0), (3, 3600.0)])
def test_a_machine_on_which_nothing_works_gets_few_requests(
    run: Run, simulated: Simulate, slots: int, seconds: float
) -> None:
    executor = simulated(9.0, slots=slots, lacks=lambda request, now: True, seconds_to_fail=seconds)
    with pytest.raises(FiestaError, match="keeps failing"):
        run.go(executor)
    assert slots < len(run.history.pending) <= 2 * slots
    assert len(run.history.failures) <= 2 * slots * (len(RETRY_PAUSES) + 2)
    assert run.history.withdrawn == frozenset()


@pytest.mark.parametrize("minutes", [1.0, 60.0])
def test_a_candidate_for_which_alone_the_machine_lacks_something_is_withdrawn(
    run: Run, simulated: Simulate, minutes: float
) -> None:
    """As with one that is too large for the card: the others are trained all the same."""
    executor = simulated(60 * minutes, slots=2, lacks=lambda request, now: request.candidate == "a")
    decision = run.go(executor)
    assert (decision.best, decision.stopped_by, run.history.withdrawn) == ("b", "confidence", {"a"})
    assert run.history.pending == ()
    assert [failure.kind for failure in run.history.failures].count("unfit") == 3


def test_a_run_for_which_alone_the_machine_lacks_something_fails_after_all_pauses(
    run: Run, simulated: Simulate
) -> None:
    """As with a long batch on one split: else it would be tried again and again, half of the time."""
    run.params = EQUALLY
    executor = simulated(1800.0, slots=1, lacks=lambda request, now: request.name == "a-2", seconds_to_fail=1800.0)
    assert run.go(executor).stopped_by == "budget"
    assert [request.name for _, request in executor.begun].count("a-2") == len(RETRY_PAUSES) + 1
    kinds = [failure.kind for failure in run.history.failures]
    assert kinds == ["machine"] * len(RETRY_PAUSES) + ["unfit"] and run.history.withdrawn == frozenset()
    assert "a-2" not in {evaluation.request.name for evaluation in run.history.evaluations}


def test_max_hours_is_a_total_over_all_sessions(run: Run, simulated: Simulate) -> None:
    run.params, done = EQUALLY, []
    for run.max_hours, clock in ((2.5, 500.0), (2.5, -1200.0), (4.6, 500.0), (None, -1200.0)):
        executor = simulated(3600.0, slots=2, clock_begins_at=clock)
        decision = run.go(executor, resume=bool(done))
        done.append((decision.stopped_by, len(run.history.evaluations), len(run.history.pending), executor.now / 3600))
    # What ran when the time was over is begun anew: half an hour of two workers is lost, then a tenth.
    assert done[0] == ("max_hours", 4, 2, 2.5)
    assert done[1] == ("max_hours", 4, 2, 0.0)
    assert done[2] == ("max_hours", 8, 2, pytest.approx(2.1))
    assert done[3][:3] == ("budget", 12, 0)
    assert run.scores() == run.undisturbed().scores()
