"""Where shipped configs look for data and word vectors, unless the environment says otherwise."""

import os
from typing import Mapping

VECTORS = {"FIESTA_VECTORS": "data/vectors/glove.6B.%dd.txt"}
"""Relative to the current directory. `%d` stands for the number of dimensions."""


def set_variables(defaults: Mapping[str, str]) -> None:
    """Puts each default into the environment where its variable is not set.

    Jsonnet has no default for an external variable, and AllenNLP hands the environment over as external variables:
    call this before a config is read.
    """
    for name, value in defaults.items():
        os.environ.setdefault(name, value)
