__version__ = "2.0.0"

ALLENNLP = "2.10.1"
"""The version of AllenNLP that this package works with."""

PLUGIN_MODULE = "fiesta_allennlp.plugin"
"""The module that registers all classes for AllenNLP, by its name: nothing below may import the example tasks."""
