"""TDSA models and taggers for AllenNLP.

Importing this room registers what configs can name, and only `plugin` imports it.
"""

# ruff: noqa: F401
import fiesta_allennlp.models.semeval_tdsa
import fiesta_allennlp.models.sequence_tagger
import fiesta_allennlp.models.tdsa_models
