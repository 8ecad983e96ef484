"""The pool of a candidate that is a program, and the sets that one run gets of it."""

import hashlib
import itertools
import math
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Hashable, List, Mapping, Optional, Tuple

from fiesta_allennlp.candidates.config import Config
from fiesta_allennlp.candidates.pool import (
    FileContent,
    Pool,
    build_pool,
    encode_values,
    first_group_key,
    pairing_digests,
)
from fiesta_allennlp.candidates.programs.data_formats import (
    DOCUMENT,
    FORMATS,
    DataFile,
    DataFormat,
    Record,
    is_id,
    read_file,
    set_file_name,
)
from fiesta_allennlp.candidates.programs.program import program_paths
from fiesta_allennlp.candidates.splits import SET_NAMES, Division, split_pool, target_sizes
from fiesta_allennlp.core.errors import DataError


@dataclass(frozen=True)
class ProgramData:
    """The data files of a program, by official part in the order train, validation, test."""

    files: Mapping[str, DataFile]
    format: DataFormat
    group_by: Optional[str]

    @property
    def records(self) -> List[Record]:
        return list(itertools.chain.from_iterable(file.records for file in self.files.values()))

    @property
    def contents(self) -> Tuple[FileContent, ...]:
        """Return what was read, by file."""
        return tuple(map(self._content_of, self.files.values()))

    def _content_of(self, file: DataFile) -> FileContent:
        first = file.records[0]
        fields = tuple(first.fields) if self.format.names_fields else ()
        first_line = first.text.partition(b"\n")[0].decode("utf-8", "replace").strip()
        return FileContent(file.path, len(file.records), self.format.unit, fields, first_line)

    def check_files(self, division: Division) -> None:
        """Raise a `DataError` if a file cannot be split."""
        single = [content for content in self.contents if content.num_items == 1 and not division.is_official]
        if single:
            raise DataError(f"{single[0].path} has a single record, which cannot be split. Read: {single[0].text}.")

    def regroup_advice(self) -> str:
        """Return how copies of records in several groups stay on one side of a split."""
        keys: Mapping[str, List[Hashable]] = {name: values for name, values in self.fields().items() if not is_id(name)}
        if self.format in (FORMATS["conll"], FORMATS["lines"]):
            keys = {DOCUMENT: []} if self.format is FORMATS["conll"] and self.group_by is None else {}
        key = max(keys, key=lambda name: len(set(keys[name])), default=None)
        return f"keep them together with --group-by {shlex.quote(key)}" if key else ""

    @property
    def sizes(self) -> Dict[str, int]:
        return {set_name: len(file.records) for set_name, file in self.files.items()}

    def groups(self) -> List[Hashable]:
        """Return the group of each record, or its position without groups. Shape: `(num_records,)`."""
        if self.group_by is None:
            return list(range(len(self.records)))
        return [group for file in self.files.values() for group in self.format.groups(file, self.group_by)]

    def fields(self) -> Dict[str, List[Hashable]]:
        """Return the fields that all files have. Shape of each: `(num_records,)`."""
        names_by_file = [{name for record in file.records for name in record.fields} for file in self.files.values()]
        records = self.records
        return {name: [record.fields.get(name) for record in records] for name in set.intersection(*names_by_file)}


def read_data(data: Mapping[str, Any], paths: Mapping[str, str], group_by: Optional[str]) -> ProgramData:
    """Read the files of a program at `paths`, by part; `data` is the entry of its config. Raise a `DataError` if a file
    is wrong, or its columns differ from those of the first file."""
    data_format = FORMATS[data["format"]]
    files = {set_name: read_file(paths[set_name], data_format) for set_name in SET_NAMES if set_name in paths}
    first_file, *further = files.values()
    for file in further:
        if file.head.strip() != first_file.head.strip():
            raise DataError(f"{file.path}: the columns differ from {first_file.path}. Write the same header into both.")
    return ProgramData(files, data_format, group_by)


def program_pool(config: Config, group_by: Optional[str], *, data: str, division: Division) -> Pool:
    """Return the pool of a program; empty for one that cuts its own splits. `data` is the fingerprint of the data
    files."""
    paths = division.used_paths(program_paths(config))
    if not paths:
        return Pool({}, {}, num_groups=0, group_by=None, data=data, fingerprint="", is_of_program=True)
    key = None if division.is_official else first_group_key([group_by, config["data"].get("group_by")])
    program_data = read_data(config["data"], paths, key)
    program_data.check_files(division)
    groups, fields = program_data.groups(), program_data.fields()
    fingerprint = hashlib.sha256(repr(encode_values(groups)).encode("ascii"))
    for record in program_data.records:
        fingerprint.update(record.text)
    return build_pool(
        groups,
        program_data.sizes,
        contents=[record.content for record in program_data.records],
        contents_read=program_data.contents,
        regroup_advice=program_data.regroup_advice(),
        group_by=key,
        division=division,
        data=data,
        fingerprint=fingerprint.hexdigest(),
        pairing=pairing_digests(groups, fields),
        is_of_program=True,
    )


def write_sets(
    data: ProgramData, directory: Path, *, split_seed: int, division: Division, max_records: Optional[int] = None
) -> Dict[str, Path]:
    """Cut the sets of a run and write each into a new file, by part, in the same format. With `max_records`, leave out
    records at even distances until that number is left in all sets together."""
    sets = _cut_sets(data, split_seed, division)
    share = min(1.0, (max_records or math.inf) / sum(map(len, sets.values())))
    first_file = next(iter(data.files.values()))
    directory.mkdir(parents=True)
    path_by_set: Dict[str, Path] = {}
    for set_name, records in sets.items():
        number = max(1, round(share * len(records)))
        chosen_records = [records[index * len(records) // number] for index in range(number)]
        path_by_set[set_name] = directory / set_file_name(set_name, first_file.path, data.format)
        by_document = data.group_by is not None
        content = data.format.format_records(first_file.head, chosen_records, by_document=by_document)
        path_by_set[set_name].write_bytes(content)
    return path_by_set


def _cut_sets(data: ProgramData, split_seed: int, division: Division) -> Dict[str, List[Record]]:
    if division.is_official:
        return {set_name: list(file.records) for set_name, file in data.files.items()}
    targets = target_sizes(data.sizes, ratios=division.ratios, set_names=division.set_names)
    split, records = split_pool(data.groups(), targets, seed=split_seed), data.records
    return {set_name: [records[index] for index in split.indices_of(set_name)] for set_name in division.set_names}
