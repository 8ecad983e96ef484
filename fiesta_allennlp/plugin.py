"""Importing this module registers with AllenNLP the commands, and the classes that configs can name: it is what
`.allennlp_plugins` names."""

# ruff: noqa: F401
import fiesta_allennlp.commands.subcommands
import fiesta_allennlp.modules
import fiesta_allennlp.tagging
import fiesta_allennlp.tdsa
import fiesta_allennlp.trainings.allennlp.evaluator
import fiesta_allennlp.trainings.allennlp.resplit
from fiesta_allennlp.selection.jsonnet import set_defaults

set_defaults()
