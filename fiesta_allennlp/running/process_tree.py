"""Ends trees of processes: what a run, a program or a system has started ends with it.

A process of a tree is found by a mark in its environment, which a session of its own does not take away, or as an
orphan that the tree's root has adopted, which an environment of its own does not prevent and which needs Linux.

Run as a program, this file is the root of a command's tree, and ends it when the process that asked for it is gone:

    python process_tree.py FILE_DESCRIPTOR COMMAND [ARGUMENT ...]

The descriptor is a pipe's end for reading. Only that process has the other end, so it is closed when that process ends,
however it ends. This file imports nothing of this package, because a command must start in a blink.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import cache
from typing import Dict, Optional, Set

import psutil

SESSION, WORKER = "FIESTA_SESSION", "FIESTA_WORKER"  # variables: a selection's part of all marks, and a whole mark
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
MAX_SEARCHES = 10  # a process may start another one while it is being killed
START_SECONDS = 0.02  # between two searches, while a new program has no environment yet
EXIT_NOT_FOUND = 127
CHILD_POLL_SECONDS = 0.2

_adopting_roots: Set[int] = set()


@cache
def name_session() -> str:
    """Return the value of `SESSION` for the workers to come: a part of their marks that no other selection on this
    machine has."""
    return os.environ.get(SESSION) or os.urandom(8).hex()


def become_root() -> None:
    """Make this process the root of a tree: mark everything that it starts, and adopt what these leave running."""
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
    os.environ[WORKER] = root_mark(os.getpid())
    if sys.platform == "linux" and ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0:
        _adopting_roots.add(os.getpid())


def die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def end_this_tree() -> None:
    """End this process's tree, then its group with this process itself."""
    end_below(os.getpid())
    os.killpg(0, signal.SIGKILL)


def end_tree(root: int) -> None:
    """End what a dead root left running: its group keeps its number until the last process of it has ended."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(root, signal.SIGKILL)
    end_below(root)


def end_below(root: int) -> None:
    """Kill all programs with the mark of a root, which may be this process or one that has died; and all descendants of
    this process, if it is the root. Those that are just being started have no environment yet, and are waited for."""
    is_adopting = root == os.getpid() and root in _adopting_roots
    if is_adopting and not _has_children():  # an orphan would be a child: no need to look through the whole machine
        return
    start = psutil.Process().create_time()
    for _ in range(MAX_SEARCHES):
        processes = [process for process in psutil.process_iter() if process.pid not in (root, os.getpid())]
        environments = {process: _environment(process) for process in processes if _is_alive(process)}
        descendants = psutil.Process().children(recursive=True) if is_adopting else []
        to_kill = [
            process
            for process, environment in environments.items()
            if environment.get(WORKER) == root_mark(root) or process in descendants
        ]
        for process in to_kill:
            with suppress(psutil.Error):
                process.kill()
        if not to_kill:
            without_environment = (process for process, environment in environments.items() if not environment)
            if not any(_may_be_starting(process, start) for process in without_environment):
                return
            time.sleep(START_SECONDS)


def _has_children() -> bool:
    """Return whether a child of this process is running, or has ended and was not waited for."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def end_orphaned_trees() -> None:
    """End the trees of this session whose roots have died."""
    marks = {_environment(process).get(WORKER, "") for process in psutil.process_iter()}
    for root in (int(mark.removeprefix(root_mark())) for mark in marks if mark.startswith(root_mark())):
        if not psutil.pid_exists(root):
            end_below(root)


def root_mark(root: Optional[int] = None) -> str:
    """Return the mark of a root; without one, the beginning of all marks of this session."""
    return f"{name_session()}.{'' if root is None else root}"


def _is_alive(process: psutil.Process) -> bool:
    """Return whether a process has not ended."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _environment(process: psutil.Process) -> Dict[str, str]:
    """Return the variables; none if the process has ended, is being started, or is another user's."""
    try:
        return process.environ()
    except (psutil.Error, OSError):
        return {}


def _may_be_starting(process: psutil.Process, start: float) -> bool:
    """Return whether a process without an environment began at `start` or later, and has a program. It has none yet for
    a moment after `exec`, or was started without one. Neither an ended process, nor one of the kernel or of another
    user, has a program here."""
    try:
        return process.create_time() >= start and bool(process.exe())
    except (psutil.Error, OSError):
        return False


def main() -> int:
    """Run a command until it ends, the descriptor is closed or a signal comes; then end its tree, and return its
    status."""
    pipe = int(sys.argv[1])
    os.set_inheritable(pipe, False)
    become_root()
    try:
        child = subprocess.Popen(sys.argv[2:], start_new_session=True, preexec_fn=die_with_parent)
    except OSError as error:
        print(f"{sys.argv[2]}: {error.strerror}", file=sys.stderr)
        return EXIT_NOT_FOUND
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, lambda *_: _end_command(child))
    for stream in (0, 1):
        os.close(stream)  # held by the child alone, so that its end is the end of the stream
    while child.poll() is None:
        readable, _, _ = select.select([pipe], [], [], CHILD_POLL_SECONDS)
        if readable:
            break
    return _end_command(child)


def _end_command(child: "subprocess.Popen[bytes]") -> int:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    end_below(os.getpid())
    status = child.wait()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
