"""A package of a user that no worker finishes importing: it makes a file to say that a check runs, and waits."""

import multiprocessing
import os
import time
from pathlib import Path

MARKER = "HOLDING_MARKER"
"""The variable of the environment that names the file."""

if multiprocessing.parent_process() is not None and MARKER in os.environ:
    Path(os.environ[MARKER]).touch()
    time.sleep(600)
