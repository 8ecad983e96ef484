"""An executor of your own: it makes all runs in this process, one after the other.

python examples/own_classes/executor.py
"""

import tempfile
from pathlib import Path
from typing import Any, Iterator, List, Optional, Sequence, Tuple

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import describe
from fiesta_allennlp.core.records import Evaluation, Failure, Outcome, Request
from fiesta_allennlp.running.executor import Evaluator, Executor


@Executor.register("here")
class HereExecutor(Executor):
    """Makes the runs in this process, one at a time."""

    def __init__(self, directory: RunDirectory, **options: Any) -> None:
        self._directory = directory
        self._queue: List[Tuple[Evaluator, Request]] = []

    def submit(self, evaluator: Evaluator, request: Request) -> None:
        self._queue.append((evaluator, request))

    def completed(self, *, timeout: Optional[float] = None) -> Iterator[Outcome]:
        while self._queue:
            evaluator, request = self._queue.pop(0)
            try:
                yield evaluator.evaluate(request, self._directory.evaluation(request.name))
            except Exception as error:
                yield Failure(request, kind="error", error=describe(error))

    def abandon(self, requests: Sequence[Request]) -> None:
        self._queue = [waiting for waiting in self._queue if waiting[1] not in requests]

    def close(self) -> None:
        self._queue.clear()


class Half(Evaluator):
    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        return Evaluation(request, score=1 / request.replicate, metric="share")


executor = HereExecutor(RunDirectory(Path(tempfile.mkdtemp())))
for replicate in (2, 0):
    executor.submit(Half(), Request("half", replicate, 1, 2, 3, 4))
print([getattr(outcome, "score", None) for outcome in executor.completed()])  # [0.5, None]: 1 / 0 is a failure
executor.close()
