"""Starts commands as `python -m` and `python -c` do, but from a process that has AllenNLP loaded, which takes seconds.

Each command is a process of its own. This file is all sides: the tests import it; with the number of a socket it is the
process that commands are forked from; and with the arguments of a command it stands for Python, as for pytest-xdist.
"""

import atexit
import gc
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from importlib.util import find_spec
from multiprocessing import util
from pathlib import Path
from typing import Any, List, Optional, Sequence, Tuple

REPOSITORY = Path(__file__).parent.parent
MOST_BYTES = 2**18
"""Of what a command is told: its arguments and its environment."""
MOST_FILES = os.sysconf("SC_OPEN_MAX")
ADDRESS_VARIABLE = "FIESTA_TESTS_WARM"
_SERVERS: "List[subprocess.Popen[bytes]]" = []


class Command:
    """A command that was started, with what the tests need of `subprocess.Popen`; its errors are in `stdout` too."""

    def __init__(
        self, arguments: Sequence[Any], *, own_session: bool = False, cwd: Any = REPOSITORY, **variables: str
    ) -> None:
        out, written = os.pipe()
        with open(os.devnull) as nothing:
            files = [nothing.fileno(), written, written]
            self._status = _ask(arguments, files, {**os.environ, **variables}, own_session=own_session, cwd=str(cwd))
        os.close(written)
        self.stdout = os.fdopen(out)
        self.returncode: Optional[int] = None
        self.pid = int(self._status.recv(20))

    def poll(self) -> Optional[int]:
        if self.returncode is None and select.select([self._status], [], [], 0)[0]:
            self.returncode = int(self._status.recv(20))
        return self.returncode

    def wait(self, timeout: float = 120) -> int:
        if self.returncode is None and not select.select([self._status], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("the command", timeout)
        status = self.poll()
        assert status is not None
        return status

    def communicate(self, timeout: float = 120) -> Tuple[str, None]:
        """What it writes from now on; as `subprocess.Popen.communicate` does, with None for its errors."""
        end, written = time.monotonic() + timeout, b""
        while select.select([self.stdout], [], [], max(0.0, end - time.monotonic()))[0]:
            read = os.read(self.stdout.fileno(), MOST_BYTES)
            if not read:
                self.wait(max(0.0, end - time.monotonic()))
                return written.decode(), None
            written += read
        raise subprocess.TimeoutExpired("the command", timeout, written)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it may have ended in this moment
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _ask(arguments: Sequence[Any], files: Sequence[int], environment: Any, **told: Any) -> socket.socket:
    """Ask for a command with these standard files. The socket tells the number of its process, then its status."""
    status = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    status.connect(os.environ.get(ADDRESS_VARIABLE) or start_server())
    told.update(arguments=list(map(str, arguments)), environment=dict(environment))
    socket.send_fds(status, [json.dumps(told).encode()], files)
    return status


def forward(arguments: Sequence[str]) -> int:
    """Stand for a command, with the files of this process, until it ends. Returns its status."""
    status = _ask(arguments, [0, 1, 2], os.environ, own_session=False, cwd=os.getcwd())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command gets it too
    status.recv(20)
    return int(status.recv(20))


def start_server() -> str:
    """Start what commands are asked of, which ends when this process does. Return its address, which the processes of
    pytest-xdist inherit, so that one serves them all."""
    address = os.path.join(tempfile.mkdtemp(prefix="fiesta-warm-"), "socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(address)
        listening.listen()
        command = [sys.executable, "-m", "tests.warm", str(listening.fileno())]
        handed = {"pass_fds": [listening.fileno()], "stdin": subprocess.PIPE}
        _SERVERS.append(subprocess.Popen(command, cwd=REPOSITORY, **handed))
    atexit.register(shutil.rmtree, os.path.dirname(address))
    os.environ[ADDRESS_VARIABLE] = address
    return address


def serve(listening: socket.socket) -> List[str]:
    """Fork for every command that is asked for. Returns the command's arguments in the process that is to be it."""
    if find_spec("allennlp"):
        from fiesta_allennlp.candidates.allennlp import loaded  # hides the GPUs: commands that are forked can use them

        loaded.logging.FILE_FRIENDLY_LOGGING = False
        del sys.modules[loaded.__name__]  # a command's workers import it, and log as it says

    gc.freeze()  # else every command goes through all that was imported when it ends, which takes seconds
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait for the commands
    while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
        status, _ = listening.accept()
        if not os.fork():
            listening.close()
            message, files, *_ = socket.recv_fds(status, MOST_BYTES, 3)
            told = json.loads(message)
            _fork_and_wait(status.detach(), files)
            os.environ.clear()
            os.environ.update(told["environment"])
            os.chdir(told["cwd"])
            if told["own_session"]:
                os.setsid()
            return told["arguments"]
        status.close()
    os._exit(0)


def _fork_and_wait(status: int, files: Sequence[int]) -> None:
    """Returns in the new process alone, and tells of its end.

    The new process heeds signals as one from a terminal does; those that run in a shell's background ignore some, and
    tests may run there.
    """
    for ending in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(ending, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    command = os.fork()
    if not command:
        os.close(status)
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for file in files:
        os.close(file)
    os.write(status, str(command).encode())
    _, ended = os.waitpid(command, 0)
    with suppress(BrokenPipeError):  # pytest-xdist waits only so long for what stands for its process
        os.write(status, str(os.waitstatus_to_exitcode(ended)).encode())
    os._exit(0)


def fork_fork_servers() -> None:
    """Have `multiprocessing` fork its fork server from this process, so that it too has AllenNLP loaded.

    Else it is what it would be: a child of this process that has none of its files.
    """
    start = util.spawnv_passfds

    def forked(path: Any, arguments: Sequence[Any], files: Sequence[int]) -> int:
        if "multiprocessing.forkserver" not in arguments[-1]:
            return start(path, arguments, files)
        server = os.fork()
        if server:
            return server
        for number in signal.valid_signals():
            if callable(signal.getsignal(number)):  # no program that is started inherits a handler
                signal.signal(number, signal.SIG_DFL)
        try:
            kept = sorted({0, 1, 2, *files})
            for last, following in zip(kept, [*kept[1:], MOST_FILES], strict=True):
                os.closerange(last + 1, following)
            exec(arguments[-1], {})
        finally:
            atexit._run_exitfuncs()
            os._exit(0)

    util.spawnv_passfds = forked  # type: ignore[attr-defined]


def main() -> None:
    """As Python does: a module after `-m`, code after `-c`, or else a file, and then its arguments.

    But for what Python does at the end: it would go through all that was imported, for half a second.
    """
    if not sys.argv[1].isdigit():
        sys.exit(forward(sys.argv[1:]))
    kind, *arguments = serve(socket.socket(fileno=int(sys.argv[1])))
    if kind == "-u":  # a process of pytest-xdist, whose fork servers are not all alike
        kind, *arguments = arguments
    else:
        fork_fork_servers()
    sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    status: Any = None
    try:
        _run(kind, arguments)
    except SystemExit as ended:
        if isinstance(status := ended.code, str):
            raise
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status or 0)


def _run(kind: str, arguments: Sequence[str]) -> None:
    if kind == "-c":
        sys.argv = ["-c", *arguments[1:]]
        exec(compile(arguments[0], "<string>", "exec"), {"__name__": "__main__"})
    elif kind == "-m":
        sys.argv = arguments
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [kind, *arguments]
        runpy.run_path(kind, run_name="__main__")


if __name__ == "__main__":
    main()
