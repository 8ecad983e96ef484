"""Tagged sentences from column files, and the encodings of their spans. Every error names file, line and tag."""

import hashlib
import re
from dataclasses import dataclass, field
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path
from allennlp.data import DatasetReader, Field, Instance, Token, TokenIndexer
from allennlp.data.fields import MetadataField, SequenceLabelField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer
from allennlp.modules.conditional_random_field.conditional_random_field import is_transition_allowed
from allennlp.training.metrics import Metric

from fiesta_allennlp.core.errors import DataError

PREFIXES: Dict[str, str] = {"IOB1": "IOB", "BIO": "BIO", "BIOUL": "BIOUL"}  # the first letters of tags, by encoding
OUTSIDE = "O"


class Span(NamedTuple):
    """The words `first` to `last` of a sentence, both included."""

    label: str
    first: int
    last: int


def split_tag(tag: str) -> Tuple[str, str]:
    prefix, _, label = tag.partition("-")
    return prefix, label


def is_tag(tag: str, encoding: str) -> bool:
    """Return whether a tag belongs to the encoding, regardless of the tags around it."""
    prefix, _ = split_tag(tag)
    return tag == OUTSIDE or (prefix != OUTSIDE and prefix in tuple(PREFIXES[encoding]))


def first_error(tags: Sequence[str], encoding: str) -> Optional[Tuple[int, str]]:
    """Return the position of the first tag that the encoding forbids, and the reason; None if all tags are valid. In
    IOB1 a `B-` may begin any span, so a sentence in BIO is also valid IOB1, with the same spans."""
    for position, tag in enumerate(tags):
        if not is_tag(tag, encoding):
            return position, f"'{tag}' is not a valid {encoding} tag"
    if encoding == "IOB1":
        return None
    enclosed_tags = [("START", ""), *map(split_tag, tags), ("END", "")] if tags else []
    for position, (previous, current) in enumerate(pairwise(enclosed_tags)):
        if not is_transition_allowed(encoding, *previous, *current):
            if position == len(tags):
                return position - 1, f"{encoding} does not allow '{tags[-1]}' at the end of a sentence"
            context = f"after '{tags[position - 1]}'" if position else "at the beginning of a sentence"
            return position, f"{encoding} does not allow '{tags[position]}' {context}"
    return None


def spans_of(tags: Sequence[str]) -> List[Span]:
    """Return the spans of a sentence, in order, in any of the encodings. Wrong tags count as in CoNLL's evaluation
    script: an `I-` or `L-` that does not continue a span begins a span."""
    spans: List[Span] = []
    is_open = False
    for position, tag in enumerate(tags):
        prefix, label = split_tag(tag)
        if prefix == OUTSIDE:
            is_open = False
        elif is_open and prefix in "IL" and label == spans[-1].label:
            spans[-1] = spans[-1]._replace(last=position)
            is_open = prefix != "L"
        else:
            spans.append(Span(label, position, position))
            is_open = prefix not in "UL"
    return spans


def tags_of(spans: Sequence[Span], num_words: int, encoding: str) -> List[str]:
    """Return the tags, in BIO or BIOUL, of a sentence with these spans."""
    tags = [OUTSIDE] * num_words
    for label, first, last in spans:
        prefixes = ["B", *"I" * (last - first)]
        if encoding == "BIOUL":
            prefixes[-1] = "U" if first == last else "L"
        for position, prefix in zip(range(first, last + 1), prefixes, strict=True):
            tags[position] = f"{prefix}-{label}" if label else prefix
    return tags


class SpanScores(Metric):
    """Computes the scores of CoNLL's evaluation script: a span is right if its label and both of its ends are right.

    Precision, recall and F1 are over the spans of all labels and all sentences, and 0 if no span is right. `spans_of`
    defines how wrong tags of a tagger without constraints count. Without `has_spans`, the only score is the accuracy.
    """

    def __init__(self, has_spans: bool = True) -> None:
        self._has_spans = has_spans
        self.reset()

    def __call__(self, predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> None:
        """Add sentences, with one tag for each word."""
        for tags, gold_tags in zip(predicted, gold, strict=True):
            self.num_words += len(gold_tags)
            self._num_right_tags += sum(tag == gold_tag for tag, gold_tag in zip(tags, gold_tags, strict=True))
            if self._has_spans:
                predicted_spans, gold_spans = set(spans_of(tags)), set(spans_of(gold_tags))
                self._num_predicted += len(predicted_spans)
                self._num_gold += len(gold_spans)
                self._num_right_spans += len(predicted_spans & gold_spans)

    def get_metric(self, reset: bool = False) -> Dict[str, float]:
        """Return `accuracy`, `precision-overall`, `recall-overall` and `f1-measure-overall`."""
        scores = {"accuracy": _ratio(self._num_right_tags, self.num_words)}
        if self._has_spans:
            scores["precision-overall"] = _ratio(self._num_right_spans, self._num_predicted)
            scores["recall-overall"] = _ratio(self._num_right_spans, self._num_gold)
            scores["f1-measure-overall"] = _ratio(2 * self._num_right_spans, self._num_predicted + self._num_gold)
        if reset:
            self.reset()
        return scores

    def reset(self) -> None:
        self.num_words = self._num_right_tags = 0
        self._num_right_spans = self._num_predicted = self._num_gold = 0


def _ratio(count: int, total: int) -> float:
    return count / total if total else 0.0


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
        lines = _read_text(path).split("\n")
        documents = [document for document in self._split_documents(lines, str(path)) if document]
        if not documents:
            raise DataError(f"{path} contains no sentences. Each line of a column file holds a word and its tag.")
        if not any(map(self._begins_document, lines)):
            documents = [[sentence] for document in documents for sentence in document]
        for document in documents:
            text = "\n".join(" ".join(sentence.words) for sentence in document)
            name = hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]
            for sentence in document:
                sentence.document = name
                tag_error = first_error(sentence.tags, self._encoding) if self._encoding is not None else None
                if tag_error is not None:
                    position, reason = tag_error
                    raise DataError(
                        f"{path}, line {sentence.lines[position]}, word '{sentence.words[position]}': {reason}. "
                        "Correct the tag, or the reader's 'encoding'."
                    )
        return [sentence for document in documents for sentence in document]

    def _split_documents(self, lines: Sequence[str], path: str) -> Iterator[List[Sentence]]:
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
                columns = self._split_columns(line)
                num_columns = num_columns or len(columns)
                self._add_word(sentence, columns, num_columns, f"{path}, line {number}")
                sentence.lines.append(number)
        yield document + ([sentence] if sentence.words else [])

    def _begins_document(self, line: str) -> bool:
        return self._document_prefix is not None and line.startswith(self._document_prefix)

    def _split_columns(self, line: str) -> List[str]:
        if self._separator is None:
            return re.split(r"[ \t]+", line.strip(WHITE_SPACE))
        return line.rstrip("\r").split(self._separator)

    def _add_word(self, sentence: Sentence, columns: List[str], num_columns: int, where: str) -> None:
        min_columns = max(column + 1 if column >= 0 else -column for column in (self._token_column, self._tag_column))
        if len(columns) < max(min_columns, 2) or len(columns) != num_columns:
            rule = f"at least {max(min_columns, 2)}" if len(columns) == num_columns else f"{num_columns}, as above,"
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
        instance.fields["tokens"].token_indexers = self._token_indexers


def _read_text(path: Union[str, PathLike]) -> str:
    try:
        content = Path(cached_path(path)).read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(f"{path}, line {line}: not UTF-8: {error.reason}. Save the file as UTF-8.") from error
