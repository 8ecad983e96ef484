"""The temporary directory of `multiprocessing`, with the socket of the fork server: deleted also where its process was
killed, by the fork server, or by the next command if that was killed too."""

import glob
import os
import platform
import shutil
import tempfile
from multiprocessing import util
from pathlib import Path

PARENT, SOCKETS, PRELOAD = "FIESTA_PARENT", "FIESTA_SOCKETS", "FIESTA_PRELOAD"
"""The variables that tell the fork server of its parent process, of the directory, and of the modules to import."""

MARK = "fiesta-of-"


def own_directory() -> str:
    """Return the directory of this process, with a mark of the process in it."""
    directory = util.get_temp_dir()
    Path(directory, f"{MARK}{platform.node()}-{os.getpid()}").touch()
    return directory


def delete_stale_directories() -> None:
    """Delete those whose process was killed on this machine. Others may vanish while this looks at them."""
    begin = f"{MARK}{platform.node()}-"
    for mark in glob.glob(f"pymp-*/{glob.escape(begin)}*", root_dir=tempfile.gettempdir()):
        directory, _, name = mark.rpartition(os.sep)
        if not _is_alive(int(name.removeprefix(begin))):
            shutil.rmtree(Path(tempfile.gettempdir(), directory), ignore_errors=True)


def has_lost_parent() -> bool:
    """Return whether the process that started this fork server has ended."""
    return os.environ.get(PARENT, str(os.getppid())) != str(os.getppid())


def delete_of_lost_parent() -> None:
    """Delete the directory if the parent process has ended, and so cannot do it itself."""
    if has_lost_parent() and SOCKETS in os.environ:
        shutil.rmtree(os.environ[SOCKETS], ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
