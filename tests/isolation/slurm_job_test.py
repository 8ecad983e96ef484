"""What a job knows of its memory. What it does is tested with a real Slurm in `tests/executors/slurm_test.py`."""

from pathlib import Path

import pytest

from fiesta_allennlp.isolation.slurm_job import _told_of_memory, num_killed_for_memory
from fiesta_allennlp.records import Evaluation, Failure
from tests.executors.light import request


@pytest.mark.parametrize(
    ("mine", "counter"),
    [
        ("0::/slurm/job_7/step_batch", "slurm/job_7/step_batch/memory.events"),
        ("5:cpuset:/x\n4:memory:/slurm/uid_0/job_7", "memory/slurm/uid_0/job_7/memory.oom_control"),
    ],
)
def test_kills_for_lack_of_memory_are_counted_in_both_versions_of_control_groups(
    tmp_path: Path, mine: str, counter: str
) -> None:
    found = [num_killed_for_memory(tmp_path, tmp_path / "cgroup")]
    (tmp_path / "cgroup").write_text(mine + "\n")
    found.append(num_killed_for_memory(tmp_path, tmp_path / "cgroup"))
    (tmp_path / counter).parent.mkdir(parents=True)
    (tmp_path / counter).write_text("low 0\nmax 12\noom 3\noom_kill 2\n")
    assert [*found, num_killed_for_memory(tmp_path, tmp_path / "cgroup")] == [0, 0, 2]


def test_only_a_process_that_was_killed_ran_out_of_memory() -> None:
    killed, raised = Failure(request(0), "killed", "killed by signal 9"), Failure(request(0), "error", "no such luck")
    told = _told_of_memory(killed, True)
    assert isinstance(told, Failure)
    assert (told.kind, told.error) == ("machine", "the job ran out of memory: killed by signal 9")
    assert _told_of_memory(killed, False) is killed
    assert _told_of_memory(raised, True) is raised
    assert isinstance(_told_of_memory(Evaluation(request(0), 1.0, "m"), True), Evaluation)
