"""The official parts of a data set as a candidate's own reader reads them, and where in a file it fails."""

import json
from contextlib import suppress
from itertools import islice
from pathlib import Path
from traceback import walk_tb
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set

from allennlp.data import DatasetReader, Instance

from fiesta_allennlp.errors import DataError, FiestaError, ReaderError, plainly
from fiesta_allennlp.splits import PARTS
from fiesta_allennlp.trainings.data_files import files_behind

SEPARATORS = (",", "\t", ";", " ")
"""Between the fields of a line of a table."""

MOST_FIELDS = 1000
"""No line of a table has more: a longer list is rather a file's lines."""


def read_parts(reader: DatasetReader, paths: Dict[str, Any]) -> Dict[str, List[Instance]]:
    """The instances of each official part, without token indexers, in the order train, validation, test.

    Raises:
        ReaderError: with the data path, the line where it can be found, and how many instances were read before, of
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
        with suppress(Exception):  # what the reader raised is to be told, whatever its variables do when looked at
            place = line_of(error, path, num_read=len(instances)) or place
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


def line_of(error: BaseException, path: Any, *, num_read: int) -> Optional[str]:
    """The file and the number of the line that was being read when the error was raised; None where it is unknown.

    It is the line that a reader of the `csv` module stands at, or one equal to a text or a row of fields that the
    reader's functions held. An instance takes at least one line, so a single file is searched from line `num_read` + 1.
    """
    held = [value for frame, _ in walk_tb(error.__traceback__) for value in _values(frame.f_locals)]
    files = files_behind(path)
    if len(files) == 1:
        for value in held:
            if isinstance(getattr(value, "line_num", None), int):
                return f"{files[0]}, line {value.line_num}"
    texts = {value.strip() for value in held if isinstance(value, str) and value}
    for file in files:
        number = _number_of(texts, file, after=num_read if len(files) == 1 else 0)
        if number is not None:
            return f"{file}, line {number}"
    return None


def _values(variables: Dict[str, Any]) -> Iterator[Any]:
    """What a function holds, what its tuples hold (`number, line` is often one), and lines of a table put together."""
    for value in variables.values():
        yield value
        if isinstance(value, (dict, list, tuple)) and len(value) > MOST_FIELDS:
            continue
        fields = list(value.values()) if isinstance(value, dict) else value
        if isinstance(value, tuple):
            yield from value
        if isinstance(fields, (list, tuple)) and all(isinstance(field, str) for field in fields):
            yield from (separator.join(fields) for separator in SEPARATORS)


def _number_of(texts: Set[str], file: Path, *, after: int) -> Optional[int]:
    """The first line which is one of the texts, the longest of those that are there."""
    found: Dict[str, int] = {}
    with suppress(OSError, UnicodeDecodeError), file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if number > after and line.strip() in texts:
                found.setdefault(line.strip(), number)
    return found[max(found, key=len)] if found else None
