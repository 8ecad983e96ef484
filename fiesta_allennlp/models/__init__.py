"""TDSA models and taggers for AllenNLP.

Importing this room registers what configs can name, and only `plugin` imports it.
"""

# ruff: noqa: F401
import fiesta_allennlp.models.modules
import fiesta_allennlp.models.tagging
import fiesta_allennlp.models.tdsa
