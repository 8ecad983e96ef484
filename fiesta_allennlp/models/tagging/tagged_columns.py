"""Tagged sentences from column files. Every error names file, line and tag."""

import hashlib
import re
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Union

from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path
from allennlp.data import DatasetReader, Field, Instance, Token, TokenIndexer
from allennlp.data.fields import MetadataField, SequenceLabelField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer

from fiesta_allennlp.core.errors import DataError
from fiesta_allennlp.models.tagging.encodings import PREFIXES, first_error, spans_of, tags_of

WHITE_SPACE = " \t\r"  # other white space, such as U+00A0, occurs inside words


@dataclass
class Sentence:
    """The words of a sentence, the tag and the line of each, and a name for its document."""

    words: List[str] = field(default_factory=list)
    tags: List[str] = field(default_factory=list)
    lines: List[int] = field(default_factory=list)
    document: str = ""


@DatasetReader.register("tagged_columns")
class TaggedColumnsReader(DatasetReader):
    """Reads sentences with one word and its tag on a line, and a blank line between two sentences.

    It reads the files of CoNLL-2000, 2002 and 2003, WNUT-17, WikiGold and others. AllenNLP's `conll2003` requires
    exactly four columns, checks no tags and keeps no documents. Use `conll2003` if you need its features and its
    labels.

    Fields: `tokens`; `tags`; `metadata` with `words` and `document`. If the file has lines that begin with
    `document_prefix`, the sentences between two such lines have the same `document`. Without such lines, sentences of
    the same words have the same `document`, so that no random split puts a repeated text on both sides.

    Args:
        token_column: The column of the words. Columns count from 0; negative numbers count from the last one.
        tag_column: The column of the tags.
        separator: The text between two columns.
        comment_prefix: The start of lines that the reader skips. By default it skips no line, because `#` is a word in
            many files.
        document_prefix: The start of a line between two documents, such as `-DOCSTART-` or `# newdoc`.
        encoding: How the file's tags write spans: `IOB1`, `BIO` or `BIOUL`. `null` is for tags that write no spans,
            such as parts of speech. `IOB1` also reads a file in BIO.
        convert_to: `BIO` or `BIOUL`. By default tags stay unchanged.
    """

    group_by = "document"
    """All sentences of one document belong to one part of a data split."""

    def __init__(
        self,
        token_column: int = 0,
        tag_column: int = -1,
        separator: Optional[str] = None,
        comment_prefix: Optional[str] = None,
        document_prefix: Optional[str] = None,
        encoding: Optional[str] = "BIO",
        convert_to: Optional[str] = None,
        token_indexers: Optional[Dict[str, TokenIndexer]] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(manual_distributed_sharding=True, manual_multiprocess_sharding=True, **kwargs)
        for name, value, valid in (
            ("encoding", encoding, tuple(PREFIXES)),
            ("convert_to", convert_to, ("BIO", "BIOUL")),
        ):
            if value is not None and value not in valid:
                raise ConfigurationError(f"'{name}' must be one of {', '.join(valid)} but is '{value}'.")
        if convert_to is not None and encoding is None:
            raise ConfigurationError(f"'convert_to' is '{convert_to}', which needs the 'encoding' of the file.")
        self._token_column, self._tag_column, self._separator = token_column, tag_column, separator
        self._comment_prefix, self._document_prefix, self._encoding = comment_prefix, document_prefix, encoding
        self._convert_to = convert_to
        self._token_indexers = token_indexers or {"tokens": SingleIdTokenIndexer()}

    def _read(self, file_path: str) -> Iterable[Instance]:
        for sentence in self.shard_iterable(self.sentences(file_path)):
            yield self.text_to_instance(sentence.words, sentence.tags, document=sentence.document)

    def sentences(self, path: Union[str, PathLike]) -> List[Sentence]:
        """Read all sentences from a file or a URL. A `DataError` names file, line and tag."""
        lines = _text(path).split("\n")
        documents = [document for document in self._documents(lines, str(path)) if document]
        if not documents:
            raise DataError(f"{path} contains no sentences. Each line of a column file holds a word and its tag.")
        if not any(map(self._begins_document, lines)):
            documents = [[sentence] for document in documents for sentence in document]
        for document in documents:
            name = _digest(document)
            for sentence in document:
                sentence.document = name
                wrong = first_error(sentence.tags, self._encoding) if self._encoding is not None else None
                if wrong is not None:
                    position, reason = wrong
                    raise DataError(
                        f"{path}, line {sentence.lines[position]}, word '{sentence.words[position]}': {reason}. "
                        "Correct the tag, or the reader's 'encoding'."
                    )
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
            elif self._comment_prefix is None or not line.startswith(self._comment_prefix):
                columns = self._columns(line)
                num_columns = num_columns or len(columns)
                self._add(sentence, columns, num_columns, f"{path}, line {number}")
                sentence.lines.append(number)
        yield document + ([sentence] if sentence.words else [])

    def _begins_document(self, line: str) -> bool:
        return self._document_prefix is not None and line.startswith(self._document_prefix)

    def _columns(self, line: str) -> List[str]:
        if self._separator is None:
            return re.split(r"[ \t]+", line.strip(WHITE_SPACE))
        return line.rstrip("\r").split(self._separator)

    def _add(self, sentence: Sentence, columns: List[str], num_columns: int, where: str) -> None:
        needed = max(column + 1 if column >= 0 else -column for column in (self._token_column, self._tag_column))
        if len(columns) < max(needed, 2) or len(columns) != num_columns:
            rule = f"at least {max(needed, 2)}" if len(columns) == num_columns else f"{num_columns}, as above,"
            raise DataError(f"{where}: expected {rule} columns but found {len(columns)}: {columns}.")
        word, tag = columns[self._token_column], columns[self._tag_column]
        if not word or not tag:
            raise DataError(f"{where}: empty word or tag: {columns}.")
        sentence.words.append(word)
        sentence.tags.append(tag)

    def text_to_instance(
        self,
        tokens: Sequence[Union[str, Token]],
        tags: Optional[Sequence[str]] = None,
        *,
        document: Optional[str] = None,
    ) -> Instance:
        """Build the instance of one sentence. `tags` are in the reader's `encoding`."""
        token_list = [token if isinstance(token, Token) else Token(token) for token in tokens]
        text = TextField(token_list)
        fields: Dict[str, Field] = {"tokens": text}
        if tags is not None:
            converted = tags_of(spans_of(tags), len(tags), self._convert_to) if self._convert_to else list(tags)
            fields["tags"] = SequenceLabelField(converted, text)
        fields["metadata"] = MetadataField({"words": [token.text for token in token_list], "document": document})
        return Instance(fields)

    def apply_token_indexers(self, instance: Instance) -> None:
        instance.fields["tokens"]._token_indexers = self._token_indexers


def _text(path: Union[str, PathLike]) -> str:
    try:
        content = Path(cached_path(path)).read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(f"{path}, line {line}: not UTF-8: {error.reason}. Save the file as UTF-8.") from error


def _digest(document: Sequence[Sentence]) -> str:
    text = "\n".join(" ".join(sentence.words) for sentence in document)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]
