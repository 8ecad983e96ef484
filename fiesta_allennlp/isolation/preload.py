"""Imported once by the fork server, so that every fresh worker process starts with AllenNLP and all plugins loaded.

Names what it imports as text: nothing else in this folder loads torch or AllenNLP, or knows the plugin.
"""

import gc
import signal
from importlib import import_module

PRELOADED = ("fiesta_allennlp.plugin", "allennlp.common.plugins")

signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C in a terminal is for the parent, which ends the workers itself
plugins = [import_module(name) for name in PRELOADED][-1]
plugins.import_plugins()
gc.freeze()  # a worker's garbage collections need not look at all that was imported, nor copy its memory
