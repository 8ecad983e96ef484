"""The display of a search's first stage."""

import time
from datetime import timedelta
from typing import Optional

from rich.console import Console

from fiesta_allennlp.records import Evaluation, Failure, History, Outcome
from fiesta_allennlp.selection.loop import Listener
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.summary import duration_text, number_text


class ScreeningProgress(Listener):
    """A line for every run: its score, the best so far, how many are left and about how long that takes.

    Args:
        metric: the score, with its direction.
        configs: how many runs there will be.
        history: what finished before.
    """

    def __init__(self, console: Console, metric: Metric, *, configs: int, history: History) -> None:
        self._console = console
        self._metric = metric
        self._configs = configs
        self._start = time.monotonic()
        self._num_new = 0
        self._done = len(history.evaluations)
        self._best: Optional[Evaluation] = None
        for evaluation in history.evaluations:
            self._compare(evaluation)

    def on_outcome(self, outcome: Outcome) -> None:
        name = outcome.request.candidate
        if isinstance(outcome, Failure):
            later = " (it is tried again)" if outcome.kind in ("machine", "killed") else ""
            self._say(f"{name} failed ({outcome.kind}) after {outcome.seconds:.1f} s: {outcome.error}{later}")
            return
        self._done += 1
        self._num_new += 1
        self._compare(outcome)
        score = f"{name} {self._metric.name} {number_text(outcome.score)} in {outcome.seconds:.1f} s"
        self._say(f"{self._done} of {self._configs}: {score}; {self._best_text()}{self._left()}")

    def _compare(self, evaluation: Evaluation) -> None:
        sign = self._metric.sign
        if self._best is None or sign * evaluation.score > sign * self._best.score:
            self._best = evaluation

    def _best_text(self) -> str:
        best = self._best
        return "" if best is None else f"best {number_text(best.score)}, {best.request.candidate}"

    def _left(self) -> str:
        left = max(0, self._configs - self._done)
        seconds = (time.monotonic() - self._start) / self._num_new * left
        return f"; about {duration_text(round(seconds))} left" if left else ""

    def _say(self, text: str) -> None:
        elapsed = timedelta(seconds=int(time.monotonic() - self._start))
        self._console.print(f"[{elapsed}] {text}", markup=False, highlight=False, soft_wrap=True)
