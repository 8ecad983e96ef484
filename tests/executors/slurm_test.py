"""Against a real Slurm of one node on this machine, which `scripts/local_slurm.sh` starts."""

import signal
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest
from rich.console import Console

from fiesta_allennlp.core.blame import MachineFacts
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, FiestaError
from fiesta_allennlp.core.origin import Machine
from fiesta_allennlp.core.records import Evaluation, Failure, Outcome
from fiesta_allennlp.executors import slurm as slurm_module
from fiesta_allennlp.executors import slurm_commands
from fiesta_allennlp.executors.shared_queue import end_earlier_queues
from fiesta_allennlp.executors.slurm import SlurmExecutor, SlurmJobs
from fiesta_allennlp.executors.slurm_commands import (
    JobStatus,
    SlurmUnavailable,
    query_statuses,
    run_slurm_command,
    sbatch_options,
)
from fiesta_allennlp.isolation.run_queue import RunQueue
from fiesta_allennlp.reports.status import read_status
from fiesta_allennlp.trainings.select import select
from tests.conftest import LocalSlurm, until
from tests.executors.conftest import Build, begun, failure_of, given, only_failure, pids_in, scores, until_ended
from tests.executors.killed_confirmation import check_confirmation_survives_its_command
from tests.executors.light import PACKAGES, Light, is_running, request, start_selection, wanted_scores, write_programs
from tests.run_files import num_finished, scores_of

pytestmark = [pytest.mark.slurm, pytest.mark.xdist_group("slurm")]

HELD = {"slurm": ("hold",)}
"""A job that waits until it is released: it costs nothing."""


Make = Callable[..., SlurmExecutor]


@pytest.fixture
def make(slurm: LocalSlurm, build: Build, directory: RunDirectory) -> Iterator[Make]:
    yield partial(build, SlurmExecutor)
    end_earlier_queues(directory)


def started(place: Path) -> Dict[str, Tuple[int, str]]:
    """The process and the job of each run that waits, the last one of each."""
    names = sorted((path for path in place.glob("a-*")), key=lambda path: path.stat().st_mtime_ns)
    split = [path.name.split(".") for path in names]
    return {run: (int(pid), job) for run, pid, job in split}


def jobs_of(directory: RunDirectory) -> Dict[str, JobStatus]:
    (queue,) = RunQueue.open_queues(directory.slurm)
    return query_statuses(queue.root.name)


# What jobs do.


def test_a_job_makes_one_run_after_the_other_and_tells_what_came_of_each(make: Make, directory: RunDirectory) -> None:
    whats = ("score", "raise", "lack", "die", "hang", "device", "stay light")
    executor = given(make(runs_per_job=20, time_limit=4), *whats)
    outcomes: Dict[int, Outcome] = {}
    for outcome in executor.completed():
        outcomes[outcome.request.replicate] = outcome
        assert "this is the log of" in directory.evaluation_log(outcome.request.name).read_text()
        assert outcome.request.name not in [claim.run for claim in executor.queue.done_claims().values()]
    assert scores(outcomes.values()) == [0, 6]
    failures = {k: (o.kind, o.error) for k, o in outcomes.items() if isinstance(o, Failure)}
    assert failures[1][0] == "error" and failures[1][1].startswith("ValueError: no such luck (")
    assert failures[2][0] == "machine" and failures[2][1].startswith("OSError: [Errno 24] Too many open files (")
    assert failures[3][0] == "killed" and "killed by signal 9" in failures[3][1]
    assert failures[4][0] == "timeout" and "--time-limit 4" in failures[4][1]
    assert "could not convert string to float: ''" in failures[5][1]  # no GPU was asked for, so none is seen
    until_ended(pids_in(directory.evaluation("a-4") / "child"))
    ((job, status),) = jobs_of(directory).items()
    assert status.state == "RUNNING" and {outcome.origin.job for outcome in outcomes.values()} == {job}
    assert (directory.root / "failures" / "a-3.1.log").exists()
    executor.close()
    assert executor.last_words == ""  # nothing was at work any more
    assert not list(directory.slurm.glob("*"))


def test_a_lost_node_daemon_costs_nothing_and_a_lost_job_starts_its_run_again(
    make: Make, slurm: LocalSlurm, directory: RunDirectory, tmp_path: Path
) -> None:
    executor = begun(make(workers=3), "wait", "wait", "wait when done", place=tmp_path)
    until(lambda: len(started(tmp_path)) == 3)
    first = started(tmp_path)
    slurm.restart_node()
    assert list(executor.completed(timeout=1)) == []
    assert started(tmp_path) == first
    run_slurm_command("scancel", first["a-0"][1])
    run_slurm_command("scancel", first["a-2"][1])
    run_slurm_command(
        "scancel", "--signal=KILL", "--batch", first["a-1"][1]
    )  # the job fails, as where something kills its script
    outcomes = [next(executor.completed()) for _ in range(2)]
    by_run = {outcome.request.name: outcome for outcome in outcomes}
    killed, salvaged = by_run["a-1"], by_run["a-2"]
    assert isinstance(killed, Failure) and killed.kind == "killed"
    assert f"Slurm job {first['a-1'][1]} ended with state FAILED" in killed.error
    assert isinstance(salvaged, Evaluation) and salvaged.score == 7  # it had finished
    until_ended(pid for pid, _ in first.values())
    assert list(executor.completed(timeout=1)) == []
    until(lambda: started(tmp_path)["a-0"] != first["a-0"])
    (tmp_path / "go").touch()
    assert scores(executor.completed()) == [0]


def test_a_preempted_job_is_requeued_and_has_lost_its_run(make: Make, directory: RunDirectory, tmp_path: Path) -> None:
    executor = begun(make(runs_per_job=2), "wait", place=tmp_path)
    until(lambda: bool(started(tmp_path)))
    (pid, job) = started(tmp_path)["a-0"]
    run_slurm_command("sbatch", "--partition=urgent", "--exclusive", "--output=/dev/null", "--wrap=sleep 1")
    until(lambda: not is_running(pid))
    assert list(executor.completed(timeout=1)) == []
    until(lambda: jobs_of(directory)[job].state == "PENDING")
    run_slurm_command("scontrol", "update", f"jobid={job}", "StartTime=now")
    until(lambda: started(tmp_path)["a-0"][0] != pid)
    assert started(tmp_path)["a-0"][1] == job  # which took it in its second life
    (tmp_path / "go").touch()
    assert scores(executor.completed()) == [0]


def test_without_a_node_that_works_the_selection_ends_and_blames_no_candidate(
    make: Make, directory: RunDirectory
) -> None:
    """Where a run has failed on the only node, its job gets the node all the same."""
    (node,) = set(run_slurm_command("sinfo", "--noheader", "--format=%n").split())
    executor = make()
    executor.use_machines(MachineFacts(failed_on={("a", 0): frozenset([Machine(node)])}))
    given(executor, "score")

    def is_job_running() -> bool:
        assert list(executor.completed(timeout=0.5)) == []
        return "RUNNING" in {status.state for status in jobs_of(directory).values()}

    until(is_job_running)
    executor.close()
    executor = make()
    executor.use_machines(MachineFacts(broken={Machine(node): "no such library"}))
    with pytest.raises(FiestaError, match=r"no machine is left: .* no such library\. .*--recover"):
        list(given(executor, "score", first=1).completed())


def test_a_job_that_is_preempted_while_it_is_cancelled_does_not_come_back(slurm: LocalSlurm, tmp_path: Path) -> None:
    log, script = f"--output={tmp_path / 'log'}", "trap '' TERM; echo begun; while :; do sleep 0.1; done"
    run_slurm_command("sbatch", "--job-name=fiesta-preempted", "--requeue", log, f"--wrap={script}")
    until(lambda: (tmp_path / "log").exists() and "begun" in (tmp_path / "log").read_text())
    run_slurm_command("sbatch", "--partition=urgent", "--exclusive", "--output=/dev/null", "--wrap=sleep 1")
    until(lambda: [s.state for s in query_statuses("fiesta-preempted").values()] == [slurm_commands.ENDING_STATE])
    assert slurm_commands.cancel_jobs("fiesta-preempted") == ""
    assert not any(status.is_active for status in query_statuses("fiesta-preempted").values())


def test_memory_that_ran_out_is_told_apart_from_a_kill(make: Make) -> None:
    failure = failure_of(make(memory_per_evaluation=0.4), Light("take memory"))
    assert failure.kind == "machine" and "because it ran out of memory: " in failure.error


def test_a_job_goes_on_to_the_next_run_when_one_is_not_wanted(
    make: Make, directory: RunDirectory, tmp_path: Path
) -> None:
    executor = begun(make(runs_per_job=5), "wait", "score", "score", place=tmp_path)
    until(lambda: bool(started(tmp_path)))
    executor.abandon([request(0), request(1), request(9)])
    until(lambda: not is_running(started(tmp_path)["a-0"][0]))
    assert scores(executor.completed()) == [2]
    assert len(jobs_of(directory)) == 1


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("PREEMPTED", None),
        ("TIMEOUT", None),
        ("", None),
        ("OUT_OF_MEMORY", "machine"),
        ("FAILED", "killed"),
    ],
)
def test_what_becomes_of_a_run_depends_on_how_its_job_ended(
    make: Make, monkeypatch: pytest.MonkeyPatch, state: str, kind: "str | None"
) -> None:
    """This test takes the run as a job does, and Slurm says what the case is about."""
    executor = given(make(**HELD), "score")
    shared = executor.queue
    assert shared.take("77", 0, 0) is not None
    monkeypatch.setattr(slurm_module, "query_statuses", lambda name: {"77": JobStatus(state)} if state else {})
    outcomes = list(executor.completed(timeout=0))
    assert [outcome.kind for outcome in outcomes if isinstance(outcome, Failure)] == ([kind] if kind else [])
    assert [ticket.rpartition(".")[0] for ticket in shared.waiting_tickets()] == ([] if kind else ["a-0"])
    if kind:  # whoever tries again makes a fresh attempt, of which nothing is known yet
        begun(executor, "score")
        assert len(shared.waiting_tickets()) == 1


def test_a_run_that_is_lost_time_and_again_fails_in_the_end(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = given(make(**HELD), "score")
    monkeypatch.setattr(slurm_module, "QUERY_INTERVAL_SECONDS", 0.0)
    monkeypatch.setattr(slurm_module, "query_statuses", lambda name: {"77": JobStatus("PREEMPTED")})
    monkeypatch.setattr(SlurmJobs, "submit_missing", lambda self, **_: executor.queue.take("77", 0, 1))
    failure = only_failure(executor)
    assert (failure.kind, "lost 10 times" in failure.error) == ("killed", True)
    monkeypatch.setattr(slurm_module, "query_statuses", lambda name: {"77": JobStatus("TIMEOUT")})
    monkeypatch.setattr(SlurmJobs, "submit_missing", lambda self, **_: executor.queue.take("77", 0, 0))
    given(executor, "score", first=1)
    with pytest.raises(FiestaError, match="a-1 .* 2 Slurm jobs.*--job-time"):
        list(executor.completed())


def test_a_lost_run_that_nobody_wants_any_more_hides_no_other(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = make(workers=2, **HELD)
    monkeypatch.setattr(slurm_module, "QUERY_INTERVAL_SECONDS", 0.0)
    monkeypatch.setattr(slurm_module, "query_statuses", lambda name: {"77": JobStatus("FAILED")})
    given(executor, "score", "score")
    assert executor.queue.take("77", 0, 1) and executor.queue.take("77", 0, 1)
    first = next(executor.completed(timeout=5))
    executor.abandon([request(1 - first.request.replicate)])
    given(executor, "score", first=2)
    assert executor.queue.take("77", 0, 1) is not None
    assert [outcome.request.replicate for outcome in executor.completed(timeout=5)] == [2]


def test_what_a_job_takes_while_slurm_is_asked_is_not_lost(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = given(make(**HELD), "score")
    shared = executor.queue
    pending = {"77": JobStatus("PENDING")}  # as it was a moment ago
    monkeypatch.setattr(slurm_module, "query_statuses", lambda name: shared.take("77", 0, 0) and pending)
    assert list(executor.completed(timeout=0)) == []
    assert ([claim.run for claim in shared.taken_claims().values()], shared.waiting_tickets()) == (["a-0"], [])


# How many jobs there are, and which.


def test_no_more_jobs_than_workers_and_as_arrays_if_asked_for(make: Make, directory: RunDirectory) -> None:
    executor = begun(make(workers=3, array_size=2, **HELD), *["score"] * 5)
    # an array of two, and a job of its own
    assert sorted(job.partition("_")[2] for job in jobs_of(directory)) == ["", "0", "1"]
    executor.close()
    assert executor.last_words == "Cancelled 3 Slurm job(s): 3 pending."


def test_a_command_that_comes_back_finds_its_jobs_and_its_outcomes(
    make: Make, directory: RunDirectory, tmp_path: Path
) -> None:
    """The first command is lost without a word. Of its runs one has ended, one is at work, and one waits with its job;
    what the second one does not ask for is dropped."""
    lost = begun(SlurmExecutor(directory, packages=PACKAGES, workers=3), "score", "wait", "wait", place=tmp_path)
    until(lambda: len(started(tmp_path)) == 2 and "a-0" in {claim.run for claim in lost.queue.done_claims().values()})
    before = sorted(jobs_of(directory)), started(tmp_path)
    found = make(workers=3)
    assert found.resume() == ""
    assert (directory.evaluation("a-0") / "pid").exists()  # from where the selection takes it over
    begun(found, "wait", place=tmp_path, first=1)
    until(lambda: not is_running(before[1]["a-2"][0]))
    (tmp_path / "go").touch()
    assert scores(found.completed()) == [1]
    assert (sorted(jobs_of(directory)), started(tmp_path)) == before


def test_a_job_of_a_lost_command_is_found_and_one_with_other_options_is_replaced(
    make: Make, directory: RunDirectory
) -> None:
    """The command was killed between `sbatch` and its answer."""
    lost = given(SlurmExecutor(directory, packages=PACKAGES, **HELD), "score")
    name = lost.queue.root.name
    run_slurm_command("sbatch", f"--job-name={name}", "--hold", "--output=/dev/null", "--wrap=true")
    (job,) = jobs_of(directory)
    for options, jobs in ((HELD, [job]), ({"memory_per_evaluation": 0.1, **HELD}, None)):
        executor = make(**options)
        end_earlier_queues(directory, kept_queue=executor.queue_name)
        begun(executor, "score")
        assert jobs is None or list(jobs_of(directory)) == jobs
    assert [status.state for status in query_statuses(name).values()] == ["CANCELLED"]
    assert [status.state for status in jobs_of(directory).values()] == ["PENDING"]


def test_who_goes_on_without_slurm_ends_its_jobs_and_keeps_what_has_ended(make: Make, directory: RunDirectory) -> None:
    shared = begun(SlurmExecutor(directory, packages=PACKAGES, workers=2, **HELD), "score", "score").queue
    claim = shared.take("77", 0, 0)
    assert claim is not None
    (shared.attempt_directory(claim.ticket) / "outcome.json").write_text("3.0")
    shared.finish(claim, Evaluation(request(0), 3.0, "m"))
    assert end_earlier_queues(directory) == "Cancelled 2 Slurm job(s): 2 pending."
    assert end_earlier_queues(directory) == ""
    assert (directory.evaluation("a-0") / "outcome.json").read_text() == "3.0"


def test_jobs_that_fail_before_they_take_a_run_end_the_selection(
    make: Make, directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    executor = begun(make(workers=3), *["score"] * 3)
    # All have failed before Slurm is asked about them: for one that was seen to fail, another would be submitted.
    until(lambda: len(jobs_of(directory)) == 3 and not any(job.is_active for job in jobs_of(directory).values()))
    with pytest.raises(FiestaError, match="3 Slurm jobs .*/no/such/python"):
        list(executor.completed())


def test_a_slurm_that_gives_no_answer_is_asked_again(
    make: Make, directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: str) -> str:
        raise SlurmUnavailable("Unable to contact slurm controller")

    executor = given(make(**HELD), "score")
    with monkeypatch.context() as patch:
        patch.setattr(slurm_commands, "run_slurm_command", down)
        assert list(executor.completed(timeout=0)) == []
    assert jobs_of(directory) == {}
    assert list(executor.completed(timeout=1)) == []
    assert len(jobs_of(directory)) == 1


def test_a_job_that_waits_says_for_what(slurm: LocalSlurm, tmp_path: Path) -> None:
    root = tmp_path / "run"
    words = ("--executor", "slurm", "--workers", "2", "--slurm", "begin=now+1hour")
    command = start_selection(root, write_programs(tmp_path), *words)

    until(lambda: any(len(queue.waiting_runs()) == 2 for queue in RunQueue.open_queues(root / "slurm")))
    until(lambda: {run["reason"] for run in pending_runs(root)} == {"BeginTime"})
    assert "Queued: one-0, two-0 (Slurm: BeginTime)." in read_status(root).sentences
    command.send_signal(signal.SIGTERM)
    assert command.wait() == 130
    assert [(run["state"], run["reason"]) for run in pending_runs(root)] == [("interrupted", "")] * 2


def pending_runs(root: Path) -> List[Dict[str, str]]:
    return [asdict(run) for run in read_status(root).data["pending"]]


# Options.


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"partition": "nope"}, "--partition=nope .*invalid partition"),
        ({"slurm": ["output=/tmp/log"]}, 'but got "output"'),
        ({"workers": "auto"}, "--workers auto"),
        ({"gpus_per_evaluation": 0.25}, "--gpus-per-evaluation must be"),
        ({"cpus_per_evaluation": 0.5}, "--cpus-per-evaluation must be"),
        ({"memory_per_evaluation": 0.0}, "--memory-per-evaluation must be"),
        ({"array_size": 0}, "--array-size must be"),
    ],
)
def test_what_slurm_would_not_take_is_refused_before_the_first_run(
    slurm: LocalSlurm, directory: RunDirectory, options: Dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        SlurmExecutor(directory, **options)
    assert not directory.root.exists()


def test_options_of_sbatch(slurm: LocalSlurm, directory: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """GPUs are hidden unless some are asked for."""
    set_before = {"partition": "gpu", "account": None, "time": "4:00:00"}
    options = sbatch_options(set_before, cpus=2, gpus=1, memory=0.5, extra_options=["qos=long", "exclusive", "time=5"])
    expected = {"partition": "gpu", "time": "5", "cpus-per-task": 2, "gpus": 1, "mem": "512M", "qos": "long"}
    assert options == {**expected, "exclusive": True}
    options = sbatch_options({}, cpus=1, gpus=0, memory=None, extra_options={"mail_type": "END,FAIL"})
    assert options == {"cpus-per-task": 1, "mail-type": "END,FAIL"}
    with monkeypatch.context() as unchecked:
        unchecked.setattr("fiesta_allennlp.executors.slurm.check_sbatch_options", lambda options: None)
        found = [SlurmExecutor(directory, slurm=told).hides_gpus for told in ((), ("gres=gpu:a100:1",))]
        assert found == [True, False]
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ConfigError, match="sbatch"):
        SlurmExecutor(directory)


# The whole command.


def test_a_selection_survives_its_command(slurm: LocalSlurm, tmp_path: Path) -> None:
    """The command is killed, then the selection is recovered with the job that goes on: the scores are those of an
    uninterrupted selection on this machine, and nothing was started twice."""
    quiet, run, candidates = Console(quiet=True), tmp_path / "run", write_programs(tmp_path)
    command = start_selection(run, candidates, "--executor", "slurm", "--runs-per-job", "20", "--slurm", "nice=1")
    until(lambda: num_finished(run) >= 2 or command.poll() is not None)
    command.kill()
    assert command.wait() == -signal.SIGKILL
    (job,) = jobs_of(RunDirectory(run))
    result = select({}, run, console=quiet, recover=True)
    assert (result.num_evaluations, result.num_failures) == (8, 0)
    log = (run / "selection.log").read_text()
    assert log.count("submit Slurm job(s)") == 1 and f"submit Slurm job(s) {job}\n" in log
    assert scores_of(run) == wanted_scores()
    check_confirmation_survives_its_command(run)
