"""The example task of sequence tagging, such as named entities. Importing it registers its classes; only `plugin` does
so."""

# ruff: noqa: F401
from fiesta_allennlp.models.tagging.sequence_tagger import CrfSequenceTagger, SoftmaxSequenceTagger
from fiesta_allennlp.models.tagging.tagged_columns import TaggedColumnsReader
