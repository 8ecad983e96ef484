"""Makes runs as tasks of a Ray cluster, on any node that has room. A node imports this module too."""

import logging
import os
import secrets
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any, Collection, Dict, Mapping, Optional

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, FiestaError, describe
from fiesta_allennlp.running.executor import Executor, option_value
from fiesta_allennlp.running.jobs import Attempt, JobExecutor, JobStatus, run_in_job

TASK = "ray"  # the name of the task in the folder of an attempt: tasks of Ray have no numbers
OWN_OPTIONS = ("max_calls", "max_retries", "name", "num_returns", "scheduling_strategy")  # of tasks


def run_on_node(attempt: Attempt, current_directory: str) -> None:
    """Make the run of an attempt in a fresh process below this worker of Ray. Raise a `FiestaError` if the node does
    not see the folder of the attempt, whose name nobody else has."""
    if not attempt.has_task(TASK):
        raise FiestaError(f"node {socket.gethostname()} does not see {attempt.directory}. Ray's nodes must share it.")
    if os.path.isdir(current_directory):
        os.chdir(current_directory)
    vars(sys.modules["__main__"]).pop("__file__", None)  # else each fresh process runs Ray's worker program again
    run_in_job(attempt, TASK)


@Executor.register("ray")
class RayExecutor(JobExecutor):
    """Makes each run as a task of Ray, on a file system that this machine and the nodes share.

    The run works in a fresh process, which ends with Ray's worker. Ray's own retries are off, because they do not know
    what counts as a failure here. A run that is lost with its node, or with Ray's worker, starts again.

    Args:
        directory: the run directory, on the shared file system.
        options: options of Ray's tasks, such as `num_cpus` (also the threads of a run), `num_gpus`, `memory` in bytes
            or `resources` as JSON; and `address`: `auto` for the cluster that this machine belongs to (default),
            `local` for one that is started here and ends with the selection, or HOST:PORT. Without `num_gpus`, no run
            sees a GPU.
        common: arguments of `QueueingExecutor`. With `workers` `auto`, there are as many as the cluster has room for.

    Raises:
        ConfigError: if Ray is not installed or refuses an option, there is no cluster, or no node has room for a run.
    """

    jobs_go_on = False

    def __init__(self, directory: RunDirectory, *, options: Optional[Mapping[str, str]] = None, **common: Any) -> None:
        try:
            import ray
        except ImportError as error:
            raise ConfigError("--executor ray requires ray. Install it: pip install ray") from error
        self._ray: Any = ray
        values = {key: option_value(text) for key, text in (options or {}).items()}
        address = str(values.pop("address", "auto"))
        if own := [key for key in values if key in OWN_OPTIONS]:
            raise ConfigError(f"--executor-option {own[0]}: the selection gives this option itself. Remove it.")
        task_options: Dict[str, Any] = {"num_cpus": 1, **values, "max_retries": 0, "max_calls": 0}
        try:
            self._task = self._ray.remote(scheduling_strategy="SPREAD", **task_options)(run_on_node)
            super().__init__(directory, num_threads=max(1, int(task_options["num_cpus"])), **common)
        except (ValueError, TypeError) as error:
            raise ConfigError(f"Ray refuses the options of its tasks: {describe(error)}") from error
        self.hides_gpus = not values.get("num_gpus")
        amounts = {"CPU": task_options["num_cpus"], "GPU": values.get("num_gpus"), "memory": values.get("memory")}
        needed = {name: n for name, n in {**amounts, **values.get("resources", {})}.items() if n}
        self._needed_text = ", ".join(f"{amount:g} {name}" for name, amount in needed.items())
        self._tasks: Dict[Attempt, Any] = {}
        self._connected_here = not self._ray.is_initialized()  # else a connection of this process is used
        if self._connected_here:
            _connect(self._ray, address)
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        room = sum(min(int(node.get(name, 0.0) / n + 1e-9) for name, n in needed.items()) for node in nodes)
        if not room:
            self.close()
            raise ConfigError(f"no node of the Ray cluster has room for a run, which needs {self._needed_text}.")
        self.slots = self.workers if isinstance(self.workers, int) else room  # while nothing else runs on the cluster

    def describe(self) -> str:
        return f"up to {self.slots} at a time on a Ray cluster, each with {self._needed_text}"

    def send(self, attempt: Attempt) -> None:
        attempt.hand_to(TASK)
        absolute = Attempt(attempt.directory.absolute())
        self._tasks[attempt] = self._task.options(name=attempt.run_name).remote(absolute, os.getcwd())

    def wait_for_run(self, timeout: Optional[float]) -> Optional[Attempt]:
        if found := self.active_runs.keys() - self._tasks.keys():
            return found.pop()  # it ended before this session
        attempts = {self._tasks[attempt]: attempt for attempt in self.active_runs}
        ended_tasks, _ = self._ray.wait(list(attempts), num_returns=1, timeout=timeout)
        return attempts[ended_tasks[0]] if ended_tasks else None

    def final_status(self, attempt: Attempt) -> JobStatus:
        """Return the end of a task by Slurm's names. Raise a `FiestaError` if this machine's own connection is gone, or
        the node does not see the run directory."""
        errors, task = self._ray.exceptions, self._tasks.pop(attempt, None)
        try:
            if task is not None:
                self._ray.get(task)
            return JobStatus("COMPLETED")
        except (errors.LocalRayletDiedError, errors.RaySystemError) as error:
            reason = f"lost the connection to the Ray cluster: {describe(error)}. Finished runs are safe"
            raise FiestaError(f"{reason}. Restart the cluster, then continue with --recover.") from error
        except (errors.NodeDiedError, errors.ObjectLostError, errors.WorkerCrashedError) as error:
            return JobStatus("NODE_FAIL", reason=describe(error))
        except errors.RayError as error:
            cause = getattr(error, "cause", error)  # of an error that the task raised
            if isinstance(cause, FiestaError):  # on purpose
                raise cause from error
            return JobStatus("FAILED", reason=describe(cause))

    def stop_jobs(self, attempts: Collection[Attempt]) -> None:
        """End these tasks without waiting. The run's process ends with Ray's worker."""
        for attempt in attempts:
            if (task := self._tasks.pop(attempt, None)) is not None and self._ray.is_initialized():
                self._ray.cancel(task, force=True)

    def close(self) -> None:
        super().close()
        if self._connected_here and self._ray.is_initialized():
            self._ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    """Connect to a cluster, or start one here without statistics and dashboard. A new cluster gets its own token unless
    the user has one: Ray would write one that everybody on the machine can read."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    user_tokens = [os.environ.get("RAY_AUTH_TOKEN"), os.environ.get("RAY_AUTH_TOKEN_PATH")]
    if address == "local" and not any(user_tokens) and not (Path.home() / ".ray" / "auth_token").exists():
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    local_options = {"include_dashboard": False} if address == "local" else {}
    handler = signal.getsignal(signal.SIGTERM)  # on which a selection ends in order: Ray sets one of its own
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **local_options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        reason = f"--executor-option address={address}: cannot connect to a Ray cluster: {describe(error)}"
        raise ConfigError(f"{reason}. Start one with `ray start --head`, or use address=local.") from error
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)
