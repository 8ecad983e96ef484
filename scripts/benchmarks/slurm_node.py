"""A Slurm of one node on this machine whose jobs and daemon can be killed. A part of `random_kills.py`."""

import os
import random
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Iterator, List

import psutil

SCRIPT = Path(__file__).resolve().parents[1] / "local_slurm.sh"


class Cancelled:
    """A job to be ended by `scancel`, as an administrator does."""

    def __init__(self, job: str) -> None:
        self._job = job

    def kill(self) -> None:
        subprocess.run(["scancel", self._job], check=True)


class SlurmNode:
    """The daemons of a Slurm, by the directory of their files."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def options(self) -> List[str]:
        """None: the commands of Slurm find it by the environment."""
        return []

    def processes(self) -> List[psutil.Process]:
        """All that runs in jobs."""
        job_processes = []
        for process in psutil.process_iter():
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                environment = process.environ()
                if environment.get("SLURM_CONF") == os.environ["SLURM_CONF"] and "SLURM_JOB_ID" in environment:
                    job_processes.append(process)
        return job_processes

    def working(self) -> List[Any]:
        """What waits for a training: each job's own process, and the job itself."""
        own = [process for process in self.processes() if "fiesta_allennlp.isolation.queue_worker" in process.cmdline()]
        jobs = {process.environ()["SLURM_JOB_ID"] for process in own}
        return [*own, *map(Cancelled, sorted(jobs))]

    def kill_one(self) -> None:
        """Kill the daemon of the node, and start it again a moment later."""
        pid = int((self._root / "slurmd.pid").read_text())
        os.kill(pid, signal.SIGKILL)
        time.sleep(random.uniform(0, 2))
        path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
        subprocess.run(["slurmd"], check=True, env={**os.environ, "PATH": path})


@contextmanager
def slurm_node() -> Iterator[SlurmNode]:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "slurm"
        subprocess.run([SCRIPT, "start", root], check=True, stdout=subprocess.DEVNULL)
        os.environ["SLURM_CONF"] = str(root / "slurm.conf")
        try:
            yield SlurmNode(root)
        finally:
            subprocess.run([SCRIPT, "stop", root], check=True)
