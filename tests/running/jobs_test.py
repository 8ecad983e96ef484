"""What follows from the end of a job."""

from pathlib import Path
from typing import Any, Collection, List, Sequence

import pytest

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import FiestaError
from fiesta_allennlp.core.records import Evaluation, Failure, Outcome
from fiesta_allennlp.running import jobs
from fiesta_allennlp.running.jobs import Attempt, JobExecutor, JobStatus, Verdict, verdict_on
from tests.running.conftest import Build, given, only_failure
from tests.running.light import request

SCORE, ERROR = Evaluation(request(0), 0.5, "m"), Failure(request(0), "error", "no luck")
KILLED = Failure(request(0), "killed", "signal 9")


@pytest.mark.parametrize(
    ("state", "has_begun", "outcome", "verdict"),
    [
        ("", True, SCORE, "outcome"),
        ("PREEMPTED", True, ERROR, "outcome"),
        ("COMPLETED", True, KILLED, "outcome"),
        ("OUT_OF_MEMORY", True, KILLED, "machine"),
        ("FAILED", True, KILLED, "machine"),
        ("", True, KILLED, "machine"),
        ("CANCELLED", True, KILLED, "again"),
        ("CANCELLED", False, None, "again"),
        ("NODE_FAIL", True, None, "again"),
        ("", True, None, "again"),
        ("", False, None, "again"),
        ("TIMEOUT", True, None, "timeout"),
        ("TIMEOUT", True, KILLED, "timeout"),
        ("FAILED", False, None, "early"),
        ("COMPLETED", False, None, "early"),
        ("FAILED", True, None, "machine"),
        ("OUT_OF_MEMORY", True, None, "machine"),
    ],
)
def test_what_follows_from_the_end_of_a_job(
    state: str, has_begun: bool, outcome: "Outcome | None", verdict: Verdict
) -> None:
    assert verdict_on(state, has_begun, outcome) == verdict


@pytest.mark.skipif(not Path("/proc/self/cgroup").exists(), reason="no control groups")
def test_kills_for_lack_of_memory_are_those_that_the_control_group_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = tmp_path / "memory.events"
    monkeypatch.setattr(jobs, "OUT_OF_MEMORY_COUNTERS", dict.fromkeys(("", "memory"), str(counter)))
    assert jobs.num_out_of_memory_kills() == 0
    counter.write_text("low 0\noom 3\noom_kill 2\n")
    assert jobs.num_out_of_memory_kills() == 2


class Engine(JobExecutor):
    """An engine whose jobs have ended in these states when they are looked for, and leave nothing."""

    def __init__(self, *args: Any, states: Sequence[str], **common: Any) -> None:
        super().__init__(*args, **common)
        self.states = list(states)

    def send(self, attempt: Attempt) -> None:
        attempt.hand_to("1")

    def wait_for_run(self, timeout: "float | None") -> Attempt:
        return next(iter(self.active_runs))

    def final_status(self, attempt: Attempt) -> JobStatus:
        return JobStatus(self.states.pop(0), "node7", "no reason")

    def stop_jobs(self, attempts: Collection[Attempt]) -> None:
        """There is nothing to stop."""


@pytest.mark.parametrize(
    ("states", "message"),
    [
        (["TIMEOUT", "CANCELLED", "TIMEOUT"], "a-0 .* limit of 2 jobs.*--executor-option time=.*--time-limit"),
        (["FAILED", "TIMEOUT"] + ["FAILED"] * 3, "3 jobs .* on node7 .*FAILED: no reason.*=node7"),
    ],
)
def test_a_run_whose_jobs_end_too_often_ends_the_selection(
    build: Build, directory: RunDirectory, states: List[str], message: str
) -> None:
    directory.root.mkdir()
    executor = given(build(Engine, states=states), "score")
    with pytest.raises(FiestaError, match=message):
        list(executor.completed())
    assert executor.states == []


def test_a_run_that_is_lost_ten_times_fails(build: Build, directory: RunDirectory) -> None:
    directory.root.mkdir()
    failure = only_failure(given(build(Engine, states=["NODE_FAIL"] * 10), "score"))
    assert failure.kind == "killed" and "lost 10 times" in failure.error
