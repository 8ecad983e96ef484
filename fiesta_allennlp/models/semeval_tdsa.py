"""Target-dependent sentiment from the XML files of SemEval-2014 task 4: the format, the tokenizer and the reader."""

import re
from os import PathLike
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Union
from xml.etree import ElementTree

from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Field, Instance, Token, TokenIndexer, Tokenizer
from allennlp.data.fields import LabelField, MetadataField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer

from fiesta_allennlp.core.errors import DataError

_WORD_PATTERN = re.compile(
    r"n't\b"  # the second half of "don't"
    r"|'(?:s|m|d|re|ve|ll)\b"  # the second half of "it's"
    r"|[^\W_]+(?=n't\b)"  # the first half of "don't"
    r"|[^\W_]+(?:-[^\W_]+)*"  # words, numbers, "top-notch"
    r"|\.\.\.|--|\S",
    re.IGNORECASE,
)


@Tokenizer.register("words")
class WordTokenizer(Tokenizer):
    """Splits contractions as the Penn Treebank does (`do n't`, `it 's`) and keeps a hyphenated word whole.

    The result is close to the tokens of the texts behind GloVe, so that few words lack a vector. The tokenizer needs no
    spaCy model, unlike AllenNLP's default. For a language without spaces between words, use another tokenizer.

    """

    def tokenize(self, text: str) -> List[Token]:
        return [Token(match.group(), idx=match.start()) for match in _WORD_PATTERN.finditer(text)]


POLARITIES = ("positive", "negative", "neutral", "conflict")


def read_terms(path: Union[str, PathLike]) -> Iterator[Dict[str, Any]]:
    """Yield the aspect terms of a file, each as the arguments of `SemEvalTdsaReader.text_to_instance`. A `DataError`
    names file and sentence."""
    try:
        root = ElementTree.fromstring(Path(path).read_bytes())
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror}. For the configs in training_configs/tdsa, set FIESTA_DATA to "
            "the directory of the SemEval-2014 files."
        ) from error
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise DataError(f"{path} is not well-formed XML: {error}.") from error
    if root.tag != "sentences":
        raise DataError(f"{path}: the root element must be <sentences> but is <{root.tag}>.")
    for number, sentence in enumerate(root.iter("sentence"), 1):
        where, sentence_id, text = f"{path}, sentence {number}", sentence.get("id"), sentence.find("text")
        if sentence_id is None:
            raise DataError(f"{where}: <sentence> has no attribute 'id'.")
        where += f" ('{sentence_id}')"
        if text is None:
            raise DataError(f"{where}: <sentence> has no <text>.")
        for term in sentence.iter("aspectTerm"):
            yield {**_parse_term("".join(text.itertext()), term, where), "sentence_id": sentence_id}


def _parse_term(text: str, element: ElementTree.Element, where: str) -> Dict[str, Any]:
    try:
        target, label = element.attrib["term"], element.attrib["polarity"]
        start, end = int(element.attrib["from"]), int(element.attrib["to"])
    except KeyError as error:
        raise DataError(f"{where}: <aspectTerm> has no attribute {error}.") from None
    except ValueError as error:
        raise DataError(f"{where}: 'from' and 'to' must be whole numbers: {error}.") from None
    if label not in POLARITIES:
        raise DataError(f"{where}: 'polarity' must be one of {', '.join(POLARITIES)} but is '{label}'.")
    try:
        _target_span(text, target, start, end)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    return {"text": text, "target": target, "start": start, "end": end, "label": label}


TEXT_INPUTS = ("left", "target", "right", "text")


@DatasetReader.register("semeval_tdsa")
class SemEvalTdsaReader(DatasetReader):
    """Reads one instance for each aspect term (Pontiki et al. 2014, subtask 2), labelled with its polarity.

    The reader cuts a sentence at the target's character offsets and tokenises the three pieces separately. The target
    therefore consists of exactly its own characters, even if it ends inside a word.

    Fields: those of `left`, `target`, `right` and `text` that `inputs` names; `label`; `metadata` with `sentence_id`,
    `target`, `from`, `to` and `text`.

    Args:
        inputs: The text fields to make. Every model ignores the fields that it does not read. Fewer fields are faster.
        include_target: Whether `left` ends and `right` starts with the target's own words, as in Tang et al. (2016),
            section 3.2.
        keep_conflict: Whether to keep terms with the polarity `conflict`. The literature omits them.
    """

    group_by = "sentence_id"
    """All targets of one sentence belong to one part of a data split."""

    def __init__(
        self,
        tokenizer: Optional[Tokenizer] = None,
        token_indexers: Optional[Dict[str, TokenIndexer]] = None,
        inputs: Optional[List[str]] = None,
        include_target: bool = False,
        lowercase: bool = True,
        keep_conflict: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(manual_distributed_sharding=True, manual_multiprocess_sharding=True, **kwargs)
        self._inputs = list(TEXT_INPUTS) if inputs is None else inputs
        unknown = [name for name in self._inputs if name not in TEXT_INPUTS]
        if unknown or not self._inputs:
            raise ConfigurationError(f"'inputs' must be one or more of {list(TEXT_INPUTS)} but got {self._inputs}.")
        self._tokenizer = tokenizer or WordTokenizer()
        self._token_indexers = token_indexers or {"tokens": SingleIdTokenIndexer()}
        self._include_target = include_target
        self._lowercase = lowercase
        self._keep_conflict = keep_conflict

    def _read(self, file_path: str) -> Iterable[Instance]:
        terms = [term for term in read_terms(file_path) if self._keep_conflict or term["label"] != "conflict"]
        if not terms:
            raise DataError(f"{file_path} contains no aspect terms (keep_conflict: {self._keep_conflict}).")
        for term in self.shard_iterable(terms):
            yield self.text_to_instance(**term)

    def text_to_instance(
        self,
        text: str,
        target: str,
        *,
        start: Optional[int] = None,
        end: Optional[int] = None,
        label: Optional[str] = None,
        sentence_id: Optional[str] = None,
    ) -> Instance:
        """Build the instance for `target`, which is `text[start:end]`, or occurs exactly once if there are no
        offsets."""
        start, end = _target_span(text, target, start, end)
        left, target_tokens, right = (self._tokenize(part) for part in (text[:start], text[start:end], text[end:]))
        if not target_tokens:
            raise DataError(f"the target '{target}' in '{text}' contains no words.")
        tokens = {"left": left, "target": target_tokens, "right": right, "text": left + target_tokens + right}
        if self._include_target:
            tokens.update(left=left + target_tokens, right=target_tokens + right)
        fields: Dict[str, Field] = {name: TextField(tokens[name]) for name in self._inputs}
        if label is not None:
            fields["label"] = LabelField(label)
        fields["metadata"] = MetadataField(
            {"sentence_id": sentence_id, "target": target, "from": start, "to": end, "text": text}
        )
        return Instance(fields)

    def apply_token_indexers(self, instance: Instance) -> None:
        for name in self._inputs:
            instance.fields[name].token_indexers = self._token_indexers

    def _tokenize(self, text: str) -> List[Token]:
        return self._tokenizer.tokenize(text.lower() if self._lowercase else text)


def _target_span(text: str, target: str, start: Optional[int], end: Optional[int]) -> "tuple[int, int]":
    if start is None and end is None:
        if text.count(target) != 1:
            raise DataError(f"without 'from' and 'to', the target '{target}' must occur exactly once in '{text}'.")
        start = text.index(target)
        end = start + len(target)
    if start is None or end is None:
        raise DataError(f"'from' and 'to' must be set together, but got from={start}, to={end}.")
    if not 0 <= start < end <= len(text) or text[start:end] != target:
        raise DataError(f"characters {start} to {end} of '{text}' are '{text[start:end]}', not the target '{target}'.")
    return start, end
