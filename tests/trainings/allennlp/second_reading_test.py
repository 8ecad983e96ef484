"""Readers that draw: from no seed, from one of their own, and to vary the text alone."""

import random
from pathlib import Path
from typing import Any, Iterator

import pytest
from allennlp.data import DatasetReader, Instance
from allennlp.data.dataset_readers import TextClassificationJsonReader
from allennlp.data.tokenizers import WhitespaceTokenizer

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.trainings.allennlp.pool_reading import read_pool
from tests.conftest import classifier_config


@DatasetReader.register("drawing")
class Drawing(TextClassificationJsonReader):
    """Shuffles, from a seed where it has one; or drops words, or labels before it shuffles."""

    def __init__(self, seed: "int | None" = None, drop: str = "", **kwargs: Any) -> None:
        super().__init__(tokenizer=WhitespaceTokenizer(), **kwargs)
        self.rng = random if seed is None else random.Random(seed)
        self.drop = drop

    def _read(self, file_path: Any) -> Iterator[Instance]:
        read = list(super()._read(file_path))
        if self.drop == "words":
            for instance in read:
                instance.fields["tokens"].tokens.pop(self.rng.randrange(3))  # type: ignore[attr-defined]
        else:
            self.rng.shuffle(read)
        for instance in read:
            if self.drop == "labels":
                del instance.fields["label"]
            yield instance


def pool_of(reviews: Path, **reader: Any) -> None:
    read_pool({**classifier_config(reviews), "dataset_reader": {"type": "drawing", **reader}}, None)


def test_a_reader_that_draws_without_a_seed_is_refused_and_its_own_seed_and_varied_words_pass(reviews: Path) -> None:
    for wrong in ({}, {"drop": "labels"}):
        with pytest.raises(ConfigError, match=r"'dataset_reader' \(Drawing\) is not deterministic"):
            pool_of(reviews, **wrong)
    for right in ({"seed": 3}, {"drop": "words"}):
        pool_of(reviews, **right)
