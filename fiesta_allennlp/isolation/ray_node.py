"""Makes a run in a Ray task, on any node: in a fresh process below Ray's worker, with its files as a value.

Ray keeps a worker for each run that a node makes at once, and uses it again. Neither AllenNLP nor torch is imported
here: only the fork server below each worker loads what its runs need, once.
"""

import os
import shutil
import socket
import sys
import tempfile
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Tuple

from filelock import FileLock, Timeout

from fiesta_allennlp.core.errors import DataError
from fiesta_allennlp.core.records import Failure, Outcome
from fiesta_allennlp.isolation.fork_server import make, start_fork_server
from fiesta_allennlp.isolation.worker import Work


@dataclass(frozen=True)
class NodeWork:
    """A run for any node.

    `work` is the run as the driver's machine would make it. `current_directory` is the driver's, and is taken if the
    node has it too. The node must have the files that are `needed`. `sent` are files as Ray object references, by their
    path on the driver's machine.
    """

    work: Work
    current_directory: str
    needed: Tuple[str, ...]
    sent: Mapping[str, Any]


@dataclass(frozen=True)
class Returned:
    """An outcome, and the files of the run's directory by their path below it."""

    outcome: Outcome
    files: Mapping[str, bytes]


def evaluate_on_node(node_work: NodeWork) -> Returned:
    """Make one run in a fresh process, in a directory of this node that is deleted afterwards."""
    for path in node_work.needed:
        if not os.path.exists(path):  # which is not the candidate's fault
            raise DataError(
                f"{path} does not exist on node {socket.gethostname()}. Copy it there, to the same path, or send the "
                "data with --ship-data."
            )
    if os.path.isdir(node_work.current_directory):
        os.chdir(node_work.current_directory)
    vars(sys.modules["__main__"]).pop("__file__", None)  # else each fresh process runs Ray's worker program again
    with scratch_directory(Path(tempfile.gettempdir()) / f"fiesta-{os.getuid()}") as scratch:
        work, directory = node_work.work, scratch / "run"
        directory.mkdir()
        device = os.environ.get("CUDA_VISIBLE_DEVICES", "") if work.settings.device is None else work.settings.device
        node_local_work = replace(
            work,
            places=_unpack(node_work.sent, scratch / "sent"),
            directory=directory,
            log=directory / work.log.name,
            settings=replace(work.settings, device=device),
        )
        outcome = make(node_local_work, start_fork_server(work.settings.num_threads, work.settings.packages))
        if isinstance(outcome, Failure) and outcome.kind in ("disk", "data"):
            below_text = f" below {scratch.parent}" if outcome.kind == "disk" else ""
            outcome = replace(outcome, error=f"{outcome.error}, on node {socket.gethostname()}{below_text}")
        files = [path for path in directory.rglob("*") if path.is_file()]
        return Returned(outcome, {str(path.relative_to(directory)): path.read_bytes() for path in files})


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


def _unpack(references: Mapping[str, Any], directory: Path) -> Dict[str, str]:
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
