"""The shipped example task: target-dependent sentiment. Importing this package registers its reader, models and
predictor.

Only `plugin` imports it.
"""

# ruff: noqa: F401
from fiesta_allennlp.tdsa.models import AtaeLstm, Ian, TargetLstm, TdLstm
from fiesta_allennlp.tdsa.semeval_tdsa import SemEvalTdsaReader, WordTokenizer
from fiesta_allennlp.tdsa.tdsa_classifier import TdsaPredictor
