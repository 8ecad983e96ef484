"""Makes runs as tasks of a Ray cluster: on any node, in a fresh process below Ray's worker, with its files as a value.

A node imports this module too, which imports neither Ray nor AllenNLP.
"""

import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Collection, Dict, Iterator, List, Mapping, Optional, Tuple

from filelock import FileLock, Timeout

from fiesta_allennlp.core.blame import MachineFacts
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, DataError, FiestaError, describe
from fiesta_allennlp.core.files import OWN_DIRECTORY_MODE, PART_SUFFIX, delete
from fiesta_allennlp.core.origin import Machine
from fiesta_allennlp.core.records import Failure, Outcome, Request
from fiesta_allennlp.executors.base import Evaluator, Executor
from fiesta_allennlp.executors.queueing import (
    ActiveRun,
    QueueingExecutor,
    check_positive,
    no_machine_left_error,
)
from fiesta_allennlp.isolation.fork_server import make_run, start_fork_server
from fiesta_allennlp.isolation.worker import DISK_FULL_ERRORS, RunTask


@dataclass(frozen=True)
class NodeTask:
    """A run for any node.

    `task` is the run as the driver's machine would make it. `current_directory` is the driver's, and is taken if the
    node has it too. The node must have the files that are `required_files`. `sent_files` are files as Ray object
    references, by their path on the driver's machine.
    """

    task: RunTask
    current_directory: str
    required_files: Tuple[str, ...]
    sent_files: Mapping[str, Any]


@dataclass(frozen=True)
class NodeResult:
    """An outcome, and the files of the run's directory by their path below it."""

    outcome: Outcome
    files: Mapping[str, bytes]


def evaluate_on_node(node_task: NodeTask) -> NodeResult:
    """Make one run in a fresh process, in a directory of this node that is deleted afterwards."""
    for path in node_task.required_files:
        if not os.path.exists(path):  # which is not the candidate's fault
            raise DataError(f"{path} does not exist on node {socket.gethostname()}. Copy it there, or use --ship-data.")
    if os.path.isdir(node_task.current_directory):
        os.chdir(node_task.current_directory)
    vars(sys.modules["__main__"]).pop("__file__", None)  # else each fresh process runs Ray's worker program again
    with scratch_directory(Path(tempfile.gettempdir()) / f"fiesta-{os.getuid()}") as scratch:
        task, directory = node_task.task, scratch / "run"
        directory.mkdir()
        device = os.environ.get("CUDA_VISIBLE_DEVICES", "") if task.settings.device is None else task.settings.device
        local_task = replace(
            task,
            local_paths=_write_sent_files(node_task.sent_files, scratch / "sent"),
            directory=directory,
            settings=replace(task.settings, device=device),
        )
        outcome = make_run(local_task, start_fork_server(task.settings.num_threads, task.settings.packages))
        if isinstance(outcome, Failure) and outcome.kind in ("disk", "data"):
            below_text = f" below {scratch.parent}" if outcome.kind == "disk" else ""
            outcome = replace(outcome, error=f"{outcome.error}, on node {socket.gethostname()}{below_text}")
        files = [path for path in directory.rglob("*") if path.is_file()]
        return NodeResult(outcome, {str(path.relative_to(directory)): path.read_bytes() for path in files})


@contextmanager
def scratch_directory(root: Path) -> Iterator[Path]:
    """Make a directory in `root` that is deleted at the end or, after a kill, by the next call. While it is in use, it
    has a lock file next to it, which ends with its process. Refuse a `root` of another user."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if root.stat().st_uid != os.getuid():
        raise PermissionError(f"{root} belongs to another user. For Ray on this node, set TMPDIR to another directory.")
    scratch = root / uuid.uuid4().hex
    with FileLock(str(root / "sweep.lock")):
        for leftover in root.glob("*.in_use"):
            with suppress(Timeout), FileLock(str(leftover), timeout=0):
                shutil.rmtree(leftover.with_suffix(""), ignore_errors=True)
                leftover.unlink()
        in_use = FileLock(f"{scratch}.in_use")
        in_use.acquire()
    try:
        scratch.mkdir()
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        Path(in_use.lock_file).unlink(missing_ok=True)
        in_use.release()


def _write_sent_files(references: Mapping[str, Any], directory: Path) -> Dict[str, str]:
    """Write the files that came along into `directory`, and return their new paths by the old ones. Names keep their
    endings, because readers may go by them."""
    import ray

    new_paths = {}
    for index, (path, content) in enumerate(zip(references, ray.get(list(references.values())), strict=True)):
        new_path = directory / str(index) / Path(path).name
        new_path.parent.mkdir(parents=True)
        new_path.write_bytes(content)
        new_paths[path] = str(new_path)
    return new_paths


logger = logging.getLogger(__name__)

GIB = 2**30


def check_resources(cpus: float, gpus: float, memory: Optional[float]) -> Dict[str, float]:
    """Return what each run takes, by Ray's names, with memory in bytes."""
    check_positive(cpus_per_evaluation=cpus, memory_per_evaluation=memory)
    if gpus < 0 or (gpus > 1 and gpus != int(gpus)):
        raise ConfigError(f"--gpus-per-evaluation must be a whole number, or between 0 and 1, but got {gpus}.")
    return {"CPU": cpus, "GPU": float(gpus), "memory": float(int((memory or 0.0) * GIB))}


def connect(ray: Any, address: str) -> None:
    """Connect to a cluster, or start one here without statistics and dashboard."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address == "local":
        _set_auth_token()
    local_options = {"include_dashboard": False} if address == "local" else {}
    try:
        with _keeping_sigterm_handler():
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **local_options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        reason = f"--ray-address {address}: cannot connect to a Ray cluster: {describe(error)}"
        raise ConfigError(f"{reason}. Start one with `ray start --head`, or use --ray-address local.") from error


def _import_ray() -> Any:
    try:
        return import_module("ray")
    except ImportError as error:
        raise ConfigError("--executor ray requires ray. Install it: pip install ray") from error


def _set_auth_token() -> None:
    """Give a new cluster its own token unless the user has one: Ray would write one that everybody on the machine can
    read. Only processes of this user find it in the environment."""
    user_tokens = [os.environ.get("RAY_AUTH_TOKEN"), os.environ.get("RAY_AUTH_TOKEN_PATH")]
    if not any(user_tokens) and not (Path.home() / ".ray" / "auth_token").exists():
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)


@contextmanager
def _keeping_sigterm_handler() -> Iterator[None]:
    """Keep this process's handler of SIGTERM, which Ray replaces when it starts: a selection ends on it in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    original_handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, original_handler)


@Executor.register("ray")
class RayExecutor(QueueingExecutor):
    """Makes every run as a Ray task, on any node of a cluster that has room for it.

    On the node, a run works as with `ProcessExecutor`: in a fresh process that ends with Ray's worker, in a directory
    of that node. Its files come back with its outcome, and the executor writes them into the run directory here. No
    directory needs to be shared.

    The executor switches off Ray's own retries, because they do not know what counts as a failure here. If a task is
    lost with its node, or with Ray's worker, the executor starts it again, on another node if necessary. That is not a
    failure: it says nothing about the candidate, which must not drop out because machines went away. If the run's own
    process dies, that is a failure, as with every executor. A run that Ray ends because memory ran out is a failure
    too.

    Args:
        directory: the run directory on this machine.
        ray_address: `auto` for the cluster that this machine belongs to; `local` for one that is started on this
            machine and ends with the selection; or HOST:PORT of a cluster's head.
        cpus_per_evaluation: CPUs that Ray reserves for each run; None for as many as threads.
        gpus_per_evaluation: GPUs for each run, which sees no others; 0.25 puts four runs on one card. 0 hides all.
        memory_per_evaluation: memory for each run in GiB; None for no such limit on how many share a node.
        ship_data: whether to send the data files along, for nodes that do not have them.
        common: arguments of `QueueingExecutor`. With `workers` `auto`, there are as many as the cluster has room for,
            also when nodes come and go.

    Raises:
        ConfigError: if Ray is not installed, a number is out of range, there is no cluster, or none of its nodes could
            ever make a run.
    """

    gives_devices = True
    can_choose_machines = True

    def __init__(
        self,
        directory: RunDirectory,
        *,
        ray_address: str = "auto",
        cpus_per_evaluation: Optional[float] = None,
        gpus_per_evaluation: float = 0.0,
        memory_per_evaluation: Optional[float] = None,
        ship_data: bool = False,
        **common: Any,
    ) -> None:
        super().__init__(directory, **common)
        cpus = float(self.num_threads if cpus_per_evaluation is None else cpus_per_evaluation)
        self._resources = check_resources(cpus, gpus_per_evaluation, memory_per_evaluation)
        self.hides_gpus = not self._resources["GPU"]
        self._ship_data = ship_data
        self._references: Dict[str, Any] = {}
        self._ray = _import_ray()
        self._connected_here = not self._ray.is_initialized()  # else a connection of this process is used
        if self._connected_here:
            connect(self._ray, ray_address)
        try:
            self._task = self._make_task()
            if not self._num_fitting():
                raise ConfigError(
                    f"no node of the Ray cluster has room for a run, which needs {self._resources_text()}. Reduce "
                    "--cpus-per-evaluation, --gpus-per-evaluation or --memory-per-evaluation."
                )
            self._count_slots()
        except BaseException:
            self.close()
            raise

    def describe(self) -> str:
        cluster = f"a Ray cluster of {len(self._nodes())} node(s)"
        return f"up to {self.slots} at a time on {cluster}, each with {self._resources_text()}"

    def shut_down(self, runs: Mapping[Any, ActiveRun]) -> None:
        self.stop_runs(runs)
        if self._connected_here and self._ray.is_initialized():
            self._ray.shutdown()

    def _nodes(self) -> List[Mapping[str, Any]]:
        """Return the nodes that are alive, as Ray describes them."""
        return [node for node in self._ray.nodes() if node["Alive"]]

    def _num_fitting(self) -> int:
        """Return how many runs the whole cluster has room for while nothing else runs on it."""
        return sum(map(self._num_fitting_on, self._nodes()))

    def _num_fitting_on(self, node: Mapping[str, Any]) -> int:
        needed = {name: amount for name, amount in self._resources.items() if amount}
        return min(int(node["Resources"].get(name, 0.0) / amount + 1e-9) for name, amount in needed.items())

    def _fitting_nodes(self) -> List[Mapping[str, Any]]:
        return [node for node in self._nodes() if self._num_fitting_on(node)]

    def _resources_text(self) -> str:
        amounts = {**self._resources, "GiB of memory": self._resources["memory"] / GIB, "memory": 0.0}
        return ", ".join(f"{amount:g} {name}" for name, amount in amounts.items() if amount)

    def _make_task(self) -> Any:
        """Make the task. `max_calls=0` keeps Ray's worker, with what its fork server has loaded, for the next run; by
        default, Ray ends the worker after every task with a GPU."""
        return self._ray.remote(
            num_cpus=self._resources["CPU"],
            num_gpus=self._resources["GPU"],
            max_retries=0,
            max_calls=0,
            memory=self._resources["memory"] or None,
            scheduling_strategy="SPREAD",
        )(evaluate_on_node)

    def use_machines(self, machines: MachineFacts) -> None:
        if machines.broken and not self._nodes_except(machines.broken):
            raise no_machine_left_error(machines)
        super().use_machines(machines)

    def _nodes_except(self, machines: Collection[Machine]) -> List[Mapping[str, Any]]:
        """Return the nodes with room for a run that are on other hosts than these machines."""
        hosts = {machine.host for machine in machines}
        return [node for node in self._fitting_nodes() if node["NodeManagerHostname"] not in hosts]

    def start_run(self, evaluator: Evaluator, request: Request) -> Any:
        options = {"name": request.name, **self._node_options(request)}
        return self._task.options(**options).remote(self._describe_task(evaluator, request))

    def _node_options(self, request: Request) -> Dict[str, Any]:
        """Return the options that keep a run away from broken nodes and, if others are left, those it has failed on."""
        broken, failed_on = self.machines.broken, self.machines.failed_on.get(request.key, frozenset())
        nodes = self._nodes_except({*broken, *failed_on}) or self._nodes_except(broken)
        excluded_ids = [node["NodeID"] for node in self._fitting_nodes() if node not in nodes]
        if not excluded_ids:
            return {}
        strategies = import_module("ray.util.scheduling_strategies")
        is_other_node = {"ray.io/node-id": strategies.NotIn(*excluded_ids)}
        return {"scheduling_strategy": strategies.NodeLabelSchedulingStrategy(hard=is_other_node)}

    def wait_for_run(self, timeout: Optional[float]) -> Any:
        ended_tasks, _ = self._ray.wait(list(self.active_runs), num_returns=1, timeout=timeout)
        return ended_tasks[0] if ended_tasks else None

    def read_outcome(self, task: Any, run: ActiveRun) -> Optional[Outcome]:
        outcome = self._read_result(task, run)
        self._count_slots()
        return outcome

    def stop_runs(self, runs: Mapping[Any, ActiveRun]) -> None:
        """End these tasks without waiting. The run's process ends with Ray's worker."""
        for task in runs:
            if self._ray.is_initialized():
                self._ray.cancel(task, force=True)

    def _count_slots(self) -> None:
        """Set the number of runs at once. It is never 0: if all nodes are gone, one run waits for a new one."""
        self.slots = self.workers if isinstance(self.workers, int) else max(1, self._num_fitting())

    def _describe_task(self, evaluator: Evaluator, request: Request) -> NodeTask:
        """Describe a run for its node. Send files that no other machine can have, and with `ship_data` the data files
        too."""
        shipped = filter(os.path.isfile, evaluator.files(request)) if self._ship_data else ()
        paths_to_send = [*shipped, *evaluator.made_files(request)]
        for path in paths_to_send:
            if path not in self._references:
                self._references[path] = self._ray.put(Path(path).read_bytes())
        files_here = filter(os.path.exists, evaluator.files(request))
        required_files = tuple(path for path in files_here if path not in paths_to_send)
        return NodeTask(
            self.task_for(evaluator, request, self.directory.evaluation(request.name)),
            current_directory=os.getcwd(),
            required_files=required_files,
            sent_files={path: self._references[path] for path in paths_to_send},
        )

    def _read_result(self, task: Any, run: ActiveRun) -> Optional[Outcome]:
        """Return the outcome of a finished task; None if it was lost with its node or Ray's worker. Raise a
        `FiestaError` if this machine's own connection is gone, or the node lacks a data file."""
        errors, start = self._ray.exceptions, run.start
        try:
            result = self._ray.get(task)
            self._write_files(start.request, result.files)
        except (errors.NodeDiedError, errors.ObjectLostError, errors.WorkerCrashedError) as error:
            return self.retry_lost(run, f"its node or Ray worker ended: {describe(error)}")
        except (errors.LocalRayletDiedError, errors.RaySystemError) as error:
            reason = f"lost the connection to the Ray cluster: {describe(error)}. Finished runs are safe"
            raise FiestaError(f"{reason}. Restart the cluster, then continue with --recover.") from error
        except errors.RayTaskError as error:
            if isinstance(error.cause, FiestaError):  # raised on the node on purpose
                raise error.cause from error
            return start.failure(_failure_kind(error.cause), describe(error.cause))
        except errors.RayError as error:
            return start.failure("machine", describe(error))
        except OSError as error:
            return start.failure(_failure_kind(error), describe(error))
        origin = replace(result.outcome.origin, is_only_machine=len(self._fitting_nodes()) < 2)
        return replace(result.outcome, origin=origin)

    def _write_files(self, request: Request, files: Mapping[str, bytes]) -> None:
        """Write a run's files in one step, so that an existing directory is complete."""
        target = self.directory.evaluation(request.name)
        temporary_path = target.with_name(target.name + PART_SUFFIX)
        delete(temporary_path)
        target.parent.mkdir(mode=OWN_DIRECTORY_MODE, parents=True, exist_ok=True)
        temporary_path.mkdir(mode=OWN_DIRECTORY_MODE)
        for name, content in files.items():
            (temporary_path / name).parent.mkdir(parents=True, exist_ok=True)
            (temporary_path / name).write_bytes(content)
        delete(target)
        os.replace(temporary_path, target)


def _failure_kind(error: BaseException) -> str:
    """Return the kind of failure of files that could not be sent, read or written, here or on the node."""
    if not isinstance(error, OSError):
        return "error"
    return "disk" if error.errno in DISK_FULL_ERRORS else "machine"
