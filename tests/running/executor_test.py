"""An executor whose runs are made by threads of one process, as for an engine that hands out calls."""

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Collection, Optional

from fiesta_allennlp.core.records import Outcome, Request
from fiesta_allennlp.running.executor import ActiveRun, Evaluator, QueueingExecutor
from fiesta_allennlp.running.fork_server import start_fork_server
from fiesta_allennlp.running.processes import make_run
from tests.conftest import until
from tests.running.conftest import Build, given, scores
from tests.running.light import is_running, started


class ThreadedRuns(QueueingExecutor):
    def __init__(self, *args: Any, **common: Any) -> None:
        super().__init__(*args, **common)
        self.slots = int(self.workers)
        self._pool = ThreadPoolExecutor(self.slots)
        self._context = start_fork_server(self.num_threads, self.packages)

    def start_run(self, evaluator: Evaluator, request: Request) -> "Future[Outcome]":
        directory = self.directory.evaluation(request.name)
        directory.mkdir(parents=True)
        return self._pool.submit(make_run, self.task_for(evaluator, request, directory), self._context)

    def wait_for_run(self, timeout: Optional[float]) -> "Optional[Future[Outcome]]":
        return next(iter(wait(self.active_runs, timeout, FIRST_COMPLETED).done), None)

    def read_outcome(self, handle: "Future[Outcome]", run: ActiveRun) -> Outcome:
        return handle.result()

    def stop_runs(self, handles: Collection[Any]) -> None:
        """Leave them to their end."""


def test_a_run_that_ends_leaves_the_others_alone(build: Build, tmp_path: Path) -> None:
    executor = given(build(ThreadedRuns, workers=3), "wait", "wait", "die", "score", place=tmp_path)
    ended = [next(executor.completed()) for _ in range(2)]
    assert {outcome.request.replicate for outcome in ended} == {2, 3} and scores(ended) == [3]
    until(lambda: len(started(tmp_path)) == 2)
    assert all(map(is_running, started(tmp_path)))
    (tmp_path / "go").touch()
    assert scores(executor.completed()) == [0, 1]
