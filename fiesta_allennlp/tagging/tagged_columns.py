"""Tagged sentences from column files."""

from typing import Any, Dict, Iterable, List, Optional, Sequence, Union

from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Field, Instance, Token, TokenIndexer
from allennlp.data.fields import MetadataField, SequenceLabelField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer

from fiesta_allennlp.errors import did_you_mean
from fiesta_allennlp.tagging.column_file import ColumnFormat
from fiesta_allennlp.tagging.encodings import PREFIXES, spans_of, tags_of


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
        _check_choice("encoding", encoding, PREFIXES)
        _check_choice("convert_to", convert_to, ("BIO", "BIOUL"))
        if convert_to is not None and encoding is None:
            raise ConfigurationError(f"convert_to is '{convert_to}', which needs the `encoding` of the file.")
        texts = {"separator": separator, "comment_prefix": comment_prefix, "document_prefix": document_prefix}
        for name, text in texts.items():
            if text == "":
                raise ConfigurationError(f"{name} must be a text with characters, or be left out, but is empty.")
        self._format = ColumnFormat(token_column, tag_column, separator, comment_prefix, document_prefix, encoding)
        self._convert_to = convert_to
        self._token_indexers = token_indexers or {"tokens": SingleIdTokenIndexer()}

    def _read(self, file_path: str) -> Iterable[Instance]:
        for sentence in self.shard_iterable(self._format.read(file_path)):
            yield self.text_to_instance(sentence.words, sentence.tags, document=sentence.document)

    def text_to_instance(
        self,
        tokens: Sequence[Union[str, Token]],
        tags: Optional[Sequence[str]] = None,
        *,
        document: Optional[str] = None,
    ) -> Instance:
        """Build the instance of one sentence. `tags` are in the reader's `encoding`."""
        made = [token if isinstance(token, Token) else Token(token) for token in tokens]
        text = TextField(made)
        fields: Dict[str, Field] = {"tokens": text}
        if tags is not None:
            fields["tags"] = SequenceLabelField(self._converted(tags), text)
        fields["metadata"] = MetadataField({"words": [token.text for token in made], "document": document})
        return Instance(fields)

    def apply_token_indexers(self, instance: Instance) -> None:
        instance.fields["tokens"]._token_indexers = self._token_indexers

    def _converted(self, tags: Sequence[str]) -> List[str]:
        if self._convert_to is None:
            return list(tags)
        return tags_of(spans_of(tags), len(tags), self._convert_to)


def _check_choice(name: str, value: Optional[str], choices: Iterable[str]) -> None:
    known = list(choices)
    if value is not None and value not in known:
        raise ConfigurationError(f"{name} must be one of {known} but is '{value}'.{did_you_mean(value, known)}")
