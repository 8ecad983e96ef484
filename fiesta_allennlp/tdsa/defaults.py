"""Where the shipped configs look for data and word vectors, unless the environment says otherwise."""

from fiesta_allennlp.modules.defaults import VECTORS, set_variables

DEFAULTS = {"FIESTA_DATA": "data/semeval14", **VECTORS}
"""Relative to the current directory."""


def set_defaults() -> None:
    """Puts each default into the environment where its variable is not set. Call it before a config is read."""
    set_variables(DEFAULTS)
