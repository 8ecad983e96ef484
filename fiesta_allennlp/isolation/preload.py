"""Imported once by the fork server, so that every fresh worker process starts with AllenNLP and all plugins loaded.

Names what it imports as text: nothing else in this folder loads torch or AllenNLP, or knows the plugin.
"""

import gc
import signal
import sys
import traceback
from importlib import import_module

from fiesta_allennlp.errors import describe

PRELOADED = ("fiesta_allennlp.plugin", "allennlp.common.plugins")

signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C in a terminal is for the parent, which ends the workers itself
plugins = [import_module(name) for name in PRELOADED][-1]
try:
    plugins.import_plugins()
except Exception as error:  # of a plugin's own code. The server goes on for the candidates that do not need it
    place = traceback.extract_tb(error.__traceback__)[-1]
    print(
        f"A plugin of AllenNLP cannot be imported, and those after it are left out: {place.filename}, line "
        f"{place.lineno}: {describe(error)}",
        file=sys.stderr,
        flush=True,
    )
gc.freeze()  # a worker's garbage collections need not look at all that was imported, nor copy its memory
