"""A package of a user with a reader that does not end: it makes a file to say that a check reads data, and waits."""

import os
import time
from pathlib import Path
from typing import Any, Iterator

from allennlp.data import DatasetReader, Instance
from allennlp.data.dataset_readers import TextClassificationJsonReader


@DatasetReader.register("holding")
class HoldingReader(TextClassificationJsonReader):
    """Makes the file that `HOLDING_MARKER` of the environment names."""

    def _read(self, file_path: Any) -> Iterator[Instance]:
        Path(os.environ["HOLDING_MARKER"]).touch()
        time.sleep(600)
        yield from super()._read(file_path)
