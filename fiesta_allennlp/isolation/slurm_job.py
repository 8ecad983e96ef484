"""The job that works through the queue of a selection in Slurm."""

import os
import signal
from typing import Any

from fiesta_allennlp.isolation.fork_server import stop_all
from fiesta_allennlp.isolation.queue_worker import QueueWork, work_through


def run_job(work: QueueWork) -> int:
    """Make runs until there is a reason to end, and return how many this job took."""
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # submitit's sign that the job's time is almost over
    signal.signal(signal.SIGTERM, _end)
    array = os.environ.get("SLURM_ARRAY_JOB_ID")
    job = f"{array}_{os.environ['SLURM_ARRAY_TASK_ID']}" if array else os.environ["SLURM_JOB_ID"]
    return work_through(work, job, int(os.environ.get("SLURM_RESTART_COUNT", "0")))


def _end(signum: int, frame: Any) -> None:
    """End the job. The process that makes a run has got the signal too, and nothing is recorded for that run."""
    stop_all([])
    os._exit(128 + signum)
