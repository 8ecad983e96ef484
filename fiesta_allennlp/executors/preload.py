"""Imported once by the fork server, so that every fresh worker process starts with AllenNLP and all plugins loaded."""

from allennlp.common.plugins import import_plugins

import fiesta_allennlp.plugin  # noqa: F401

import_plugins()
