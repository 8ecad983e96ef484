"""Where the shipped configs look for data and word vectors, unless the environment says otherwise."""

import os

DEFAULTS = {
    "FIESTA_DATA": "data/semeval14",
    "FIESTA_VECTORS": "data/vectors/glove.6B.%dd.txt",
}
"""Relative to the current directory. In `FIESTA_VECTORS`, `%d` stands for the number of dimensions."""


def set_defaults() -> None:
    """Puts each default into the environment where its variable is not set.

    Jsonnet has no default for an external variable, and AllenNLP hands the environment over as external variables:
    call this before a config is read.
    """
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
