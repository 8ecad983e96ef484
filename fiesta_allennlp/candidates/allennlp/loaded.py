"""Everything that a config can name: the classes of this package, of AllenNLP, and of AllenNLP's plugins."""

import sys
from contextlib import nullcontext
from importlib import import_module
from typing import Any
from unittest.mock import patch

import torch

import fiesta_allennlp.candidates.candidate_types  # noqa: F401, registers the run of a config
from fiesta_allennlp.core.errors import describe_with_line
from fiesta_allennlp.version import PLUGIN_MODULE

# The fork server imports this module. A process that has asked CUDA for its devices cannot fork one that uses them, so
# the GPUs are hidden from libraries that look for them while they are imported, as spaCy does.
cupy: Any = sys.modules.get("cupy")
sys.modules["cupy"] = cupy  # with None, its import fails, and spaCy continues without it
has_cuda = hasattr(torch._C, "_cuda_getDeviceCount")  # not in CPU-only builds
with patch.object(torch._C, "_cuda_getDeviceCount", lambda: 0) if has_cuda else nullcontext():
    from allennlp.common import logging, plugins

    logging.FILE_FRIENDLY_LOGGING = True  # what a run prints goes to a log
    import_module(PLUGIN_MODULE)
    try:
        plugins.import_plugins()
    except Exception as error:  # of a plugin's own code, which candidates may not need
        reason = describe_with_line(error)
        print(f"Cannot import an AllenNLP plugin; later ones are skipped too: {reason}", file=sys.stderr, flush=True)
if cupy is None:
    del sys.modules["cupy"]
