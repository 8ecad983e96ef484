"""The observers of a selection by trainings: the live table, and others that the settings ask for."""

import time
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Set, Tuple

from rich.console import Console

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.executors.base import Executor
from fiesta_allennlp.executors.slurm import SlurmExecutor
from fiesta_allennlp.executors.slurm_jobs import end_jobs_left
from fiesta_allennlp.files import delete
from fiesta_allennlp.listeners.notify import GpuRoom, Notify, smallest_gpu_mib
from fiesta_allennlp.listeners.progress import Progress, remaining_text
from fiesta_allennlp.listeners.tensorboard import tensorboard
from fiesta_allennlp.records import Evaluation, History, Outcome
from fiesta_allennlp.seeding import strategy_rng
from fiesta_allennlp.selection.loop import Listener, Listeners
from fiesta_allennlp.selection.store import RunStore
from fiesta_allennlp.splits import Division
from fiesta_allennlp.strategies.base import Strategy
from fiesta_allennlp.trainings.config import Config
from fiesta_allennlp.trainings.programs.config import placeholders_of
from fiesta_allennlp.trainings.programs.metrics import metric_in
from fiesta_allennlp.trainings.settings import Settings


@contextmanager
def watching(
    settings: Settings,
    directory: RunDirectory,
    store: RunStore,
    console: Console,
    *,
    remaining: Callable[[History], str],
) -> Iterator[Listener]:
    """Yield all listeners of a selection as one, and show the live table until the end. `remaining` is the text of
    `outlook`."""
    metric = settings.scored_by
    with ExitStack() as stack:
        progress = Progress(console, metric.name, title=metric.text, remaining=remaining)
        listeners: List[Listener] = [stack.enter_context(progress)]
        if settings.keep == "best":
            history = store.history(max_failures=settings.max_failures)
            listeners.append(BestArchives(directory, history, sign=metric.sign))
        if settings.notify:
            listeners.append(Notify(settings.notify, directory))
        if settings.tensorboard:
            listeners.append(stack.enter_context(tensorboard(directory.tensorboard, metric.name)))
        yield Listeners([*listeners, *_gpu_room(settings, console)])


class BestArchives(Listener):
    """Deletes the model of every run that is not the best of its candidate: the archive of a training, and the
    directory `model` of a program. Runs of `history` count too. `sign` is -1 if the lowest score is the best."""

    def __init__(self, directory: RunDirectory, history: History, *, sign: int = 1) -> None:
        self._directory = directory
        self._sign = sign
        self._best: Dict[str, Tuple[float, str]] = {}
        for evaluation in history.evaluations:
            self.on_outcome(evaluation)

    def on_outcome(self, outcome: Outcome) -> None:
        name = outcome.request.name
        if not isinstance(outcome, Evaluation) or not self._models(name):
            return
        candidate = outcome.request.candidate
        before = self._best.get(candidate)
        if before is None or self._sign * outcome.score > before[0]:
            self._best[candidate] = (self._sign * outcome.score, name)
            name = before[1] if before is not None else ""
        if name:
            self._delete(name)

    def keep_only(self, winner: Optional[str]) -> None:
        """Delete all models except one of this candidate."""
        for candidate, (_, name) in self._best.items():
            if candidate != winner:
                self._delete(name)

    def _models(self, name: str) -> List[Path]:
        return [path for path in (self._directory.archive(name), self._directory.model(name)) if path.exists()]

    def _delete(self, name: str) -> None:
        for path in self._models(name):
            delete(path)


class MetricNames(Listener):
    """Prints once for each name under which programs report the metric, if it differs from the metric's own name."""

    def __init__(self, settings: Settings, configs: Mapping[str, Config], division: Division, console: Console) -> None:
        self._metric, self._configs, self._division, self._console = settings.scored_by.name, configs, division, console
        self._told: Set[str] = set()

    def on_outcome(self, outcome: Outcome) -> None:
        name = outcome.request.candidate
        if isinstance(outcome, Evaluation) and name in self._configs:
            self.say(name, outcome.metrics)

    def say(self, candidate: str, metrics: Mapping[str, float]) -> None:
        """Print which of these metrics of a candidate is the score."""
        is_alone = not self._division.keeps_test
        found = metric_in(metrics, self._metric, scored=self._division.scored, alone=is_alone)
        if found == self._metric or found in self._told:
            return
        self._told.add(found)
        sentence = f"Note: {self._metric} is what {candidate} reports as '{found}'."
        if found.startswith("eval_") and {"validation", "test"} <= placeholders_of(self._configs[candidate]):
            sentence += (
                " The Trainer calls the scores on its validation file eval_, so it may not be of the test set. Have "
                "the program predict on {test}, or give {test} as the validation file."
            )
        self._console.print(sentence, highlight=False, markup=False, soft_wrap=True)


def _gpu_room(settings: Settings, console: Console) -> List[Listener]:
    devices = settings.executor_params().get("cuda_devices") or []
    memory = smallest_gpu_mib() if devices else None
    say = partial(console.print, highlight=False, markup=False, soft_wrap=True)
    return [] if memory is None else [GpuRoom(say, devices, memory=memory)]


def outlook(
    strategy: Strategy, executor: Executor, *, seed: int, worked: float, max_hours: Optional[float]
) -> Callable[[History], str]:
    """Return a function that estimates how many more runs there will be and how long they take.

    The draws of an estimate belong to the number of finished runs, so the same history gives the same text. `worked`
    are the seconds of earlier sessions.
    """
    start = time.monotonic()

    def text(history: History) -> str:
        found = strategy.remaining(history, strategy_rng(seed, len(history.evaluations)))
        seconds = sum(evaluation.seconds for evaluation in history.evaluations)
        per_run = seconds / max(len(history.evaluations), 1) / max(executor.slots, 1)
        left = None if max_hours is None else 3600 * max_hours - worked - (time.monotonic() - start)
        return remaining_text(found, seconds_per_run=per_run, seconds_left=left)

    return text


@contextmanager
def told_of_jobs(executor: Executor, directory: RunDirectory, console: Console) -> Iterator[None]:
    """End the jobs that an earlier session left on a cluster, unless this one continues with them. Print at the end
    what became of this session's jobs."""
    left = executor.resume() if isinstance(executor, SlurmExecutor) else end_jobs_left(directory)
    if left:
        console.print(left, highlight=False, markup=False, soft_wrap=True)
    try:
        yield
    finally:
        if executor.last_words:
            console.print(executor.last_words, highlight=False, markup=False, soft_wrap=True)
