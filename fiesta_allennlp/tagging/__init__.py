"""The second example task: sequence tagging, such as named entities. Importing this package registers its reader and
taggers.

Only `plugin` imports it.
"""

# ruff: noqa: F401
from fiesta_allennlp.tagging.sequence_tagger import CrfSequenceTagger, SoftmaxSequenceTagger
from fiesta_allennlp.tagging.tagged_columns import TaggedColumnsReader
