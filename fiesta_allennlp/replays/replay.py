"""Replays of a selection over scores that are there already: the same strategy again and again, in seconds."""

import os
import signal
import sys
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Callable, Dict, Generator, Iterator, List, Mapping, Optional, Tuple, TypeVar

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.records import Decision, Evaluation, History
from fiesta_allennlp.replays.files import open_scores
from fiesta_allennlp.replays.settings import ReplaySettings
from fiesta_allennlp.replays.side_by_side import prepare_beliefs, side_by_side
from fiesta_allennlp.replays.sources import DrawnScores, Sampling, ScoreSource, restrict
from fiesta_allennlp.seeding import (
    REPLAY_SCORES_STREAM,
    REPLAY_SPLITS_STREAM,
    REPLAY_STRATEGY_STREAM,
    fresh_seed,
    replay_rng,
)
from fiesta_allennlp.selection.settings import OFFICIAL
from fiesta_allennlp.selection.strategy_building import build_strategy
from fiesta_allennlp.strategies.base import Strategy

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

TIES = 1e-12
"""Means that are as near as that are equal: the mean of equal scores can be off in the last digit."""

Outcome = TypeVar("Outcome")

CHUNKS_PER_PROCESS = 2
LARGEST_CHUNK = 100
"""Repetitions are made in pieces: large enough for `side_by_side` to pay, and small enough for an even load, a bar that
moves, and for little to be lost by an interrupt."""


@dataclass(frozen=True)
class Repetition:
    """The outcome of one simulated selection.

    `best` and `stopped_by` are those of its decision. `correct`: `best` is, within the margin, a candidate with the
    best true mean. In a round as many evaluations as the batch size allows are made at once. `seconds` are those of the
    evaluations that were made, all workers together; 0 where the scores do not say.
    """

    best: Optional[str]
    stopped_by: str
    correct: bool
    num_evaluations: int
    num_rounds: int
    seconds: float = 0.0


@dataclass(frozen=True)
class Replay:
    """All repetitions that finished, in their order, and what they were made with.

    `settings` has everything that was left to chance or to defaults filled in; `interrupted` tells that some
    repetitions are missing. `true_means` is by candidate. `seconds` is wall-clock time. `fewest_scores` is how many
    splits or scores are taken for the truth, None where the scores never run out. `notes` are of the source.
    """

    settings: ReplaySettings
    true_means: Dict[str, float]
    repetitions: Tuple[Repetition, ...]
    seconds: float
    interrupted: bool
    fewest_scores: Optional[int] = None
    notes: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Replayer:
    """Everything that one repetition needs; sent to the worker processes.

    Attributes:
        margin: how far from the best true mean a candidate is right to recommend.
        batch_size: how many evaluations are made at once. The next ones are chosen when all of them have finished.
        minimise: whether the lowest true mean is the best, which the strategy knows already.
    """

    strategy: Strategy
    source: ScoreSource
    sampling: Sampling
    candidates: Tuple[str, ...]
    batch_size: int
    seed: int
    margin: float = 0.0
    minimise: bool = False

    @cached_property
    def best(self) -> Tuple[str, ...]:
        """The candidates that are right to recommend, unless the true means are those of one repetition."""
        return best_within(self.source.true_means(), self.margin, minimise=self.minimise)

    def run_all(self, repetitions: range) -> List[Repetition]:
        """Selections, with the scores and the draws that belong to these numbers.

        Raises:
            FiestaError: where the scores run out, or the belief cannot use one.
        """
        return side_by_side(self.strategy, [self._steps(repetition) for repetition in repetitions])

    def _steps(self, repetition: int) -> Generator[History, None, Repetition]:
        scores = self.draw(repetition)
        for num_rounds, history in enumerate(self.histories(scores, repetition)):  # noqa: B007
            yield history
        decision = self.strategy.recommend(history)
        if decision.stopped_by is None:
            raise RuntimeError(f"{self.strategy} proposes nothing, waits for nothing and has not stopped.")
        return self.outcome(decision, history, scores, num_rounds=num_rounds)

    def histories(self, scores: DrawnScores, repetition: int) -> Iterator[History]:
        """Yield the history before the first round and after every one."""
        rng = replay_rng(self.seed, REPLAY_STRATEGY_STREAM, repetition)
        history = self.source.start or History(self.candidates)
        yield history
        while names := self.strategy.propose(history, self.batch_size, rng):
            history = history.after(_evaluate(scores, history, names))
            yield history

    def outcome(self, decision: Decision, history: History, scores: DrawnScores, *, num_rounds: int) -> Repetition:
        means = scores.true_means
        best = self.best if means is None else best_within(means, self.margin, minimise=self.minimise)
        begun = 0 if self.source.start is None else len(self.source.start.evaluations)
        return Repetition(
            best=decision.best,
            stopped_by=decision.stopped_by or "",
            correct=decision.best in best,
            num_evaluations=len(history.evaluations),
            num_rounds=num_rounds,
            seconds=sum(evaluation.seconds for evaluation in history.evaluations[begun:]),
        )

    def draw(self, repetition: int) -> DrawnScores:
        return self.source.draw(
            self.sampling,
            split_rng=replay_rng(self.seed, REPLAY_SPLITS_STREAM, repetition),
            score_rngs={
                name: replay_rng(self.seed, REPLAY_SCORES_STREAM, repetition, name) for name in self.candidates
            },
        )


def best_within(means: Mapping[str, float], margin: float, *, minimise: bool = False) -> Tuple[str, ...]:
    """Return the candidates whose means are within the margin of the highest one, or of the lowest to minimise."""
    gains = {name: -mean if minimise else mean for name, mean in means.items()}
    return tuple(name for name in gains if gains[name] >= max(gains.values()) - margin - TIES)


def _evaluate(scores: DrawnScores, history: History, names: List[str]) -> Iterator[Evaluation]:
    started = {name: history.num_started(name) for name in names}
    for name in names:
        yield scores.evaluate(scores.request(name, started[name]))
        started[name] += 1


def replay(
    settings: ReplaySettings,
    *,
    source: Optional[ScoreSource] = None,
    margin: float = 0.0,
    on_repetitions: Callable[[int], None] = lambda number: None,
) -> Replay:
    """Repeat a selection over a table of scores, or a preset, in parallel.

    The result depends on the settings and the seed alone, not on the number of processes. An interrupt
    (`KeyboardInterrupt`) ends it with the repetitions that have finished.

    Args:
        source: where the scores come from, in place of what `settings.scores` names; `settings.evaluations_per_split`
            then has no part.
        margin: how far from the best true mean a candidate is right to recommend, where the strategy has no margin.
        on_repetitions: called with the number of repetitions that have finished since the last call.

    Raises:
        FiestaError: where a setting or the table is wrong, or the table runs out.
    """
    start = time.monotonic()
    seed = fresh_seed() if settings.seed is None else settings.seed
    settings = replace(settings, seed=seed, processes=min(settings.num_processes, settings.repetitions))
    replayer = prepare_replay(settings, source, margin=margin)
    splits = OFFICIAL if replayer.source.on_official_splits else settings.splits
    settings = replace(settings, minimise=replayer.minimise, splits=splits)
    done: Dict[int, Repetition] = {}
    interrupted = False
    try:
        numbers = range(settings.repetitions)
        with closing(in_chunks(replayer.run_all, numbers, num_processes=settings.num_processes)) as chunks:
            for chunk, results in chunks:
                done.update(zip(chunk, results, strict=True))
                on_repetitions(len(results))
    except KeyboardInterrupt:
        interrupted = True
    repetitions = tuple(done[number] for number in sorted(done))
    seconds = time.monotonic() - start
    fewest = replayer.source.fewest_scores(replayer.sampling)
    means, notes = replayer.source.true_means(), replayer.source.notes
    return Replay(settings, means, repetitions, seconds, interrupted, fewest, notes)


def prepare_replay(settings: ReplaySettings, source: Optional[ScoreSource] = None, *, margin: float = 0.0) -> Replayer:
    """Read and check everything. `settings.seed` is given.

    Raises:
        FiestaError: see `replay`.
    """
    if source is None:
        source = open_scores(settings.scores, settings.evaluations_per_split, settings.columns)
    if source.on_official_splits:
        settings = replace(settings, splits=OFFICIAL)
    if settings.candidates:
        source = restrict(source, settings.candidates)
    means = source.true_means()
    minimise = settings.minimise or source.minimise
    strategy = build_strategy(settings, list(means), has_counts=source.reports_counts, minimise=minimise)
    if settings.done:
        strategy.without_further_runs(settings.done, source.start or History(tuple(means)))
    prepare_beliefs([strategy])
    _, most = strategy.bounds(len(means))
    sampling = Sampling(settings.splits == "shared", settings.with_replacement, most)
    source.check(sampling)
    margin = settings.strategy_params().get("margin", margin)
    return Replayer(
        strategy=strategy,
        source=source,
        sampling=sampling,
        candidates=tuple(means),
        batch_size=settings.batch_size,
        seed=settings.seed or 0,
        margin=margin,
        minimise=minimise,
    )


def in_chunks(
    run_all: Callable[[range], List[Outcome]], numbers: range, *, num_processes: int
) -> Generator[Tuple[range, List[Outcome]], None, None]:
    """Results piece by piece, in order of finishing. Closing the generator stops the workers."""
    share = LARGEST_CHUNK if num_processes == 1 else len(numbers) // (num_processes * CHUNKS_PER_PROCESS)
    size = min(LARGEST_CHUNK, max(1, share))
    chunks = [numbers[begin : begin + size] for begin in range(0, len(numbers), size)]
    if num_processes == 1:
        for chunk in chunks:
            yield chunk, run_all(chunk)
        return
    yield from _in_processes(run_all, chunks, num_processes=num_processes)


def _in_processes(
    run_all: Callable[[range], List[Outcome]], chunks: List[range], *, num_processes: int
) -> Generator[Tuple[range, List[Outcome]], None, None]:
    from concurrent.futures import as_completed
    from concurrent.futures.process import BrokenProcessPool

    from pebble import ProcessPool

    from fiesta_allennlp.isolation.fork_server import MISSING_GUARD, refuse_to_be_imported

    refuse_to_be_imported()
    with ProcessPool(max_workers=num_processes, context=_context()) as pool:
        try:
            with _interrupts_held():
                futures = {pool.schedule(run_all, args=(chunk,)): chunk for chunk in chunks}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:  # all processes ended before they took any work
            raise ConfigError(MISSING_GUARD) from None
        finally:
            pool.stop()


def _context() -> "BaseContext":
    """Processes that import no AllenNLP. Where this one has, each would import it with the main module: there they are
    forks of a server that imports it once."""
    from multiprocessing import get_context

    from fiesta_allennlp.isolation.fork_server import THREAD_VARIABLES, start_fork_server

    if "allennlp" in sys.modules:
        return start_fork_server(num_threads=1)
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    return get_context("spawn")


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold interrupts back, here until the end of the block, and for good in a process that begins in it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
