"""One process on each node of a cluster, from which all trainings of a selection there are forked.

Ray keeps a worker for every evaluation that runs at once. With a fork server for each of them, each would load AllenNLP
again, half a GB of it. So the first worker that needs it starts this server, and all workers of the node send it their
evaluations over a socket, which lies in a directory of this user's alone. A training ends when the worker that asked
for it hangs up, however that ends. All of them end with the server, and the server ends when nobody has asked for
`SECONDS_IDLE`.

Imports neither AllenNLP nor torch, because every Ray worker imports it.
"""

import hashlib
import os
import subprocess
import sys
import threading
import uuid
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, List, Optional, Sequence

from filelock import FileLock

from fiesta_allennlp.isolation.fork_server import (
    WORKER_NAME,
    Begun,
    in_process,
    outcome_of,
    start_fork_server,
    stop_all,
)
from fiesta_allennlp.isolation.worker import Work, WorkerSettings, evaluate_here
from fiesta_allennlp.records import Outcome

SECONDS_IDLE = 20.0
MOST_WAITING = 128
"""How many clients may wait to be let in: more than a node has workers."""


class ServerLost(Exception):
    """The server ended under an evaluation. That says nothing of the candidate."""


def ask(work: Work, root: Path, key: str) -> Outcome:
    """Have the server of this key do the work, and wait for it.

    Args:
        root: a directory of this user's alone, for the socket.
        key: the same for all that are to share a server.

    Raises:
        ServerLost: where the server ended before the work did.
    """
    with connected(root / hashlib.sha256(key.encode()).hexdigest()[:16], work.settings) as server:
        try:
            server.send(work)
            return server.recv()
        except (EOFError, OSError) as error:
            raise ServerLost(f"the server of fresh processes ended under {work.request.name}") from error


def connected(address: Path, settings: WorkerSettings) -> Connection:
    """A connection to the server at this address, which is started where there is none."""
    with FileLock(f"{address}.lock"):
        try:
            return Client(str(address))
        except (FileNotFoundError, ConnectionRefusedError):
            address.unlink(missing_ok=True)
        terms = f"{str(address)!r}, {settings.num_threads}, {settings.packages!r}"
        code = f"from fiesta_allennlp.isolation.ray_server import serve; serve({terms})"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        nothing = subprocess.DEVNULL
        subprocess.run([sys.executable, "-c", code], env=environment, check=True, stdin=nothing, stdout=nothing)
        return Client(str(address))


def serve(address: str, num_threads: int, packages: Sequence[str] = (), seconds_idle: float = SECONDS_IDLE) -> None:
    """Listen, go into the background, and serve until nobody asks."""
    listener = Listener(address, backlog=MOST_WAITING)
    if os.fork():
        os._exit(0)
    os.setsid()
    context = start_fork_server(num_threads, packages)
    let_in: "SimpleQueue[Connection]" = SimpleQueue()
    threading.Thread(target=_let_in, args=(listener, let_in), daemon=True).start()
    serving: List[threading.Thread] = []
    client: Optional[Connection]
    while True:
        try:
            client = let_in.get(timeout=seconds_idle)
        except Empty:
            client = None
        serving = [thread for thread in serving if thread.is_alive()]
        if client is not None:
            serving.append(threading.Thread(target=_serve_client, args=(client, context), daemon=True))
            serving[-1].start()
        elif not serving:
            break
    Path(address).unlink(missing_ok=True)


def _let_in(listener: Listener, let_in: "SimpleQueue[Connection]") -> None:
    while True:
        with suppress(OSError):
            let_in.put(listener.accept())


def _serve_client(client: Connection, context: Any) -> None:
    with client:
        try:
            work: Work = client.recv()
        except (EOFError, OSError):
            return
        name = f"{WORKER_NAME} {uuid.uuid4().hex}"
        begun = Begun.now(work.request)
        future = in_process(evaluate_here, context, name=name, timeout=work.time_limit)(work)

        def stop_at_hang_up() -> None:
            client.poll(None)  # the client hangs up when it has its answer, and when it dies
            stop_all([future], names=[name])

        watch = threading.Thread(target=stop_at_hang_up, daemon=True)
        watch.start()
        with suppress(OSError):
            client.send(outcome_of(future, begun, time_limit=work.time_limit))
        watch.join()
