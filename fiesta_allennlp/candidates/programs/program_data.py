"""The data files of a program: their formats, as records that are written back byte for byte; the pool that they make;
and the sets that one run gets of it."""

import csv
import hashlib
import json
import math
import sys
from abc import ABC, abstractmethod
from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from pathlib import Path
from typing import Any, Callable, DefaultDict, Dict, Hashable, Iterator, List, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.candidates.config import absolute_paths
from fiesta_allennlp.candidates.splits import Division, Pool, build_pool, content_text, is_id, split_pool, target_sizes
from fiesta_allennlp.core.errors import MAX_CHOICES, DataError, join_some
from fiesta_allennlp.core.files import refuse_repeated_keys

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
DOCUMENT_START = b"-DOCSTART-"
DOCUMENT, WORDS = "document", "words"  # the only key by which sentences of column files can be grouped; their field


@dataclass(frozen=True)
class Record:
    """An item of a data file: its bytes, ended by a line feed, the number of its first line, from 1, and its fields. In
    a column file, `document` names its document, and `opening` is the line that begins that document."""

    text: bytes
    line: int
    fields: Mapping[str, Hashable] = field(default_factory=dict)
    document: str = ""
    opening: bytes = b""

    @property
    def content(self) -> Hashable:
        """What makes two records equal: the fields that are not ids, or the text if no field is an id."""
        contents = {name: value for name, value in self.fields.items() if not is_id(name)}
        return tuple(contents.items()) if 0 < len(contents) < len(self.fields) else self.text


@dataclass(frozen=True)
class DataFile:
    """The records of a file, and what precedes them, such as the names of columns."""

    path: str
    head: bytes
    records: Tuple[Record, ...]


class DataFormat(ABC):
    """A format of data files: how records are separated and what they hold. `unit` is what a record is in such a file,
    and `names_fields` whether the file names their fields."""

    unit: str
    names_fields: bool = True

    @abstractmethod
    def read(self, content: bytes, path: str) -> DataFile:
        """Return the records of a file with this content. Raise a `DataError` with the line that is not a record."""

    def groups(self, file: DataFile, group_by: str) -> List[Hashable]:
        """Return the group of each record. Shape: `(num_records,)`. Raise a `DataError` if a record has no such
        field."""
        for record in file.records:
            if record.fields.get(group_by) in (None, ""):
                names = join_some(record.fields, limit=MAX_CHOICES) or "none"
                raise DataError(
                    f"{file.path}, line {record.line}: cannot group by '{group_by}', which is missing. Fields of this "
                    f"record: {names}. Use a field that every record has, or --group-by none."
                )
        return [record.fields[group_by] for record in file.records]

    def format_records(self, head: bytes, records: Sequence[Record], *, by_document: bool) -> bytes:
        """Return the content of a file with these records, which are whole documents with `by_document`."""
        return head + b"".join(record.text for record in records)


@dataclass(frozen=True)
class LinesFormat(DataFormat):
    """A record in each line that is not empty. `fields_of` returns the fields of a line in a file."""

    unit: str
    fields_of: Callable[[Record, str], Mapping[str, Hashable]]
    names_fields: bool = True

    def read(self, content: bytes, path: str) -> DataFile:
        lines = [line for line in _split_lines(content) if not _is_blank(line)]
        return DataFile(path, b"", tuple(replace(line, fields=self.fields_of(line, path)) for line in lines))


@dataclass(frozen=True)
class TableFormat(DataFormat):
    """A header, and a row in each line; with `quotes`, fields in quotes may hold separators and line ends."""

    separator: str
    quotes: bool
    unit = "rows"

    def read(self, content: bytes, path: str) -> DataFile:
        rows = list(self._rows(content, path))
        if not rows:
            raise DataError(f"{path} is empty. The first line must name the columns.")
        (first, header), *body = rows
        if repeated := [name for name in header if name and header.count(name) > 1]:
            raise DataError(f"{path}: two columns have the name '{repeated[0]}'. Rename one of them.")
        for record, row in body:
            if len(row) != len(header):
                raise DataError(f"{path}, line {record.line}: expected {len(header)} fields but found {len(row)}.")
        records = (replace(record, fields=dict(zip(header, row, strict=True))) for record, row in body)
        return DataFile(path, first.text, tuple(records))

    def _rows(self, content: bytes, path: str) -> Iterator[Tuple[Record, List[str]]]:
        lines: List[Record] = []

        def texts() -> Iterator[str]:
            for line in _split_lines(content):
                lines.append(line)
                yield _decode_line(line, path)

        csv.field_size_limit(sys.maxsize)
        quoting: Any = csv.QUOTE_MINIMAL if self.quotes else csv.QUOTE_NONE
        try:
            for row in csv.reader(texts(), delimiter=self.separator, quoting=quoting, strict=True):
                if row:
                    yield Record(b"".join(line.text for line in lines), lines[0].line), row
                lines.clear()
        except csv.Error as error:
            start = lines[0].line if lines else 1
            raise DataError(f"{path}, line {start}: not a valid row: {error}.") from error


class ConllFormat(DataFormat):
    """A word and its columns in each line; an empty line ends a sentence, `-DOCSTART-` begins a document."""

    unit = "blocks between empty lines, each a record"
    names_fields = False

    def read(self, content: bytes, path: str) -> DataFile:
        records: List[Record] = []
        document, opening = "", b""
        for is_break, block in groupby(_split_lines(content), key=self._is_break):
            lines = list(block)
            if not is_break:
                fields = {WORDS: tuple(line.text.split()[0] for line in lines)}
                text = b"".join(line.text for line in lines)
                records.append(Record(text, lines[0].line, fields, document, opening))
                continue
            for line in lines:
                if line.text.startswith(DOCUMENT_START):
                    document, opening = f"{path}:{line.line}", line.text
        return DataFile(path, b"", tuple(records))

    @staticmethod
    def _is_break(line: Record) -> bool:
        return line.text.startswith(DOCUMENT_START) or _is_blank(line)

    def groups(self, file: DataFile, group_by: str) -> List[Hashable]:
        """Return a digest of the words of each document, or of each sentence if there are no documents, so that equal
        texts stay on one side."""
        if group_by != DOCUMENT:
            raise DataError(f"cannot group CoNLL sentences by '{group_by}'. Use '{DOCUMENT}', or --group-by none.")
        has_documents = any(record.opening for record in file.records)
        documents = [record.document if has_documents else record.line for record in file.records]
        words: DefaultDict[Hashable, List[Any]] = defaultdict(list)
        for document, record in zip(documents, file.records, strict=True):
            words[document].append(record.fields[WORDS])
        digests = {document: hashlib.sha256(repr(words[document]).encode()).hexdigest()[:16] for document in words}
        return [digests[document] for document in documents]

    def format_records(self, head: bytes, records: Sequence[Record], *, by_document: bool) -> bytes:
        pieces: List[bytes] = []
        for previous, record in zip([None, *records], records, strict=False):
            if by_document and record.document != (previous.document if previous else ""):
                pieces.append(record.opening)
            pieces.append(record.text)
        return b"\n".join(pieces)


def _split_lines(content: bytes) -> Iterator[Record]:
    lines = content.split(b"\n")
    for number, line in enumerate(lines if lines[-1] else lines[:-1], start=1):
        yield Record(line + b"\n", number)


def _is_blank(line: Record) -> bool:
    """Return whether a line is empty to the eye; a no-break space is."""
    return not line.text.decode("utf-8", "replace").strip()


OBJECTS_ADVICE = "Write one object, with distinct keys, in each line."


def _json_fields(record: Record, path: str) -> Dict[str, Hashable]:
    try:
        record_object = json.loads(_decode_line(record, path), object_pairs_hook=refuse_repeated_keys)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}, line {record.line}: not valid JSON: {error}. {OBJECTS_ADVICE}") from error
    if not isinstance(record_object, dict):
        kind = type(record_object).__name__
        raise DataError(f"{path}, line {record.line}: expected a JSON object but found a {kind}. {OBJECTS_ADVICE}")
    items = record_object.items()
    return {name: value if isinstance(value, Hashable) else json.dumps(value, sort_keys=True) for name, value in items}


def _decode_line(line: Record, path: str) -> str:
    try:
        return line.text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}, line {line.line}: not UTF-8: {error.reason}. Save it as UTF-8.") from error


FORMATS: Mapping[str, DataFormat] = {
    "jsonl": LinesFormat("objects", _json_fields),
    "csv": TableFormat(",", quotes=True),
    "tsv": TableFormat("\t", quotes=False),
    "conll": ConllFormat(),
    "lines": LinesFormat("lines, each a record", lambda record, path: {}, names_fields=False),
}


def read_file(path: str, data_format: DataFormat) -> DataFile:
    content = Path(path).read_bytes()
    if content.startswith(UTF_16):
        raise DataError(f"{path} is UTF-16. Save it as UTF-8.")
    file = data_format.read(content.removeprefix(BYTE_ORDER_MARK), path)
    if not file.records:
        raise DataError(f"{path} has no records.")
    return file


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

    def pool(self, division: Division) -> Pool:
        """Return the pool of all records. What was read is described by file, with the names of fields if the format
        has them, or else the first line."""
        texts: List[str] = []
        for file in self.files.values():
            first = file.records[0]
            line = first.text.partition(b"\n")[0].decode("utf-8", "replace").strip()
            fields = first.fields if self.format.names_fields else ()
            texts.append(content_text(file.path, len(file.records), self.format.unit, fields, line))
        contents = [record.content for record in self.records]
        return build_pool(
            self.groups(), self.sizes, contents=contents, contents_read=texts, group_by=self.group_by, division=division
        )

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
            file = directory / f"{set_name}{Path(first_file.path).suffix}"
            file.write_bytes(self.format.format_records(first_file.head, chosen, by_document=is_by_document))
            file_by_set[set_name] = str(file)
        return file_by_set
