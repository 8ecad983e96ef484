"""One process on each node of a cluster, from which all trainings of a selection there are forked.

Ray keeps a worker for every evaluation that runs at once. With a fork server for each of them, each would load AllenNLP
anew, half a GB of it. So the first worker that needs it starts this server, and all workers of the node send it their
evaluations over a socket. A training ends when the worker that asked for it hangs up, however that ends. All of them
end with the server, and the server ends when nobody has asked for `SECONDS_IDLE`.

Imports neither AllenNLP nor torch: see `on_node`.
"""

import hashlib
import os
import pickle
import socket
import subprocess
import sys
import threading
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingUnixStreamServer
from typing import Any, Callable, Optional, Tuple

from filelock import FileLock

from fiesta_allennlp.isolation.fork_server import (
    WORKER_NAME,
    Begun,
    in_process,
    outcome_of,
    start_fork_server,
    stop_all,
)
from fiesta_allennlp.records import Outcome, Request

SECONDS_IDLE = 20.0


class ServerLost(Exception):
    """The server ended under an evaluation. That says nothing of the candidate."""


@dataclass(frozen=True)
class Work:
    """One evaluation: `call(*arguments)` in a fresh process gives its outcome."""

    request: Request
    call: Callable[..., Outcome]
    arguments: Tuple[Any, ...]
    time_limit: Optional[float]


def ask(work: Work, root: Path, key: str, *, num_threads: int) -> Outcome:
    """Have the server of this key do the work, and wait for it.

    # Parameters

    root : a directory of this user's alone, for the socket.
    key : the same for all that are to share a server.
    num_threads : torch threads of each of the server's processes.

    # Raises

    `ServerLost` : where the server ended before the work did.
    """
    with _connected(root / hashlib.sha256(key.encode()).hexdigest()[:16], num_threads) as connection:
        try:
            with connection.makefile("wb") as out:
                pickle.dump(work, out)
            with connection.makefile("rb") as answers:
                return pickle.load(answers)
        except (EOFError, OSError) as error:
            raise ServerLost(f"the server of fresh processes ended under {work.request.name}") from error


def _connected(address: Path, num_threads: int) -> socket.socket:
    """A connection to the server at this address, which is started where there is none."""
    connection = socket.socket(socket.AF_UNIX)
    with FileLock(f"{address}.lock"):
        try:
            connection.connect(str(address))
        except (FileNotFoundError, ConnectionRefusedError):
            address.unlink(missing_ok=True)
            code = f"from fiesta_allennlp.isolation.ray_server import serve; serve({str(address)!r}, {num_threads})"
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            nothing = subprocess.DEVNULL
            subprocess.run([sys.executable, "-c", code], env=environment, check=True, stdin=nothing, stdout=nothing)
            connection.connect(str(address))
    return connection


class _Server(ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: str, seconds_idle: float) -> None:
        super().__init__(address, _Handler)
        self.timeout = seconds_idle
        self.num_clients = 0
        self.counting = threading.Lock()
        self.is_idle = False

    def handle_timeout(self) -> None:
        self.is_idle = self.num_clients == 0


class _Handler(StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        with self.server.counting:
            self.server.num_clients += 1
        try:
            self._work(pickle.load(self.rfile))
        finally:
            with self.server.counting:
                self.server.num_clients -= 1

    def _work(self, work: Work) -> None:
        name = f"{WORKER_NAME} {uuid.uuid4().hex}"
        begun = Begun.now(work.request)
        context = start_fork_server(int(os.environ["OMP_NUM_THREADS"]))
        future = in_process(work.call, context, name=name, timeout=work.time_limit)(*work.arguments)

        def answer(done: Any) -> None:
            with suppress(OSError):
                self.wfile.write(pickle.dumps(outcome_of(done, begun, time_limit=work.time_limit)))
                self.wfile.flush()

        future.add_done_callback(answer)
        with suppress(OSError):
            self.rfile.read(1)  # the client hangs up when it has its answer, and when it dies
        stop_all([future], names=[name])


def serve(address: str, num_threads: int, seconds_idle: float = SECONDS_IDLE) -> None:
    """Listen, go into the background, and serve until nobody asks."""
    server = _Server(address, seconds_idle)
    if os.fork():
        os._exit(0)
    os.setsid()
    start_fork_server(num_threads)
    while not server.is_idle:
        server.handle_request()
    Path(address).unlink(missing_ok=True)
