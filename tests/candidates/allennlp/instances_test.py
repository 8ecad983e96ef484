"""What the readers of configs read: alone, two that differ, at random each time, and as a pool that is split again."""

import csv
import itertools
import json
import random
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional

import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Instance
from allennlp.data.dataset_readers import TextClassificationJsonReader
from allennlp.data.fields import LabelField, MetadataField
from allennlp.data.tokenizers import WhitespaceTokenizer

from fiesta_allennlp.candidates.allennlp.instances import groups_of, read_official_sets, read_pool
from fiesta_allennlp.candidates.config import evaluation_config
from fiesta_allennlp.candidates.splits import OFFICIAL_RATIOS_DIVISION, SET_NAMES, Division, check_same_pool
from fiesta_allennlp.core.errors import ConfigError, DataError, ReaderError
from fiesta_allennlp.core.records import Request
from tests.conftest import classifier_config

REQUEST = Request("a", 3, split_seed=11, random_seed=12, numpy_seed=13, pytorch_seed=14)
READERS = ("dataset_reader", "validation_dataset_reader")
OFFICIAL = Division(is_official=True)


@DatasetReader.register("reviews_with_ids")
class ReviewsWithIds(TextClassificationJsonReader):
    """Reviews with an id and a running number. It skips every review whose number is a multiple of `skip`, and gives
    `copies` of each, all with `label` if that is set."""

    def __init__(self, skip: int = 0, copies: int = 1, label: str = "", **kwargs: Any) -> None:
        super().__init__(tokenizer=WhitespaceTokenizer(), **kwargs)
        self._skip, self._copies, self._label = skip, copies, label
        self._running = itertools.count()

    def _read(self, file_path: Any) -> Iterator[Instance]:
        for number, review in enumerate(super()._read(file_path)):
            if self._skip and number % self._skip == 0:
                continue
            for _ in range(self._copies):
                label = self._label or review["label"].label  # type: ignore[attr-defined]
                text = " ".join(token.text for token in review["tokens"].tokens)  # type: ignore[attr-defined]
                instance = self.text_to_instance(text, label)
                keys = {"id": f"{file_path}:{number}", "run": next(self._running)}
                instance.add_field("metadata", MetadataField(keys))
                yield instance


def config_of(reviews: Path, training: Dict[str, Any], evaluating: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    """A classifier that reads the reviews with ids; without `evaluating` there is no validation reader."""
    config = {**classifier_config(reviews), "dataset_reader": {"type": "reviews_with_ids", **training}}
    if evaluating is not None:
        config["validation_dataset_reader"] = {"type": "reviews_with_ids", **evaluating}
    return config


def test_two_readers_that_read_the_same_labels_may_read_other_texts(reviews: Path) -> None:
    config = config_of(reviews, {}, {"max_sequence_length": 2})
    plain = config_of(reviews, {}, None)
    assert read_pool(config, "id")[0].fingerprint == read_pool(plain, "id")[0].fingerprint
    assert read_pool(config, None)[0].fingerprint == read_pool(plain, None)[0].fingerprint
    assert read_pool({**plain, "validation_dataset_reader": None}, None) == read_pool(plain, None)
    made = json.loads(json.dumps(evaluation_config(config, REQUEST)))
    readers = [DatasetReader.from_params(Params(made[key])) for key in READERS]
    read = [list(reader.read(part)) for reader, part in zip(readers, SET_NAMES, strict=False)]
    assert [[len(i["tokens"]) for i in instances] for instances in read] == [[4] * 40, [2] * 12]  # type: ignore


@pytest.mark.parametrize(
    ("training", "evaluating", "group_by", "message"),
    [
        ({"skip": 4}, {}, None, r"\(54 and 72 instances\).*--splits official"),
        ({}, {"label": "good"}, "none", r"groups or labels \(72 and 72 instances\)"),
        ({"max_instances": 0}, {}, "id", r"\(0 and 72 instances\)"),
    ],
)
def test_readers_that_a_random_split_cannot_mix_are_refused(
    reviews: Path, training: Dict[str, Any], evaluating: Dict[str, Any], group_by: Optional[str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        read_pool(config_of(reviews, training, evaluating), group_by)
    plain = classifier_config(reviews)["dataset_reader"]
    with pytest.raises(DataError, match="--group-by id: "):
        read_pool({**config_of(reviews, {}, None), "validation_dataset_reader": plain}, "id")


@pytest.mark.parametrize("division", [OFFICIAL_RATIOS_DIVISION, OFFICIAL])
def test_a_file_that_is_absent_or_without_instances_is_named(reviews: Path, division: Division) -> None:
    with pytest.raises(DataError, match=r"'train_data_path': no instances .*train.jsonl"):
        read_pool(config_of(reviews, {"max_instances": 0}, None), None, division=division)
    config = config_of(reviews, {}, None)
    Path(config["test_data_path"]).write_text("")
    with pytest.raises(DataError, match=r"'test_data_path': no instances .*test.jsonl"):
        read_pool(config, None, division=division)
    Path(config["test_data_path"]).unlink()
    with pytest.raises(DataError, match=r"'test_data_path' is \S+test.jsonl, .*exist"):
        read_pool(config, None, division=division)


def test_on_official_splits_each_set_is_read_by_its_own_reader(reviews: Path) -> None:
    config = config_of(reviews, {"copies": 3, "skip": 4}, {"skip": 4})
    pool, _ = read_pool(config, None, division=OFFICIAL)
    assert pool.official == pool.targets == {"train": 90, "validation": 9, "test": 15}
    made = evaluation_config(config, REQUEST, division=OFFICIAL)
    assert {key: made[key] for key in config if key != "trainer"} == {k: v for k, v in config.items() if k != "trainer"}


@DatasetReader.register("drawing")
class Drawing(TextClassificationJsonReader):
    """Shuffles, from a seed where it has one."""

    def __init__(self, seed: "int | None" = None, **kwargs: Any) -> None:
        super().__init__(tokenizer=WhitespaceTokenizer(), **kwargs)
        self.rng = random if seed is None else random.Random(seed)

    def _read(self, file_path: Any) -> Iterator[Instance]:
        read = list(super()._read(file_path))
        self.rng.shuffle(read)
        yield from read


def test_readers_that_shuffle_differ_unless_they_have_a_seed_of_their_own(reviews: Path) -> None:
    for reader, is_same in (({}, False), ({"seed": 3}, True)):
        config = {**classifier_config(reviews), "dataset_reader": {"type": "drawing", **reader}}
        pools = {name: read_pool(config, None)[0] for name in ("one", "other")}
        with nullcontext() if is_same else pytest.raises(ConfigError, match="groups or labels.*fixed seed"):
            check_same_pool(pools)


# The pool is split again.


def make_reader(reviews: Path, *, parts: Any = SET_NAMES, split_seed: int = 1, **kwargs: Any) -> DatasetReader:
    reader: Dict[str, Any] = classifier_config(reviews)["dataset_reader"]
    paths = {part: str(reviews / f"{part}.jsonl") for part in parts}
    params = {"type": "resplit", "reader": reader, "paths": paths, "split_seed": split_seed, **kwargs}
    return DatasetReader.from_params(Params(params))


def texts(instances: List[Instance]) -> List[str]:
    return [" ".join(token.text for token in instance["tokens"]) for instance in instances]


def test_two_files_make_three_parts_and_the_wrapped_reader_may_read_fewer(reviews: Path) -> None:
    reader = make_reader(reviews, parts=("train", "test"))  # the validation set comes out of the training set
    assert [len(list(reader.read(part))) for part in SET_NAMES] == [20, 20, 20]
    limited = make_reader(reviews)
    limited._reader.max_instances = 9
    assert sum(len(list(limited.read(part))) for part in SET_NAMES) == 27


def test_one_file_is_dealt_out_at_given_ratios(reviews: Path) -> None:
    reader = make_reader(reviews, parts=("train",), ratios=[0.5, 0.2, 0.3])
    assert [len(list(reader.read(part))) for part in SET_NAMES] == [20, 8, 12]
    reader = make_reader(reviews, parts=("train", "validation"), has_test=False)
    assert [len(list(reader.read(part))) for part in ("train", "validation")] == [40, 12]
    with pytest.raises(ConfigurationError, match="'test'"):
        list(reader.read("test"))
    with pytest.raises(ConfigurationError, match="'train'"):
        make_reader(reviews, parts=("test",))
    with pytest.raises(DataError, match="must be 2 positive numbers"):
        list(make_reader(reviews, has_test=False, ratios=[0.5, 0.2, 0.3]).read("train"))


def test_instances_with_equal_lists_are_one_group() -> None:
    words = (["a", "b"], ["a"], ["a", "b"])
    instances = [Instance({"metadata": MetadataField({"words": each})}) for each in words]
    assert groups_of(instances, "words") == [("a", "b"), ("a",), ("a", "b")]
    with pytest.raises(DataError, match="--group-by metadata: .*words"):
        groups_of(instances, "metadata")


def test_prediction_goes_through_the_wrapped_reader(reviews: Path) -> None:
    reader = make_reader(reviews)
    assert texts([reader.text_to_instance("lovely food")]) == ["lovely food"]
    assert reader._tokenizer is reader._reader._tokenizer
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = reader.no_such_thing


class TableReader(DatasetReader):
    """Reads a table of numbers and words with the `csv` module."""

    def _read(self, file_path: str) -> Iterable[Instance]:
        with open(file_path) as file:
            for row in csv.reader(file):
                yield self.text_to_instance(int(row[0]))

    def text_to_instance(self, number: int) -> Instance:  # type: ignore[override]
        return Instance({"number": LabelField(number, skip_indexing=True)})


def test_what_a_reader_raises_is_told_with_how_far_it_came(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,a\n2,b\nx,b\n")
    with pytest.raises(ReaderError, match="a.csv, after 2 instances: ValueError: .*'x'"):
        read_official_sets(TableReader(), {"train": str(tmp_path / "a.csv")})
    (tmp_path / "b.csv").write_text("4,b\n")
    paths = [str(tmp_path / "b.csv"), "none"]
    with pytest.raises(ReaderError, match=f'^\\["{tmp_path}/b.csv", "none"\\], after 0 instances: TypeError'):
        read_official_sets(TableReader(), {"train": paths})
    with pytest.raises(FileNotFoundError):  # which may be there again later
        read_official_sets(TableReader(), {"train": "none"})
