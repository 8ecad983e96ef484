"""Classifiers of target-dependent sentiment; importing this package registers them and their predictor."""

import fiesta_allennlp.predictors  # noqa: F401
from fiesta_allennlp.models.atae_lstm import AtaeLstm
from fiesta_allennlp.models.ian import Ian
from fiesta_allennlp.models.target_lstm import TargetLstm
from fiesta_allennlp.models.td_lstm import TdLstm
from fiesta_allennlp.models.unpacked_lstm import UnpackedLstmSeq2Seq, UnpackedLstmSeq2Vec

__all__ = ["AtaeLstm", "Ian", "TargetLstm", "TdLstm", "UnpackedLstmSeq2Seq", "UnpackedLstmSeq2Vec"]
