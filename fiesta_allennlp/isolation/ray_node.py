"""What a Ray task does on its node: one evaluation in a fresh process, and its files as a value.

Ray keeps a worker for every evaluation that runs at once on a node. So this module imports neither AllenNLP nor torch,
which take half a GB: only the server that the fresh processes are forked from does, one for all; see `ray_server`.
"""

import os
import shutil
import socket
import tempfile
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Optional, Sequence, Tuple

from filelock import FileLock, Timeout

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import DataError
from fiesta_allennlp.isolation.ray_server import ask
from fiesta_allennlp.isolation.worker import Work, WorkerSettings
from fiesta_allennlp.records import Failure, Outcome, Request


@dataclass(frozen=True)
class NodeWork:
    """How an evaluation is made on whatever node it comes to.

    `current_directory` is the driver's, taken where the node has it too; `num_gpus` is what the task was given;
    `needed` are files that the node must have; `sent` are those that come along, as Ray object references by their
    path on the driver's machine. The others are as for the executor that runs processes here.
    """

    current_directory: str
    num_threads: int
    num_gpus: float
    time_limit: Optional[float]
    packages: Tuple[str, ...]
    needed: Tuple[str, ...]
    sent: Mapping[str, Any]


@dataclass(frozen=True)
class Returned:
    """An outcome, and the files of the evaluation's directory by their path below it."""

    outcome: Outcome
    files: Mapping[str, bytes]


def evaluate_on_node(evaluator: bytes, request: Request, work: NodeWork) -> Returned:
    """Make one evaluation in a fresh process and in a directory of this node that is deleted afterwards.

    The evaluator is pickled: only the fresh process need import what it needs.

    Raises:
        DataError: where the node lacks a data file.
        OSError: where it cannot write one.
        ServerLost: where the server of fresh processes ended.
    """
    check_files(work.needed)
    if os.path.isdir(work.current_directory):
        os.chdir(work.current_directory)
    root = Path(tempfile.gettempdir()) / f"fiesta-{os.getuid()}"
    with scratch_directory(root) as scratch:
        run = RunDirectory(scratch)
        places = _unpack(work.sent, scratch / "sent")
        device = os.environ.get("CUDA_VISIBLE_DEVICES", "") if work.num_gpus else ""
        settings = WorkerSettings(num_threads=work.num_threads, packages=work.packages, device=device)
        directory, log = run.evaluation(request.name), run.evaluation_log(request.name)
        asked = Work(evaluator, places, request, directory, log, settings, work.time_limit)
        outcome = ask(asked, root, _server_key(work))
        if isinstance(outcome, Failure) and outcome.kind in ("disk", "data"):
            place = f" below {scratch.parent}" if outcome.kind == "disk" else ""
            outcome = replace(outcome, error=f"{outcome.error}, on node {socket.gethostname()}{place}")
        return Returned(outcome, _contents(directory))


def check_files(paths: Sequence[str]) -> None:
    """Refuse to work on a node that lacks one of these files: that is no fault of a candidate.

    Raises:
        DataError: with the node, the file and what to do.
    """
    for path in paths:
        if not os.path.exists(path):
            raise DataError(
                f"node {socket.gethostname()} does not have {path}. Put the file there, under the same path, or send "
                "the data along with --ship-data."
            )


@contextmanager
def scratch_directory(root: Path) -> Iterator[Path]:
    """A directory in `root` that is deleted at the end or, where that is a kill, by the next one that is made there.

    One that is in use has a lock file next to it, which ends with the process that holds it, however that ends.

    Raises:
        PermissionError: where `root` belongs to somebody else.
    """
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if root.stat().st_uid != os.getuid():
        raise PermissionError(f"{root} belongs to another user. Set TMPDIR for this node's Ray to another directory.")
    scratch = root / uuid.uuid4().hex
    with FileLock(str(root / "sweep.lock")):
        for left in root.glob("*.in_use"):
            with suppress(Timeout), FileLock(str(left), timeout=0):
                shutil.rmtree(left.with_suffix(""), ignore_errors=True)
                left.unlink()
        in_use = FileLock(f"{scratch}.in_use")
        in_use.acquire()
    try:
        scratch.mkdir()
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        Path(in_use.lock_file).unlink(missing_ok=True)
        in_use.release()


def _unpack(sent: Mapping[str, Any], directory: Path) -> Dict[str, str]:
    """Write the files that came along into `directory`. Returns their new paths by the old ones.

    Names keep their endings: readers may go by them.
    """
    import ray

    places = {}
    for number, (path, content) in enumerate(zip(sent, ray.get(list(sent.values())), strict=True)):
        place = directory / str(number) / Path(path).name
        place.parent.mkdir(parents=True)
        place.write_bytes(content)
        places[path] = str(place)
    return places


def _contents(directory: Path) -> Dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def _server_key(work: NodeWork) -> str:
    """One server for all evaluations of a selection on one Ray node."""
    import ray

    context = ray.get_runtime_context()
    return f"{context.get_node_id()} {context.get_job_id()} {work.num_threads} {work.packages}"
