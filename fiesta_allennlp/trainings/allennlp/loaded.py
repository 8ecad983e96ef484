"""Everything that a config can name: the classes of this package, of AllenNLP, and of AllenNLP's plugins."""

import sys
import traceback
from importlib import import_module

from allennlp.common import logging, plugins

from fiesta_allennlp.errors import describe

PLUGIN = "fiesta_allennlp.plugin"
"""Named as text, because a family does not know the example tasks."""

logging.FILE_FRIENDLY_LOGGING = True  # what a run prints goes to a log
import_module(PLUGIN)
try:
    plugins.import_plugins()
except Exception as error:  # of a plugin's own code. The candidates that do not need it go on
    place = traceback.extract_tb(error.__traceback__)[-1]
    print(
        f"A plugin of AllenNLP cannot be imported, and those after it are left out: {place.filename}, line "
        f"{place.lineno}: {describe(error)}",
        file=sys.stderr,
        flush=True,
    )
