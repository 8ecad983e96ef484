"""Against a real Slurm of one node on this machine, which `scripts/local_slurm.sh` starts."""

import os
import shlex
import signal
import sys
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest
from rich.console import Console

from fiesta_allennlp.candidates.training_selection import TrainingSelection
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, FiestaError, StoreError
from fiesta_allennlp.core.records import Failure, Outcome
from fiesta_allennlp.reports.progress import read_status
from fiesta_allennlp.running import slurm as slurm_module
from fiesta_allennlp.running.jobs import Attempt
from fiesta_allennlp.running.slurm import SlurmExecutor, SlurmUnavailable, query_jobs, run_slurm_command
from fiesta_allennlp.selecting.session import run_selection
from tests.conftest import until
from tests.run_files import num_finished, scores_of
from tests.running.conftest import LocalSlurm, begun, failure_of, given, only_failure, pids_in, scores, until_ended
from tests.running.light import PACKAGES, Light, is_running, request, start_selection, wanted_scores, write_programs

pytestmark = pytest.mark.slurm

Make = Callable[..., SlurmExecutor]


@pytest.fixture
def make(slurm: LocalSlurm, build: Any, directory: RunDirectory) -> Iterator[Make]:
    directory.root.mkdir(mode=0o700)
    yield partial(build, SlurmExecutor)
    run_slurm_command("scancel", "--me")


def attempt_of(executor: SlurmExecutor, run: str, *, has_begun: bool = False) -> Attempt:
    """The latest attempt at a run, once that has begun."""
    until(lambda: not has_begun or Attempt.find_all(executor.directory.jobs)[run][-1].has_begun)
    return Attempt.find_all(executor.directory.jobs)[run][-1]


def job_of(executor: SlurmExecutor, run: str = "a-0", *, has_begun: bool = True) -> str:
    return str(attempt_of(executor, run, has_begun=has_begun).job)


def pid_of(executor: SlurmExecutor, run: str) -> int:
    return pids_in(attempt_of(executor, run).run_directory / "pid")[0]


def lost_and_found(executor: SlurmExecutor, end: Callable[[str], Any]) -> None:
    """A run whose job is ended in some way starts again in another job, and has its score."""
    begun(executor, "wait")
    go = executor.directory.root.with_name("go")
    first, pid = job_of(executor), pid_of(executor, "a-0")
    end(first)
    until_ended([pid])
    until(lambda: list(executor.completed(timeout=0.5)) == [] and job_of(executor, has_begun=False) != first)
    go.touch()
    assert scores(executor.completed()) == [0]
    assert not list(executor.directory.jobs.iterdir())
    go.unlink()


def test_each_run_is_a_job_that_tells_what_came_of_it(make: Make, directory: RunDirectory) -> None:
    whats = ("score", "raise", "lack", "die", "hang", "device", "stay light", "leave a child")
    outcomes: Dict[int, Outcome] = {}
    for outcome in given(make(workers=4, time_limit=4), *whats).completed():
        outcomes[outcome.request.replicate] = outcome
        assert "the log of" in directory.evaluation_log(outcome.request.name).read_text()
    assert scores(outcomes.values()) == [0, 6, 7]
    failures = {k: (o.kind, o.error) for k, o in outcomes.items() if isinstance(o, Failure)}
    assert failures[1][0] == "error" and failures[1][1].startswith("ValueError: no such luck (")
    assert failures[2][0] == "machine" and failures[2][1].startswith("OSError: [Errno 24] ")
    assert failures[3][0] == "killed" and "killed by signal 9" in failures[3][1]  # the job itself completed
    assert failures[4][0] == "timeout" and "--time-limit 4" in failures[4][1]
    assert "float: ''" in failures[5][1]  # no GPU was asked for, so none is seen
    for run, number in (("a-4", 1), ("a-7", 2)):
        until_ended(pids_in(directory.evaluation(run) / "child", number))
    assert len({outcome.origin.job for outcome in outcomes.values()}) == len(whats)
    assert (directory.root / "failures" / "a-3.1.log").exists() and not list(directory.jobs.iterdir())
    assert directory.jobs.stat().st_mode & 0o077 == 0


def test_a_run_whose_job_is_taken_away_starts_again_with_the_same_seeds(make: Make) -> None:
    executor = make()
    lost_and_found(executor, lambda number: run_slurm_command("scancel", number))

    def preempt(number: str) -> None:
        """Requeued jobs would work in the folder of the first attempt: a preempted one is cancelled."""
        run_slurm_command("sbatch", "--partition=urgent", "--exclusive", "--output=/dev/null", "--wrap=sleep 1")
        until(lambda: query_jobs()[number].state == "PREEMPTED")
        with pytest.raises(SlurmUnavailable):
            run_slurm_command("scontrol", "requeue", number)

    lost_and_found(executor, preempt)


def test_a_node_that_goes_down_costs_nothing(make: Make, slurm: LocalSlurm, tmp_path: Path) -> None:
    (node,) = set(run_slurm_command("sinfo", "--noheader", "--format=%n").split())

    def fail(number: str) -> None:
        run_slurm_command("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
        until(lambda: query_jobs()[number].state == "NODE_FAIL")
        with suppress(SlurmUnavailable):  # it has come back by itself
            run_slurm_command("scontrol", "update", f"nodename={node}", "state=resume")

    executor = make()
    lost_and_found(executor, fail)
    begun(executor, "wait", first=1)
    attempt_of(executor, "a-1", has_begun=True)
    slurm.end("slurmd", signal.SIGKILL)
    slurm.start("slurmd")
    assert list(executor.completed(timeout=1)) == []
    (tmp_path / "go").touch()
    assert scores(executor.completed()) == [1]


def test_a_job_that_is_killed_or_out_of_memory_is_the_machines_failure(make: Make) -> None:
    """With `OverMemoryKill`, only the log of the job tells the cause."""
    failure = failure_of(make(options={"mem": "400"}), Light("take memory"))
    assert failure.kind == "machine" and "FAILED" in failure.error and "memory limit" in failure.error
    assert failure.origin.host and not failure.origin.is_only_machine
    executor = begun(make(), "wait")
    run_slurm_command("scancel", "--signal=KILL", "--batch", job_of(executor))
    assert only_failure(executor).kind == "machine"


def test_of_jobs_that_slurm_has_forgotten_the_accounting_tells_the_end(
    make: Make, slurm: LocalSlurm, tmp_path: Path
) -> None:
    """A job whose end is unknown was taken away; one that is known to have failed is a failure of its machine."""
    executor = begun(make(), "wait")
    number = job_of(executor)
    run_slurm_command("scancel", "--signal=KILL", "--batch", number)
    until(lambda: query_jobs()[number].state == "FAILED")
    slurm.end("slurmctld")
    slurm.start("slurmctld", "-c")
    assert number not in query_jobs()
    (tmp_path / "go").touch()
    (outcome,) = executor.completed()
    assert "FAILED" in outcome.error if slurm.has_accounting else outcome.score == 0


def test_jobs_that_die_before_their_run_began_count_against_nobody_and_end_the_selection(
    make: Make, directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    executor = begun(make(workers=1), "score", "score")
    with pytest.raises(FiestaError, match="3 jobs .* on .*/no/such/python.*environment.*exclude=.*--recover"):
        list(executor.completed())
    assert list((directory.jobs / "a-0").glob("*/log.txt"))


def test_a_job_whose_command_died_before_its_task_came_ends(slurm: LocalSlurm, tmp_path: Path) -> None:
    """It waits for a minute; here, for a second."""
    log = tmp_path / "log.txt"
    program = "import sys; from fiesta_allennlp.running import jobs as job; job.TASK_SECONDS = 1; sys.exit(job.main())"
    command = shlex.join([sys.executable, "-c", program, str(tmp_path)])
    number = run_slurm_command("sbatch", "--parsable", f"--output={log}", f"--wrap={command}").strip()
    until(lambda: query_jobs()[number].state == "FAILED")
    assert "before it gave" in log.read_text()


def test_a_slurm_that_is_gone_for_a_while_costs_nothing(
    make: Make, slurm: LocalSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slurm.conf").write_text((slurm.root / "slurm.conf").read_text() + "MessageTimeout=2\n")
    executor = begun(make(workers=2), "wait")
    attempt_of(executor, "a-0", has_begun=True)
    slurm.end("slurmctld")
    with monkeypatch.context() as patch:
        patch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))  # the commands of Slurm try for 2 seconds, not for 10
        assert list(given(executor, "wait", first=1).completed(timeout=0)) == []
    assert attempt_of(executor, "a-1").job is None
    slurm.start("slurmctld")
    (tmp_path / "go").touch()
    assert scores(executor.completed()) == [0, 1]


def test_a_command_that_comes_back_finds_its_jobs_and_cancels_those_that_nobody_asks_for(
    make: Make, directory: RunDirectory, tmp_path: Path
) -> None:
    """The first command is lost without a word. Of its runs one has ended, and two are at work."""
    lost = begun(SlurmExecutor(directory, packages=PACKAGES, workers=3), "score", "wait", "wait")
    until(lambda: attempt_of(lost, "a-0").read_outcome() is not None)
    number, unwanted = job_of(lost, "a-1"), pid_of(lost, "a-2")
    executor = make(workers=3)
    executor.abandon([request(2)])
    until_ended([unwanted])
    executor.submit(Light("score", str(tmp_path)), request(0))
    begun_later = given(executor, "wait", first=1)
    assert scores([next(begun_later.completed())]) == [0]
    (tmp_path / "go").touch()
    (outcome,) = executor.completed()
    assert scores([outcome]) == [1] and outcome.origin.job == number
    assert not list(directory.jobs.iterdir())


def test_a_job_of_another_task_is_not_taken_over(make: Make, directory: RunDirectory) -> None:
    """As after another seed, or a changed candidate."""
    pid = pid_of(begun(SlurmExecutor(directory, packages=PACKAGES), "wait"), "a-0")
    assert scores(given(make(), "score").completed()) == [0]
    assert not is_running(pid)


def test_runs_that_wait_for_their_jobs_are_shown_with_the_reason(slurm: LocalSlurm, tmp_path: Path) -> None:
    root = tmp_path / "run"
    words = ("--executor", "slurm", "--workers", "2", "--executor-option", "begin=now+1hour")
    command = start_selection(root, write_programs(tmp_path), *words)
    until(lambda: {run["reason"] for run in pending_runs(root)} == {"BeginTime"})
    assert "Queued: one-0, two-0 (Slurm: BeginTime)." in read_status(root).sentences
    numbers = [run["job"] for run in pending_runs(root)]
    command.send_signal(signal.SIGTERM)  # a shell's background ignores interrupts, and tests may run there
    assert command.wait() == 130
    until(lambda: [query_jobs()[number].state for number in numbers] == ["CANCELLED"] * 2)


def pending_runs(root: Path) -> List[Dict[str, str]]:
    with suppress(StoreError):  # the selection has not begun yet
        return [asdict(run) for run in read_status(root).data["pending"]]
    return []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"options": {"partition": "nope"}}, "--partition=nope: .*invalid partition"),
        ({"options": {"colour": "blue"}}, "unrecognized option '--colour=blue'"),
        ({"options": {"output": "/tmp/log"}}, "--executor-option output: the selection gives"),
        ({"options": {"cpus-per-task": "many"}}, "many"),
        ({"workers": "auto"}, "--workers auto"),
    ],
)
def test_options_that_slurm_would_not_take_are_refused_in_its_own_words(
    slurm: LocalSlurm, directory: RunDirectory, options: Dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        SlurmExecutor(directory, **options)
    assert not directory.root.exists()


def test_gpus_are_hidden_unless_some_are_asked_for(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_module, "_check_options", lambda *_: None)
    executors = [make(options=told) for told in ({"cpus-per-task": "3"}, {"gres": "gpu:a100:1"})]
    assert [(executor.hides_gpus, executor.num_threads) for executor in executors] == [(True, 3), (False, 1)]


# The whole command.


def test_a_selection_survives_its_command_in_a_job_of_its_own(slurm: LocalSlurm, tmp_path: Path) -> None:
    """The command is killed, then recovered with the jobs that go on: the scores are those of an undisturbed
    selection on this machine, and nothing was started twice."""
    run, candidates = tmp_path / "run", write_programs(tmp_path)
    in_job = ("srun", "--cpus-per-task=6", "sh", "-c", f'echo $$ > {tmp_path}/pid; exec "$@"', "sh")
    command = start_selection(run, candidates, "--executor", "slurm", "--workers", "2", within=in_job)
    until(lambda: num_finished(run) >= 2 or command.poll() is not None)
    os.kill(pids_in(tmp_path / "pid")[0], signal.SIGKILL)
    assert command.wait() == 128 + signal.SIGKILL
    result = run_selection(TrainingSelection, {}, run, console=Console(quiet=True), recover=True)
    assert (result.num_evaluations, result.num_failures) == (6, 0)
    assert scores_of(run) == wanted_scores()


def test_force_cancels_the_jobs_of_the_selection_that_it_deletes(slurm: LocalSlurm, tmp_path: Path) -> None:
    run, candidates = tmp_path / "run", write_programs(tmp_path)
    command = start_selection(run, candidates, "--executor", "slurm", "--executor-option", "hold")
    jobs = RunDirectory(run).jobs
    until(lambda: any(attempt.job for attempts in Attempt.find_all(jobs).values() for attempt in attempts))
    ((attempt,),) = Attempt.find_all(jobs).values()
    number = str(attempt.job)
    assert query_jobs()[number].state == "PENDING"
    command.kill()
    command.wait()
    assert start_selection(run, candidates, "--force").wait() == 0
    assert query_jobs()[number].state == "CANCELLED"
    assert scores_of(run) == wanted_scores() and not jobs.exists()
