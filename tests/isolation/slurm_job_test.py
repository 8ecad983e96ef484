"""What a job knows of its memory. What it does is tested with a real Slurm in `tests/executors/slurm_test.py`."""

from pathlib import Path

from fiesta_allennlp.isolation.slurm_job import num_killed_for_memory, with_memory
from fiesta_allennlp.records import Evaluation, Failure
from tests.executors.light import request


def test_kills_for_lack_of_memory_are_counted_in_both_versions_of_control_groups(tmp_path: Path) -> None:
    mine = tmp_path / "cgroup"
    assert num_killed_for_memory(tmp_path, mine) == 0
    for content, counter in (
        ("0::/slurm/job_7/step_batch", "slurm/job_7/step_batch/memory.events"),
        ("5:cpuset:/x\n4:memory:/slurm/uid_0/job_7", "memory/slurm/uid_0/job_7/memory.oom_control"),
    ):
        mine.write_text(content + "\n")
        assert num_killed_for_memory(tmp_path, mine) == 0
        (tmp_path / counter).parent.mkdir(parents=True)
        (tmp_path / counter).write_text("low 0\nmax 12\noom 3\noom_kill 2\n")
        assert num_killed_for_memory(tmp_path, mine) == 2


def test_only_a_process_that_was_killed_ran_out_of_memory() -> None:
    killed, raised = Failure(request(0), "killed", "killed by signal 9"), Failure(request(0), "error", "no such luck")
    told = with_memory(killed, True)
    assert isinstance(told, Failure)
    assert (told.kind, told.error) == ("machine", "the job ran out of memory: killed by signal 9")
    assert with_memory(killed, False) is killed
    assert with_memory(raised, True) is raised
    assert isinstance(with_memory(Evaluation(request(0), 1.0, "m"), True), Evaluation)
