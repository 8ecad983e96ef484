"""The errors that a caller can catch, under the name that the documentation gives them."""

from fiesta_allennlp.core.errors import *  # noqa: F403
