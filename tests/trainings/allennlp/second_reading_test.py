"""Readers that draw: from no seed, from one of their own, and to vary the text alone."""

import json
import random
from pathlib import Path
from typing import Any, Iterator, List

import pytest
from allennlp.data import DatasetReader, Instance, Token
from allennlp.data.dataset_readers import TextClassificationJsonReader
from allennlp.data.fields import TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer
from allennlp.data.tokenizers import WhitespaceTokenizer

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.trainings.allennlp import pool_checks
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


@pytest.mark.parametrize("reader", [{}, {"drop": "labels"}])
def test_a_reader_that_draws_without_a_seed_is_named(reviews: Path, reader: Any) -> None:
    with pytest.raises(ConfigError, match=r"'dataset_reader' \(Drawing\) reads other instances from \S+train.jsonl "):
        pool_of(reviews, **reader)


@pytest.mark.parametrize("reader", [{"seed": 3}, {"drop": "words"}])
def test_a_seed_of_its_own_and_varied_words_pass(reviews: Path, reader: Any) -> None:
    pool_of(reviews, **reader)


def test_only_the_first_instances_are_read_again(reviews: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: List[str] = []

    class Counting(DatasetReader):
        def _read(self, file_path: Any) -> Iterator[Instance]:
            for line in Path(file_path).read_text().splitlines():
                given.append(line)
                yield Instance({"text": TextField([Token(json.loads(line)["text"])], {"t": SingleIdTokenIndexer()})})

    paths = {part: reviews / f"{part}.jsonl" for part in ("train", "validation", "test")}
    by_part = {part: list(Counting()._read(path)) for part, path in paths.items()}
    given.clear()
    monkeypatch.setattr(pool_checks, "MOST_READ_AGAIN", 45)
    pool_checks.check_reads_alike(Counting(), paths, by_part)
    assert len(given) == 45, "40 of the training set and 5 of the validation set"
    monkeypatch.setattr(Counting, "_read", lambda self, path: given.append("all at once"))
    monkeypatch.setattr(pool_checks, "MOST_READ_AT_ONCE", 71)  # of 72
    pool_checks.check_reads_alike(Counting(), paths, by_part)
    assert len(given) == 45
