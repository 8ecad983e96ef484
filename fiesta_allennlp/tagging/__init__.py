"""The second example task: sequence tagging, such as named entities. Importing this package registers its reader,
models, token embedder and optimiser.

Only `plugin` imports it.
"""

# ruff: noqa: F401
from fiesta_allennlp.tagging.crf_sequence_tagger import CrfSequenceTagger
from fiesta_allennlp.tagging.distinct_character_encoding import DistinctCharacterEncoder
from fiesta_allennlp.tagging.nadam import NadamOptimizer
from fiesta_allennlp.tagging.softmax_sequence_tagger import SoftmaxSequenceTagger
from fiesta_allennlp.tagging.tagged_columns import TaggedColumnsReader
