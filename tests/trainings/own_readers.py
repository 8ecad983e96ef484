"""Readers of a user, which read the training set in another way than the other sets. Selections import this module."""

import itertools
from typing import Any, Iterator

from allennlp.data import DatasetReader, Instance
from allennlp.data.dataset_readers import TextClassificationJsonReader
from allennlp.data.fields import MetadataField
from allennlp.data.tokenizers import WhitespaceTokenizer


@DatasetReader.register("reviews_with_ids")
class ReviewsWithIds(TextClassificationJsonReader):
    """Reviews with an id and two other keys.

    # Parameters

    skip : leave out every review whose number in its file is a multiple of this.
    copies : give each review so many times.
    label : give all reviews this label.
    """

    def __init__(self, skip: int = 0, copies: int = 1, label: str = "", **kwargs: Any) -> None:
        super().__init__(tokenizer=WhitespaceTokenizer(), **kwargs)
        self._skip = skip
        self._copies = copies
        self._label = label
        self._running = itertools.count()

    def _read(self, file_path: Any) -> Iterator[Instance]:
        for number, review in enumerate(super()._read(file_path)):
            if self._skip and number % self._skip == 0:
                continue
            for copy in range(self._copies):
                label = self._label or review["label"].label  # type: ignore[attr-defined]
                text = " ".join(token.text for token in review["tokens"].tokens)  # type: ignore[attr-defined]
                instance = self.text_to_instance(text, label)
                keys = {
                    "id": f"{file_path}:{number}",
                    "copy": f"{file_path}:{number}:{copy}",
                    "run": next(self._running),
                }
                instance.add_field("metadata", MetadataField(keys))
                yield instance
