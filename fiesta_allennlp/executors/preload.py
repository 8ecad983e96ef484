"""Imported once by the fork server, so that every fresh worker process starts with AllenNLP and all plugins loaded."""

import gc

from allennlp.common.plugins import import_plugins

import fiesta_allennlp.plugin  # noqa: F401

import_plugins()
gc.freeze()  # a worker's garbage collections need not look at all that was imported, nor copy its memory
