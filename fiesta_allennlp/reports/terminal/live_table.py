"""The display of running work.

A selection: a live table on a terminal, one plain line per outcome elsewhere. A replay: a bar on a terminal only."""

import time
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any, Callable, Collection, Dict, Optional, Sequence, Set, Union

from rich.console import Console

from fiesta_allennlp.choosing.decision import Decision
from fiesta_allennlp.core.files import shorten
from fiesta_allennlp.core.records import Failure, History, Outcome, Request
from fiesta_allennlp.core.texts import count_text, number_text, probability_text
from fiesta_allennlp.selecting.listeners import Listener
from fiesta_allennlp.selecting.results.candidate_table import Table, candidate_table
from fiesta_allennlp.selecting.results.facts import runs_left_text
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.selecting.results.result_words import describe_collapsed_runs

MAX_NAME = 14
"""Characters of a name in a line of progress before it is cut. A line has at most 100."""


class LiveTable(Listener):
    """Shows a running selection: as a live table on a terminal, elsewhere as a line for one finished evaluation in
    `report_every`, and for each failure, whose error is shown once. `make_result` returns the result with the facts to
    show, once after every outcome."""

    def __init__(
        self,
        console: Console,
        *,
        make_result: Callable[[History, Decision], Result],
        report_every: int = 1,
        find_queued: Callable[[], Collection[str]] = lambda: (),
    ) -> None:
        self._console = console
        self._make_result = make_result
        self._report_every = report_every
        self._find_queued = find_queued
        self._noted_candidates: Set[str] = set()
        self._first_run_by_error: Dict[str, str] = {}
        self._num_finished = 0
        self._start = time.monotonic()
        self._history = History(candidates=())
        self._decision = Decision(best=None)
        self._result: Optional[Result] = None
        self._pending_line: Optional[str] = None
        self._waiting_requests: Sequence[Request] = ()
        self._live: Any = None

    def __enter__(self) -> "LiveTable":
        if self._console.is_terminal:
            from rich.live import Live  # late, because quick commands import this module for its tables

            self._live = Live(
                console=self._console, refresh_per_second=2, transient=True, get_renderable=self._build_table
            )
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._print_pending_line()
        if self._live is not None:
            self._live.stop()

    def on_state(self, history: History, decision: Decision) -> None:
        old_counts = len(self._history.evaluations), len(self._history.failures)
        is_new = old_counts != (len(history.evaluations), len(history.failures))
        self._history, self._decision = history, decision
        if self._console.quiet:
            return
        if is_new or self._result is None:
            self._result = self._make_result(history, decision)
            for runs in self._result.collapsed:
                if runs.candidate not in self._noted_candidates:
                    self._noted_candidates.add(runs.candidate)
                    self._print_line(f"Note: {describe_collapsed_runs(runs, minimise=self._result.minimise)}")
        self._print_pending_line()

    def on_outcome(self, outcome: Outcome) -> None:
        """Print the outcome of a run. A finished run waits for the decision that it leads to."""
        if isinstance(outcome, Failure):
            retry_text = " (will be retried after a pause)" if outcome.kind == "machine" else ""
            place_text = "" if outcome.origin.is_only_machine else f" on {outcome.origin.machine}"
            failure_text = f"{outcome.request.name} failed ({outcome.kind}) after {outcome.seconds:.1f} s{place_text}"
            first_run = self._first_run_by_error.setdefault(outcome.error, outcome.request.name)
            error_text = outcome.error if first_run == outcome.request.name else f"the error of {first_run}"
            self._print_line(f"{failure_text}: {error_text}{retry_text}")
            return
        self._num_finished += 1
        if not self._console.is_terminal and self._num_finished % self._report_every == 0:
            candidate = outcome.request.candidate
            number = outcome.request.name.removeprefix(candidate)
            self._pending_line = f"{shorten(candidate, MAX_NAME)}{number} {number_text(outcome.score)}"

    def on_waiting(self, requests: Sequence[Request]) -> None:
        self._waiting_requests = requests

    def _print_pending_line(self) -> None:
        if self._pending_line is not None:
            best, confidence = self._decision.best, self._decision.confidence
            lead = ""
            if best is not None and confidence is not None:
                lead = f"; {shorten(best, MAX_NAME)} P(best) {probability_text(confidence)}"
            self._print_line(self._pending_line + lead + self._runs_left_text)
            self._pending_line = None

    @property
    def _runs_left_text(self) -> str:
        """The further runs, after a semicolon; not for a selection that is over."""
        is_over = self._result is None or self._decision.stopped_by is not None
        text = "" if is_over else runs_left_text(self._result)
        return text and f"; {text}"

    def _print_line(self, text: str) -> None:
        self._console.print(f"[{self._elapsed_text}] {text}")

    @property
    def _elapsed_text(self) -> str:
        return str(timedelta(seconds=int(time.monotonic() - self._start)))

    def _build_table(self) -> Union[Table, str]:
        history, result = self._history, self._result
        if result is None:
            return ""
        num_waiting = Counter(request.candidate for request in self._waiting_requests if request in history.pending)
        queued_names = {*self._find_queued()}
        num_queued = Counter(request.candidate for request in history.pending if request.name in queued_names)
        num_outside = num_waiting + num_queued
        waiting_text = f", {num_waiting.total()} waiting for another try" if num_waiting else ""
        queued_text = f", {num_queued.total()} queued" if num_queued else ""
        running_text = f"{len(history.pending) - num_outside.total()} running{queued_text}{waiting_text}"
        runs_text = f"{count_text(len(history.evaluations), 'run')}, {running_text}"
        title = f"{result.metric_text}: {runs_text}, {self._elapsed_text} elapsed{self._runs_left_text}"
        candidates = tuple(
            replace(
                candidate,
                num_pending=history.num_pending(candidate.name) - num_outside[candidate.name],
                num_waiting=num_waiting[candidate.name],
                num_queued=num_queued[candidate.name],
            )
            for candidate in result.candidates
        )
        return candidate_table(replace(result, candidates=candidates), title=title)
