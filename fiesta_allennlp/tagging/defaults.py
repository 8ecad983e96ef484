"""Where the shipped configs look for data and word vectors, unless the environment says otherwise."""

from fiesta_allennlp.modules.defaults import VECTORS, set_variables

DEFAULTS = {
    "FIESTA_TAGGING": "data/conll2003/eng.train,data/conll2003/eng.testa,data/conll2003/eng.testb",
    **VECTORS,
}
"""Relative to the current directory. In `FIESTA_TAGGING`, commas separate training, validation and test set."""


def set_defaults() -> None:
    """Set each default in the environment whose variable is not set. Call it before you read a config."""
    set_variables(DEFAULTS)
