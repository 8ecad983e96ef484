import queue
import threading
import time
from typing import Callable, Iterator, List, Optional, Sequence, Set, Tuple, Union

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import StoreError, describe
from fiesta_allennlp.core.records import Outcome, Request
from fiesta_allennlp.executors.base import Evaluator, Executor
from fiesta_allennlp.isolation.fork_server import SECONDS_TO_STOP, Begun

Task = Tuple[Evaluator, Request]


class ThreadExecutor(Executor):
    """Makes runs in threads of this process, for evaluators that hold connections to other programs and wait for
    answers.

    Do not use it to train models: that needs processes. It is not registered for that reason. A thread cannot be
    killed: an abandoned run continues, and its outcome is dropped. The evaluator must enforce time limits itself.
    `close` calls `on_stop`, which makes the current runs end soon.
    """

    def __init__(
        self, directory: RunDirectory, *, workers: int = 1, on_stop: Callable[[], None] = lambda: None
    ) -> None:
        self.slots = workers
        self._directory = directory
        self._on_stop = on_stop
        self._tasks: "queue.SimpleQueue[Optional[Task]]" = queue.SimpleQueue()
        self._outcomes: "queue.SimpleQueue[Union[Outcome, StoreError]]" = queue.SimpleQueue()
        self._unfinished: Set[Request] = set()
        self._threads: List[threading.Thread] = []

    def submit(self, evaluator: Evaluator, request: Request) -> None:
        self._unfinished.add(request)
        self._tasks.put((evaluator, request))
        if len(self._threads) < min(self.slots, len(self._unfinished)):
            thread = threading.Thread(target=self._work, name=f"fiesta-query-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def completed(self, *, timeout: Optional[float] = None) -> Iterator[Outcome]:
        while self._unfinished:
            try:
                outcome = self._outcomes.get(timeout=timeout)
            except queue.Empty:
                return
            if isinstance(outcome, StoreError):
                raise outcome
            if outcome.request in self._unfinished:
                self._unfinished.discard(outcome.request)
                yield outcome

    def abandon(self, requests: Sequence[Request]) -> None:
        self._unfinished.difference_update(requests)

    def describe(self) -> str:
        return f"{self.slots} at a time in this process"

    def close(self) -> None:
        """Wait briefly for the current runs, because an answer that arrives is kept and not paid for again."""
        self._unfinished.clear()
        for _ in self._threads:
            self._tasks.put(None)
        end = time.monotonic() + SECONDS_TO_STOP
        self._on_stop()
        for thread in self._threads:
            thread.join(timeout=max(0.0, end - time.monotonic()))

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            evaluator, request = task
            if request in self._unfinished:
                self._outcomes.put(self._outcome(evaluator, request))

    def _outcome(self, evaluator: Evaluator, request: Request) -> Union[Outcome, StoreError]:
        begun = Begun.now(request)
        try:
            return evaluator.evaluate(request, self._directory.evaluation(request.name))
        except StoreError as error:
            return error  # nothing can be written down any more, which ends the selection
        except Exception as error:
            return begun.failed(_kind(error), describe(error))


def _kind(error: Exception) -> str:
    """Return the kind of failure. A failed connection may work the next time, so the candidate did not fail."""
    if isinstance(error, TimeoutError):
        return "timeout"
    return "machine" if isinstance(error, ConnectionError) else "error"
