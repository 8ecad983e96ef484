import csv
from pathlib import Path
from typing import Any, Dict, Iterable, List

import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Instance
from allennlp.data.fields import LabelField, MetadataField

from fiesta_allennlp.candidates.allennlp.instances import groups_of, read_official_sets
from fiesta_allennlp.core.errors import DataError, ReaderError
from tests.conftest import classifier_config

PARTS = ("train", "validation", "test")


def make_reader(reviews: Path, *, parts: Any = PARTS, split_seed: int = 1, **kwargs: Any) -> DatasetReader:
    reader: Dict[str, Any] = classifier_config(reviews)["dataset_reader"]
    paths = {part: str(reviews / f"{part}.jsonl") for part in parts}
    params = {"type": "resplit", "reader": reader, "paths": paths, "split_seed": split_seed, **kwargs}
    return DatasetReader.from_params(Params(params))


def texts(instances: List[Instance]) -> List[str]:
    return [" ".join(token.text for token in instance["tokens"]) for instance in instances]


def test_two_files_make_three_parts_and_the_wrapped_reader_may_read_fewer(reviews: Path) -> None:
    """The parts of three files: `run_test.py` has those of a program, and `pool_test.py` that these are the same."""
    reader = make_reader(reviews, parts=("train", "test"))  # the validation set comes out of the training set
    assert [len(list(reader.read(part))) for part in PARTS] == [20, 20, 20]
    limited = make_reader(reviews)
    limited._reader.max_instances = 9
    assert sum(len(list(limited.read(part))) for part in PARTS) == 27


def test_one_file_is_dealt_out_at_given_ratios(reviews: Path) -> None:
    reader = make_reader(reviews, parts=("train",), ratios=[0.5, 0.2, 0.3])
    assert [len(list(reader.read(part))) for part in PARTS] == [20, 8, 12]
    reader = make_reader(reviews, parts=("train", "validation"), has_test=False)
    assert [len(list(reader.read(part))) for part in ("train", "validation")] == [40, 12]
    with pytest.raises(ConfigurationError, match="'test'"):
        list(reader.read("test"))
    with pytest.raises(DataError, match="must be 2 positive numbers"):
        make_reader(reviews, has_test=False, ratios=[0.5, 0.2, 0.3])


def test_a_path_that_is_no_set_is_read_by_the_wrapped_reader(reviews: Path) -> None:
    reader = make_reader(reviews)
    path = str(reviews / "test.jsonl")
    assert texts(list(reader.read(path))) == texts(list(reader._reader.read(path)))


def test_instances_with_equal_lists_are_one_group() -> None:
    words = (["a", "b"], ["a"], ["a", "b"])
    instances = [Instance({"metadata": MetadataField({"words": each})}) for each in words]
    assert groups_of(instances, "words") == [("a", "b"), ("a",), ("a", "b")]
    with pytest.raises(DataError, match="--group-by metadata: .*words"):
        groups_of(instances, "metadata")


def test_an_unknown_part_or_group_is_an_error(reviews: Path) -> None:
    with pytest.raises(DataError, match="--group-by nonsense: "):
        list(make_reader(reviews, group_by="nonsense").read("train"))
    with pytest.raises(ConfigurationError, match="'train'"):
        make_reader(reviews, parts=("test",))


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
    with pytest.raises(ReaderError, match="a.csv, after 2 instances: ValueError: invalid literal for int.*'x'"):
        read_official_sets(TableReader(), {"train": str(tmp_path / "a.csv")})
    (tmp_path / "b.csv").write_text("4,b\n")
    paths = [str(tmp_path / "b.csv"), "none"]
    with pytest.raises(ReaderError, match=f'^\\["{tmp_path}/b.csv", "none"\\], after 0 instances: TypeError'):
        read_official_sets(TableReader(), {"train": paths})
    with pytest.raises(FileNotFoundError):  # which may be there again later
        read_official_sets(TableReader(), {"train": "none"})
