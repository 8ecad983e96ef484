"""Runs many simulated selections in pieces, in one process or in several."""

import os
import signal
from contextlib import closing, contextmanager
from typing import Callable, Dict, Generator, Iterator, List, Tuple, TypeVar

from fiesta_allennlp.core.errors import ConfigError

Outcome = TypeVar("Outcome")

CHUNKS_PER_PROCESS = 2
MAX_CHUNK_SIZE = 100
"""Repetitions are made in pieces: large enough for a batch to pay, and small enough for an even load, a bar
that moves, and for little to be lost by an interrupt."""


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

    from fiesta_allennlp.running.isolation.fork_server import MISSING_GUARD_MESSAGE, THREAD_VARIABLES, check_main_guard

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
