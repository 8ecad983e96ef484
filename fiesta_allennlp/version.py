__version__ = "2.0.0"

ALLENNLP = "2.10.1"
"""The version of AllenNLP that this package works with."""
