"""Imported once by the fork server, so that every fresh worker process starts with AllenNLP and all plugins loaded.

Names what it imports as text: whatever else imports this package's isolation loads neither torch nor AllenNLP.
"""

import gc
import signal
from importlib import import_module

signal.signal(
    signal.SIGINT, signal.SIG_IGN
)  # a Ctrl-C in the terminal is for the parent, which ends the workers itself
import_module("fiesta_allennlp.plugin")
import_module("allennlp.common.plugins").import_plugins()
gc.freeze()  # a worker's garbage collections need not look at all that was imported, nor copy its memory
