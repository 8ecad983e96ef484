"""The records that strategies, posteriors and executors get, under the name that the documentation gives them."""

from fiesta_allennlp.core.records import *  # noqa: F403
