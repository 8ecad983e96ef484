"""What watches a selection by trainings: the live table and what else its settings ask for."""

from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Callable, Iterator, List, Optional

from rich.console import Console

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.executors.base import Executor
from fiesta_allennlp.executors.slurm import SlurmExecutor
from fiesta_allennlp.executors.slurm_jobs import end_jobs_left
from fiesta_allennlp.listeners.gpu_room import GpuRoom, smallest_gpu_mib
from fiesta_allennlp.listeners.notify import Notify
from fiesta_allennlp.listeners.progress import Progress
from fiesta_allennlp.listeners.tensorboard import tensorboard
from fiesta_allennlp.records import History, Remaining
from fiesta_allennlp.seeding import strategy_rng
from fiesta_allennlp.selection.loop import Listener, Listeners
from fiesta_allennlp.selection.store import RunStore
from fiesta_allennlp.strategies.base import Strategy
from fiesta_allennlp.trainings.kept_archives import BestArchives
from fiesta_allennlp.trainings.settings import Settings


@contextmanager
def watching(
    settings: Settings, strategy: Strategy, directory: RunDirectory, store: RunStore, console: Console, *, entropy: int
) -> Iterator[Listener]:
    """All listeners of a selection as one. The live table is shown until the end."""
    metric = settings.scored_by
    with ExitStack() as stack:
        remaining = _estimate(strategy, entropy)
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


def _gpu_room(settings: Settings, console: Console) -> List[Listener]:
    """The note on room on the GPUs, where runs are given some."""
    devices = settings.executor_params().get("cuda_devices") or []
    memory = smallest_gpu_mib() if devices else None
    say = partial(console.print, highlight=False, markup=False, soft_wrap=True)
    return [] if memory is None else [GpuRoom(say, devices, memory=memory)]


def _estimate(strategy: Strategy, entropy: int) -> Callable[[History], Optional[Remaining]]:
    """How many more runs there will be, by draws that belong to the number of finished ones."""
    return lambda history: strategy.remaining(history, strategy_rng(entropy, len(history.evaluations)))


@contextmanager
def told_of_jobs(executor: Executor, directory: RunDirectory, console: Console) -> Iterator[None]:
    """End the jobs that an earlier session left on a cluster, unless this one continues with them; and say at the end
    what became of those of this one."""
    left = "" if isinstance(executor, SlurmExecutor) else end_jobs_left(directory)
    if left:
        console.print(left, highlight=False, markup=False, soft_wrap=True)
    try:
        yield
    finally:
        if executor.last_words:
            console.print(executor.last_words, highlight=False, markup=False, soft_wrap=True)
