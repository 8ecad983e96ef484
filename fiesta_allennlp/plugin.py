"""Importing this module registers everything with AllenNLP: it is what `.allennlp_plugins` names."""

import fiesta_allennlp.beliefs
import fiesta_allennlp.commands
import fiesta_allennlp.dataset_readers
import fiesta_allennlp.evaluators
import fiesta_allennlp.executors
import fiesta_allennlp.models
import fiesta_allennlp.strategies  # noqa: F401
from fiesta_allennlp.defaults import set_defaults

set_defaults()
