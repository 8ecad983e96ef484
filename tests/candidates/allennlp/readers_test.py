"""Configs whose two readers read different instances, and readers that read others each time."""

import itertools
import json
import random
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

import pytest
from allennlp.common import Params
from allennlp.data import DatasetReader, Instance
from allennlp.data.dataset_readers import TextClassificationJsonReader
from allennlp.data.fields import MetadataField
from allennlp.data.tokenizers import WhitespaceTokenizer

from fiesta_allennlp.candidates.allennlp.instances import read_pool
from fiesta_allennlp.candidates.config import evaluation_config
from fiesta_allennlp.candidates.splits import OFFICIAL_RATIOS_DIVISION, SET_NAMES, Division
from fiesta_allennlp.core.errors import ConfigError, DataError
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
    assert read_pool(config, "id").fingerprint == read_pool(plain, "id").fingerprint
    assert read_pool(config, None).fingerprint == read_pool(plain, None).fingerprint
    assert read_pool({**plain, "validation_dataset_reader": None}, None) == read_pool(plain, None)
    made = json.loads(json.dumps(evaluation_config(config, REQUEST)))
    readers = [DatasetReader.from_params(Params(made[key])) for key in READERS]
    read = [list(reader.read(part)) for reader, part in zip(readers, SET_NAMES, strict=False)]
    assert [[len(i["tokens"]) for i in instances] for instances in read] == [[4] * 40, [2] * 12]  # type: ignore


@pytest.mark.parametrize(
    ("training", "evaluating", "group_by", "message"),
    [
        ({"skip": 4}, {}, None, r"groups or labels \(54 and 72 instances\).*--splits official"),
        ({}, {"label": "good"}, "none", r"groups or labels \(72 and 72 instances\)"),
        ({"copies": 2}, {}, "id", r"\(144 and 72 instances\)"),
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
def test_a_file_without_instances_is_named(reviews: Path, division: Division) -> None:
    with pytest.raises(DataError, match=r"'train_data_path': no instances were read. Check \S+train.jsonl"):
        read_pool(config_of(reviews, {"max_instances": 0}, None), None, division=division)
    config = config_of(reviews, {}, None)
    Path(config["test_data_path"]).write_text("")
    with pytest.raises(DataError, match=r"'test_data_path': no instances were read. Check \S+test.jsonl"):
        read_pool(config, None, division=division)


def test_on_official_splits_each_set_is_read_by_its_own_reader(reviews: Path) -> None:
    config = config_of(reviews, {"copies": 3, "skip": 4}, {"skip": 4})
    pool = read_pool(config, None, division=OFFICIAL)
    assert pool.official == pool.targets == {"train": 90, "validation": 9, "test": 15}
    made = evaluation_config(config, REQUEST, division=OFFICIAL)
    assert {key: made[key] for key in config if key != "trainer"} == {k: v for k, v in config.items() if k != "trainer"}


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
        with pytest.raises(ConfigError, match=r"'dataset_reader' \(drawing\) is not deterministic"):
            pool_of(reviews, **wrong)
    for right in ({"seed": 3}, {"drop": "words"}):
        pool_of(reviews, **right)


TERM = '<aspectTerm term="{1}" polarity="{2}" from="{3}" to="{4}"/>'
SENTENCE = '<sentence id="{0}"><text>good {1} here</text><aspectTerms>' + TERM + "</aspectTerms></sentence>"
WORDS = ("fish", "meat", "soup", "rice")


def write_terms(path: Path, num_sentences: int, num_copies: int) -> str:
    """Write a sentence for each of many targets, and copies of the first ones under other ids."""
    lines = [
        SENTENCE.format(number, target, ("positive", "negative")[index % 2], 5, 5 + len(target))
        for number, index in enumerate([*range(num_sentences), *range(num_copies)])
        for target in [f"{WORDS[index % 4]}{index // 4}"]
    ]
    path.write_text(f"<sentences>{''.join(lines)}</sentences>")
    return str(path)


@pytest.mark.parametrize("inputs", [["left", "right"], ["left", "target", "right"]])
@pytest.mark.parametrize("group_by", [None, "none"])
def test_copies_are_records_whatever_the_model_reads(
    tmp_path: Path, inputs: List[str], group_by: Optional[str]
) -> None:
    """The contexts are the same in all records, so a model of these alone cannot tell them apart."""
    train = write_terms(tmp_path / "train.xml", 40, 7)
    config = {"dataset_reader": {"type": "semeval_tdsa", "inputs": inputs}, "train_data_path": train}
    (note,) = read_pool(config, group_by, division=Division(ratios=(0.5, 0.25, 0.25))).notes
    assert note.startswith("14 of 47 records have an exact copy")
