"""Refuses scripts without `if __name__ == "__main__":`. Each process that a call starts imports the script, and would
make the call again."""

import multiprocessing
import os
import sys
import traceback

from fiesta_allennlp.errors import ConfigError

NO_GUARD = 117
"""Ends a process that finds itself making the call again, as its exit status. The parent process tells the user."""

MISSING_GUARD = (
    'this call needs `if __name__ == "__main__":` above it, because each process that it starts imports your script '
    "and would repeat the call. Write that line above the call and indent the call below it."
)

OUR_NAMES = ("fiesta-worker", "pebble")
"""Begin the names of our processes."""


def refuse_to_be_imported() -> None:
    """Refuse a call that starts processes where a process that imports the script makes it. End that process.

    Raises:
        ConfigError: where somebody else started the process.
    """
    if not _is_importing_script():
        return
    if multiprocessing.current_process().name.startswith(OUR_NAMES):
        os._exit(NO_GUARD)
    raise ConfigError(MISSING_GUARD)


def _is_importing_script() -> bool:
    """Return whether the script's lines run under the name that `multiprocessing` gives them in a process."""
    frames = traceback.walk_stack(sys._getframe())
    return any(f.f_code.co_name == "<module>" and f.f_globals.get("__name__") == "__mp_main__" for f, _ in frames)
