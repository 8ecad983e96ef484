"""Where the shipped configs look for data and word vectors, unless the environment says otherwise."""

from fiesta_allennlp.modules.defaults import VECTORS, set_variables

DEFAULTS = {"FIESTA_DATA": "data/semeval14", **VECTORS}
"""Relative to the current directory."""


def set_defaults() -> None:
    """Set each default in the environment whose variable is not set. Call it before you read a config."""
    set_variables(DEFAULTS)
