"""The data files of a program: the pool that they make, and the sets that one run gets of it."""

import hashlib
import math
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Dict, Hashable, List, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.candidates.config import absolute_paths
from fiesta_allennlp.candidates.pool import Pool, build_pool, describe_content, encode_values, pairing_digests
from fiesta_allennlp.candidates.programs.data_formats import FORMATS, DataFile, DataFormat, Record, read_file
from fiesta_allennlp.candidates.splits import Division, split_pool, target_sizes
from fiesta_allennlp.core.errors import DataError


@dataclass(frozen=True)
class ProgramData:
    """The data files of a program, by official set in the order train, validation, test."""

    files: Mapping[str, DataFile]
    format: DataFormat
    group_by: Optional[str]

    @classmethod
    def read(cls, data: Mapping[str, Any], division: Division, group_by: Optional[str]) -> "ProgramData":
        """Read the files that a run uses; `data` is the entry of the config. Raise a `DataError` if a file is wrong, or
        its columns differ from those of the first file."""
        data_format, paths = FORMATS[data["format"]], division.used_paths(absolute_paths(data))
        files = {set_name: read_file(path, data_format) for set_name, path in paths.items()}
        first_file, *further = files.values()
        for file in further:
            if file.head.strip() != first_file.head.strip():
                advice = "Write the same header into both."
                raise DataError(f"{file.path}: the columns differ from {first_file.path}. {advice}")
        return cls(files, data_format, group_by)

    @property
    def records(self) -> List[Record]:
        return list(chain.from_iterable(file.records for file in self.files.values()))

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

    def pool(self, division: Division, *, data_digest: str) -> Pool:
        """Return the pool of all records. `data_digest` is the fingerprint of the data files."""
        groups, records = self.groups(), self.records
        fingerprint = hashlib.sha256(repr(encode_values(groups)).encode("ascii"))
        for record in records:
            fingerprint.update(record.text)
        return build_pool(
            groups,
            self.sizes,
            contents=[record.content for record in records],
            contents_read=self.contents_read,
            group_by=self.group_by,
            division=division,
            data=data_digest,
            fingerprint=fingerprint.hexdigest(),
            pairing=(*pairing_digests(groups, {}), *pairing_digests(groups, self.fields())),
            is_of_program=True,
        )

    @property
    def contents_read(self) -> Tuple[str, ...]:
        """What was read, by file: the names of fields, if the format has them, or else the first line."""
        descriptions: List[str] = []
        for file in self.files.values():
            first = file.records[0]
            line = first.text.partition(b"\n")[0].decode("utf-8", "replace").strip()
            fields = first.fields if self.format.names_fields else ()
            descriptions.append(describe_content(file.path, len(file.records), self.format.unit, fields, line))
        return tuple(descriptions)

    def write_sets(
        self, directory: Path, *, split_seed: int, division: Division, max_records: Optional[int] = None
    ) -> Dict[str, str]:
        """Cut the sets of a run, write each into a new file in the same format, and return the files by set. With
        `max_records`, leave out records at even distances until that number is left in all sets together."""
        sets: Dict[str, Sequence[Record]] = {set_name: file.records for set_name, file in self.files.items()}
        if not division.is_official:
            targets = target_sizes(self.sizes, ratios=division.ratios, set_names=division.set_names)
            split, records = split_pool(self.groups(), targets, seed=split_seed), self.records
            sets = {set_name: [records[index] for index in indices] for set_name, indices in split.items()}
        share = min(1.0, (max_records or math.inf) / sum(map(len, sets.values())))
        first_file, is_by_document = next(iter(self.files.values())), self.group_by is not None
        directory.mkdir(parents=True)
        file_by_set: Dict[str, str] = {}
        for set_name, cut_records in sets.items():
            number = max(1, round(share * len(cut_records)))
            chosen = [cut_records[index * len(cut_records) // number] for index in range(number)]
            file = directory / self.format.file_name(set_name, first_file.path)
            file.write_bytes(self.format.format_records(first_file.head, chosen, by_document=is_by_document))
            file_by_set[set_name] = str(file)
        return file_by_set
