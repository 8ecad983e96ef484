"""The shipped example task: target-dependent sentiment. Importing this package registers its reader, models and
predictor.

Only `plugin` imports it.
"""

# ruff: noqa: F401
from fiesta_allennlp.tdsa.atae_lstm import AtaeLstm
from fiesta_allennlp.tdsa.ian import Ian
from fiesta_allennlp.tdsa.semeval_tdsa import SemEvalTdsaReader
from fiesta_allennlp.tdsa.target_lstm import TargetLstm
from fiesta_allennlp.tdsa.td_lstm import TdLstm
from fiesta_allennlp.tdsa.tdsa_classifier import TdsaPredictor
from fiesta_allennlp.tdsa.words import WordTokenizer
