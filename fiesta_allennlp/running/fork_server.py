"""The server that fresh processes start from, which has loaded what they need, such as AllenNLP.

Neither AllenNLP nor torch is imported here, because every Ray worker imports this file. The server's socket lies in the
temporary directory of `multiprocessing`, which the server deletes if the process that started it was killed.
"""

import multiprocessing
import os
import sys
import traceback
from contextlib import contextmanager
from multiprocessing import util
from typing import Dict, Iterator, Mapping, Sequence

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.running.process_tree import SESSION, name_session

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
PARENT_VARIABLE, SOCKETS_VARIABLE, PRELOAD_VARIABLE = "FIESTA_PARENT", "FIESTA_SOCKETS", "FIESTA_PRELOAD"
TRACKER_WARNING_FILTER = "ignore:resource_tracker:UserWarning"  # about every semaphore of a killed worker
WORKER_PROCESS_NAME = "fiesta-worker"

EXIT_WITHOUT_GUARD = 117  # the exit status of a process that would make the call again; its parent tells the user
MISSING_GUARD_MESSAGE = (
    'put this call below `if __name__ == "__main__":`. Each process that it starts imports your script, and would '
    "otherwise repeat the call."
)

# These keep Python 3.11 and later from looking for the server's own modules in the current directory, where a user may
# have a `random.py` or another copy of this package. The value shows that nobody else set it.
SAFE_PATH_VARIABLE, SAFE_PATH_VALUE = "PYTHONSAFEPATH", "fiesta"

server_variables: Dict[str, str] = {}  # of the fork server, and of all that it starts


def start_fork_server(num_threads: int, packages: Sequence[str] = ()) -> multiprocessing.context.ForkServerContext:
    """Return a context whose processes start with our own modules among `packages` imported.

    The server starts with the first process, and finds the thread variables when it imports torch. Sets of texts have
    one order in all processes, on every machine and after every interruption, so that readers that iterate over them
    read the same.
    """
    preloads = [package for package in packages if package.startswith("fiesta_allennlp.")]
    warnings = os.environ.get("PYTHONWARNINGS", "")
    server_variables.update(
        {
            **dict.fromkeys(THREAD_VARIABLES, str(num_threads)),
            PARENT_VARIABLE: str(os.getpid()),
            PRELOAD_VARIABLE: " ".join(preloads),
            SOCKETS_VARIABLE: util.get_temp_dir(),
            SESSION: name_session(),
            "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"),
            "PYTHONWARNINGS": ",".join(filter(None, [warnings, TRACKER_WARNING_FILTER])),
        }
    )
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["fiesta_allennlp.running.preload"])
    return context


@contextmanager
def environment_variables(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables for what starts meanwhile. This process gets its own back."""
    old_values = {name: os.environ[name] for name in variables if name in os.environ}
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.update(old_values)
        for name in variables.keys() - old_values:
            os.environ.pop(name, None)


def unset_safe_path() -> None:
    """Let programs that this process starts find modules next to themselves as usual."""
    if os.environ.get(SAFE_PATH_VARIABLE) == SAFE_PATH_VALUE:
        del os.environ[SAFE_PATH_VARIABLE]


def check_main_guard() -> None:
    """Refuse a call that starts processes if the script makes it without `if __name__ == "__main__":`. Each process
    imports the script, and would make the call again: end such a process. Raise a `ConfigError` in any other."""
    frames = [frame for frame, _ in traceback.walk_stack(sys._getframe()) if frame.f_code.co_name == "<module>"]
    if any(frame.f_globals.get("__name__") == "__mp_main__" for frame in frames):
        if multiprocessing.current_process().name.startswith(WORKER_PROCESS_NAME):
            os._exit(EXIT_WITHOUT_GUARD)
        raise ConfigError(MISSING_GUARD_MESSAGE)
