"""What a worker leaves running: found by a mark in the environment, which a session of its own does not take away, or
as an orphan that the worker has adopted, which an environment of its own does not prevent.

Linux only, for it looks into `/proc`. Elsewhere only the worker's process group ends with it.
"""

import ctypes
import os
import secrets
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import List, Optional, Set

SESSION = "FIESTA_SESSION"
WORKER = "FIESTA_WORKER"

PR_SET_CHILD_SUBREAPER = 36

MOST_SEARCHES = 10
"""A process may start another one while it is being killed."""

SECONDS_TO_START = 0.02
"""The pause before the next search where a program has just been started and has no environment yet."""


def name_session() -> None:
    """Give the workers to come a part of their marks that no other selection on this machine has."""
    os.environ.setdefault(SESSION, secrets.token_hex(8))


def mark_this_worker() -> None:
    """Mark all programs that this process starts from now on, and those that they start."""
    os.environ[WORKER] = _mark(os.getpid())


_adopters: Set[int] = set()


def adopt_orphans() -> None:
    """Become the parent of what a program of this process leaves running. `end_marked` then kills all descendants."""
    if sys.platform == "linux" and ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0:
        _adopters.add(os.getpid())


def end_marked(worker: int) -> None:
    """Kill all programs with the mark of a worker, which may be this process or one that has died; and all
    descendants of this process, if it is the worker and adopts orphans."""
    entry = f"{WORKER}={_mark(worker)}".encode()
    for _ in range(MOST_SEARCHES):
        others = {pid: _environment(pid) for pid in _processes() if pid not in (worker, os.getpid())}
        own = _descendants() if worker == os.getpid() and worker in _adopters else set()
        found = [pid for pid, environment in others.items() if entry in environment or pid in own]
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            if not any(_is_starting(pid) for pid, environment in others.items() if not environment):
                return
            time.sleep(SECONDS_TO_START)


def end_orphaned() -> None:
    """Kill all programs with the mark of a worker of this session that has died."""
    begin = f"{WORKER}={_mark()}".encode()
    entries = {entry for pid in _processes() for entry in _environment(pid) if entry.startswith(begin)}
    for worker in (int(entry[len(begin) :]) for entry in entries):
        if not Path(f"/proc/{worker}").exists():
            end_marked(worker)


def _mark(worker: Optional[int] = None) -> str:
    return f"{os.environ.get(SESSION, '')}.{'' if worker is None else worker}"


def _processes() -> List[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


def _descendants() -> Set[int]:
    """The processes below this one, other than those that have ended."""
    parents = {pid: parent for pid in _processes() if (parent := _parent(pid)) is not None}
    found: Set[int] = set()
    newest = {os.getpid()}
    while newest:
        newest = {pid for pid, parent in parents.items() if parent in newest}
        found |= newest
    return found


def _parent(pid: int) -> Optional[int]:
    """None where the process has ended."""
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[:2]
    except OSError:
        return None
    return None if state == "Z" else int(parent)


def _environment(pid: int) -> List[bytes]:
    """Empty where the process has ended, is being started, or is another user's."""
    try:
        return [entry for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") if entry]
    except OSError:
        return []


def _is_starting(pid: int) -> bool:
    """Whether it runs a program whose environment is not there yet, as for a moment after `exec`; also of a program
    that was started without one. Neither a process that has ended nor one of the kernel has a program."""
    try:
        return bool(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return False
