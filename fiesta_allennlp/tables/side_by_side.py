"""Many simulated selections: side by side in one process, and in pieces in several processes."""

import os
import signal
from contextlib import closing, contextmanager
from typing import Callable, Dict, Generator, Iterator, List, Sequence, Tuple, TypeVar

from fiesta_allennlp.beliefs.base import Belief, Posterior
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.records import History
from fiesta_allennlp.strategies.base import Strategy, have_finished
from fiesta_allennlp.strategies.fixed_confidence import FixedConfidence

Outcome = TypeVar("Outcome")

CHUNKS_PER_PROCESS = 2
MAX_CHUNK_SIZE = 100
"""Repetitions are made in pieces: large enough for `run_side_by_side` to pay, and small enough for an even load, a bar
that moves, and for little to be lost by an interrupt."""


def run_side_by_side(strategy: Strategy, runs: Sequence[Generator[History, None, Outcome]]) -> List[Outcome]:
    """Return what several selections return that take turns, so that their posteriors are computed together. Each
    yields every history before it asks `strategy` about it."""
    belief = getattr(strategy, "belief", None)
    outcomes: Dict[int, Outcome] = {}
    while len(outcomes) < len(runs):
        waiting_histories: List[History] = []
        for number, run in enumerate(runs):
            if number not in outcomes:
                try:
                    waiting_histories.append(next(run))
                except StopIteration as end:
                    outcomes[number] = end.value
        if isinstance(belief, PreparedBelief):
            belief.prepare(waiting_histories)
    return [outcomes[number] for number in range(len(runs))]


def prepare_belief(strategy: Strategy) -> None:
    """Let the posteriors of a strategy be computed together. A strategy for a budget asks for one posterior, at its
    end, so nothing is prepared for it."""
    if isinstance(strategy, FixedConfidence):
        margin = strategy.parsed_margin
        strategy.belief = PreparedBelief(strategy.belief, sorted({0.0, 0.0 if margin.is_in_sds else margin.size}))


class PreparedBelief(Belief):
    """Wraps a model of the scores: computes the posteriors of several histories together, and each only once."""

    def __init__(self, belief: Belief, margins: Sequence[float]) -> None:
        self._belief = belief
        self._margins = margins
        self._computed: Dict[int, Tuple[History, Posterior]] = {}
        self.min_evaluations, self.has_margin = belief.min_evaluations, belief.has_margin

    def prepare(self, histories: Sequence[History]) -> None:
        """Compute the posteriors of these histories, and forget all others."""
        ready = [h for h in histories if len(h.active) > 1 and have_finished(h, h.active, self.min_evaluations)]
        self._computed = {}
        for size in {len(h.active) for h in ready}:  # a candidate whose runs fail leaves some of them
            alike = [h for h in ready if len(h.active) == size]
            posteriors = self._belief.posteriors(alike, self._margins)
            self._computed.update({id(h): (h, posterior) for h, posterior in zip(alike, posteriors, strict=True)})

    def noise_sd(self, history: History) -> float:
        return self._belief.noise_sd(history)

    def posterior(self, history: History) -> Posterior:
        if id(history) not in self._computed:
            self.prepare([history])
        return self._computed[id(history)][1]


def run_chunks(
    run_all: Callable[[range], List[Outcome]], numbers: range, *, num_processes: int, report: Callable[[int], None]
) -> Tuple[List[Outcome], bool]:
    """Return the results that belong to these numbers, in their order, and whether an interrupt (`KeyboardInterrupt`)
    came before the last one. `report` is called with the number of results that are new."""
    share = MAX_CHUNK_SIZE if num_processes == 1 else len(numbers) // (num_processes * CHUNKS_PER_PROCESS)
    size = min(MAX_CHUNK_SIZE, max(1, share))
    chunks = [numbers[begin : begin + size] for begin in range(0, len(numbers), size)]
    by_number: Dict[int, Outcome] = {}
    try:
        with closing(_iterate_results(run_all, chunks, num_processes=num_processes)) as results:
            for chunk, chunk_results in results:
                by_number.update(zip(chunk, chunk_results, strict=True))
                report(len(chunk_results))
    except KeyboardInterrupt:
        return [by_number[number] for number in sorted(by_number)], True
    return [by_number[number] for number in numbers], False


def _iterate_results(
    run_all: Callable[[range], List[Outcome]], chunks: List[range], *, num_processes: int
) -> Generator[Tuple[range, List[Outcome]], None, None]:
    """Yield results piece by piece, in order of finishing. Closing the generator stops the workers."""
    if num_processes == 1:
        yield from ((chunk, run_all(chunk)) for chunk in chunks)
        return
    from concurrent.futures import as_completed
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    from pebble import ProcessPool

    from fiesta_allennlp.isolation.fork_server import MISSING_GUARD_MESSAGE, THREAD_VARIABLES, check_main_guard

    check_main_guard()
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    with ProcessPool(max_workers=num_processes, context=get_context("spawn")) as pool:
        try:
            with _hold_interrupts():
                futures = {pool.schedule(run_all, args=(chunk,)): chunk for chunk in chunks}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:  # all processes ended before they took any work
            raise ConfigError(MISSING_GUARD_MESSAGE) from None
        finally:
            pool.stop()


@contextmanager
def _hold_interrupts() -> Iterator[None]:
    """Hold interrupts back, here until the end of the block, and for good in a process that begins in it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
