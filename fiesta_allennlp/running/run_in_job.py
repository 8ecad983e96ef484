"""Makes one run in a job of a cluster. As a program, it is a job of Slurm:

    python -m fiesta_allennlp.running.run_in_job ATTEMPT

Neither AllenNLP nor torch is imported here: the server of processes loads what the run needs. No class is registered
here, because each fresh process imports this file once more.
"""

import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Optional

from fiesta_allennlp.core.records import Failure
from fiesta_allennlp.running.isolation.attempts import Attempt
from fiesta_allennlp.running.isolation.fork_server import end_all_workers, make_run, start_fork_server, unset_safe_path
from fiesta_allennlp.running.isolation.machine import DEVICES_VARIABLE
from fiesta_allennlp.running.isolation.process_tree import SESSION, WORKER

TASK_SECONDS = 60.0  # within which a job gets its task, unless its command died between the two
POLL_SECONDS = 0.2
SIGNAL_DELAY_SECONDS = 2.0  # an engine ends all processes of a job: the run's may be gone before this one gets a signal


def run_in_job(attempt: Attempt, job: str) -> None:
    """Make the run of an attempt in this job, and leave its outcome. The run works in a fresh process, which ends with
    all that it has started. Of a process that was killed, the counter of the job's control group tells whether memory
    was the cause."""
    task = attempt.read_task(job)
    for name in (SESSION, WORKER):  # of the command, whose environment the engine passes on
        os.environ.pop(name, None)
    device = os.environ.get(DEVICES_VARIABLE) if task.settings.device is None else task.settings.device
    task = replace(task, settings=replace(task.settings, device=device))
    num_kills_before = num_out_of_memory_kills()
    outcome = make_run(task, start_fork_server(task.settings.num_threads, task.settings.packages))
    if isinstance(outcome, Failure) and outcome.kind == "killed":
        time.sleep(SIGNAL_DELAY_SECONDS)
        if num_out_of_memory_kills() > num_kills_before:
            outcome = replace(outcome, kind="machine", error=f"the job ran out of memory: {outcome.error}")
    attempt.write_outcome(outcome)


def num_out_of_memory_kills(
    cgroups: Path = Path("/sys/fs/cgroup"), own_cgroup: Path = Path("/proc/self/cgroup")
) -> int:
    """Return how many processes of this job the kernel has killed for lack of memory; 0 if nobody counts.

    In version 2 of control groups all controllers have one place; in version 1 memory has its own.
    """
    try:
        lines = [line.split(":", 2) for line in own_cgroup.read_text().splitlines()]
        for _, controllers, path in lines:
            cgroup = cgroups / path.lstrip("/")
            counter = cgroup / "memory.events"
            if controllers == "memory":
                counter = cgroups / "memory" / path.lstrip("/") / "memory.oom_control"
            if controllers in ("", "memory") and counter.exists():
                counts = dict(line.split() for line in counter.read_text().splitlines())
                return int(counts.get("oom_kill", 0))
    except (OSError, ValueError):
        pass
    return 0


def main() -> Optional[str]:
    """Wait for the task of this job of Slurm, and make its run. Return an error."""
    signal.signal(signal.SIGTERM, _end_job)
    unset_safe_path()
    attempt, job = Attempt(Path(sys.argv[1])), os.environ["SLURM_JOB_ID"]
    deadline = time.monotonic() + TASK_SECONDS
    while not attempt.has_task(job):
        if time.monotonic() > deadline:
            return "error: the command ended before it gave this job its run"
        time.sleep(POLL_SECONDS)
        attempt.refresh()
    run_in_job(attempt, job)
    return None


def _end_job(signum: int, frame: Any) -> None:
    """End the job at once with what it has started. Nothing is recorded for the run."""
    end_all_workers()
    os._exit(128 + signum)


if __name__ == "__main__":
    sys.exit(main())
