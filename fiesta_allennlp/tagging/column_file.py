"""Column files, one word with its tag on a line, read so that every complaint names file, line and tag."""

import hashlib
import re
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Iterator, List, Optional, Sequence, Union

from allennlp.common.file_utils import cached_path

from fiesta_allennlp.errors import DataError
from fiesta_allennlp.tagging.encodings import first_error

WHITE_SPACE = " \t\r"
"""Other white space, such as U+00A0, occurs inside of words."""


@dataclass
class Sentence:
    """The words of a sentence, their tags, the line number of each, and a name for the document of the sentence."""

    words: List[str] = field(default_factory=list)
    tags: List[str] = field(default_factory=list)
    lines: List[int] = field(default_factory=list)
    document: str = ""


@dataclass(frozen=True)
class ColumnFormat:
    """The layout of the lines of a file. The fields are the arguments of `TaggedColumnsReader`."""

    token_column: int = 0
    tag_column: int = -1
    separator: Optional[str] = None
    comment_prefix: Optional[str] = None
    document_prefix: Optional[str] = None
    encoding: Optional[str] = "BIO"

    def read(self, path: Union[str, PathLike]) -> List[Sentence]:
        """Read all sentences from a file or a URL.

        Raises:
            DataError: with file, line and tag, if the file is missing, is not UTF-8 or has no sentence. Also if a line
                lacks these columns, or if the encoding forbids the tags.
        """
        lines = _text(path).split("\n")
        documents = [document for document in self._documents(lines, str(path)) if document]
        if not documents:
            raise DataError(f"{path}: has no sentence. A column file has a word and its tag on each line.")
        if not any(map(self._begins_document, lines)):
            documents = [[sentence] for document in documents for sentence in document]
        for document in documents:
            name = _digest(document)
            for sentence in document:
                sentence.document = name
                self._check_tags(sentence, str(path))
        return [sentence for document in documents for sentence in document]

    def _documents(self, lines: Sequence[str], path: str) -> Iterator[List[Sentence]]:
        document: List[Sentence] = []
        sentence = Sentence()
        num_columns = 0
        for number, line in enumerate(lines, start=1):
            if self._begins_document(line) or not line.strip(WHITE_SPACE):
                document += [sentence] if sentence.words else []
                sentence = Sentence()
                if self._begins_document(line):
                    yield document
                    document = []
            elif self.comment_prefix is None or not line.startswith(self.comment_prefix):
                columns = self._columns(line)
                num_columns = num_columns or len(columns)
                self._add(sentence, columns, num_columns, f"{path}, line {number}")
                sentence.lines.append(number)
        yield document + ([sentence] if sentence.words else [])

    def _begins_document(self, line: str) -> bool:
        return self.document_prefix is not None and line.startswith(self.document_prefix)

    def _columns(self, line: str) -> List[str]:
        if self.separator is None:
            return re.split(r"[ \t]+", line.strip(WHITE_SPACE))
        return line.rstrip("\r").split(self.separator)

    def _add(self, sentence: Sentence, columns: List[str], num_columns: int, where: str) -> None:
        needed = max(column + 1 if column >= 0 else -column for column in (self.token_column, self.tag_column))
        if len(columns) < max(needed, 2) or len(columns) != num_columns:
            rule = f"at least {max(needed, 2)} columns"
            if len(columns) != num_columns:
                rule = f"{num_columns} columns as on the lines above"
            raise DataError(f"{where}: expected {rule} but found {len(columns)}: {columns}.")
        word, tag = columns[self.token_column], columns[self.tag_column]
        if not word or not tag:
            raise DataError(f"{where}: the {'tag' if word else 'word'} is empty: {columns}.")
        sentence.words.append(word)
        sentence.tags.append(tag)

    def _check_tags(self, sentence: Sentence, path: str) -> None:
        wrong = first_error(sentence.tags, self.encoding) if self.encoding is not None else None
        if wrong is not None:
            position, reason = wrong
            raise DataError(
                f"{path}, line {sentence.lines[position]}, word '{sentence.words[position]}': {reason}. Correct the "
                "tag, or give the reader the file's `encoding`."
            )


def _text(path: Union[str, PathLike]) -> str:
    """Return the file's content, without a mark of its byte order."""
    try:
        content = Path(cached_path(path)).read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}.") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(f"{path}, line {line}: is not UTF-8 ({error.reason}). Save the file as UTF-8.") from error


def _digest(document: Sequence[Sentence]) -> str:
    text = "\n".join(" ".join(sentence.words) for sentence in document)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]
