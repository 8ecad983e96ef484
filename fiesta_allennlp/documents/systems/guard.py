"""Runs a command and ends it, with all of its children, when the process that asked for it is gone.

    python guard.py FILE_DESCRIPTOR COMMAND [ARGUMENT ...]

The descriptor is a pipe's end for reading; the other end is with that process alone, so it is closed when that process
ends, however it ends. Imports nothing of this package: it has to start in a blink.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys

PR_SET_PDEATHSIG = 1
NOT_FOUND = 127
SECONDS_BETWEEN_LOOKS = 0.2


def main() -> int:
    alive = int(sys.argv[1])
    os.set_inheritable(alive, False)
    try:
        child = subprocess.Popen(sys.argv[2:], start_new_session=True, preexec_fn=_die_with_guard)
    except OSError as error:
        print(f"{sys.argv[2]}: {error.strerror}", file=sys.stderr)
        return NOT_FOUND
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda *_: _end(child))
    for stream in (0, 1):
        os.close(stream)  # held by the child alone, so that its end is the end of the stream
    while child.poll() is None:
        readable, _, _ = select.select([alive], [], [], SECONDS_BETWEEN_LOOKS)
        if readable:
            break
    return _end(child)


def _end(child: "subprocess.Popen[bytes]") -> int:
    """Kill the whole group, so that nothing that the command started stays either."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    status = child.wait()
    return status if status >= 0 else 128 - status


def _die_with_guard() -> None:
    """Be killed when the guard is, on Linux."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
