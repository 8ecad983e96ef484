"""Parts of AllenNLP models that serve any task. Importing this package registers them."""

# ruff: noqa: F401
from fiesta_allennlp.modules.token_ids import TokenIdsCollator
from fiesta_allennlp.modules.unpacked_lstm import UnpackedLstmSeq2Seq, UnpackedLstmSeq2Vec
