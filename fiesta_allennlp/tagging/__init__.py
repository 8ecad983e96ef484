"""The second example task: sequence tagging, such as named entities. Importing this package registers its reader.

Only `plugin` imports it.
"""

from fiesta_allennlp.tagging.tagged_columns import TaggedColumnsReader

__all__ = ["TaggedColumnsReader"]
