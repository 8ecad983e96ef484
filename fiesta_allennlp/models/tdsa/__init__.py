"""The example task of target-dependent sentiment. Importing it registers its classes; only `plugin` does so."""

# ruff: noqa: F401
from fiesta_allennlp.models.tdsa.models import AtaeLstm, Ian, TargetLstm, TdLstm
from fiesta_allennlp.models.tdsa.semeval_tdsa import SemEvalTdsaReader, WordTokenizer
from fiesta_allennlp.models.tdsa.tdsa_classifier import TdsaPredictor
