"""The official parts of a data set as a candidate's own reader reads them, and after how many instances it fails."""

import json
from itertools import islice
from typing import Any, Dict, List, Mapping, Sequence

from allennlp.data import DatasetReader, Instance

from fiesta_allennlp.errors import DataError, FiestaError, ReaderError, plainly
from fiesta_allennlp.splits import PARTS


def read_parts(reader: DatasetReader, paths: Dict[str, Any]) -> Dict[str, List[Instance]]:
    """The instances of each official part, without token indexers, in the order train, validation, test.

    Raises:
        ReaderError: with the data path, and how many instances were read before, of
            whatever the reader raises; but for a lack of the machine, such as a file that is not there, and errors of
            this package, which pass.
    """
    return {part: _read(reader, paths[part]) for part in PARTS if paths.get(part) is not None}


def _read(reader: DatasetReader, path: Any) -> List[Instance]:
    instances: List[Instance] = []
    try:
        for instance in islice(reader._read(path), reader.max_instances):
            instances.append(instance)
    except (FiestaError, OSError, MemoryError):
        raise
    except Exception as error:
        place = json.dumps(path).strip('"')
        raise ReaderError(f"{place}, after {len(instances)} instances: {_in_words(error)}") from error
    return instances


def check_same_fields(parts: Mapping[str, Sequence[Instance]], paths: Mapping[str, Any], *, key: str) -> None:
    """Refuse instances with different fields: splits mix them, and no batch can hold both. `key` is that of the reader
    in the config.

    Raises:
        DataError: with the data path and number of one that lacks a field, and of one that has it.
    """
    numbered = [(part, number, one) for part, given in parts.items() for number, one in enumerate(given, 1)]
    for other in numbered[1:]:
        for has, lacks in ((numbered[0], other), (other, numbered[0])):
            missing = sorted(set(has[2].fields) - set(lacks[2].fields))
            if missing:
                raise DataError(
                    f"'{key}': {paths[lacks[0]]}: instance {lacks[1]} has no field '{missing[0]}', but instance "
                    f"{has[1]} of {paths[has[0]]} has one. Give every record the keys that the reader looks for."
                )


def _in_words(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):  # which calls the line that it was given line 1
        return f"not valid JSON: {error.msg}, at character {error.pos + 1}."
    return plainly(error)
