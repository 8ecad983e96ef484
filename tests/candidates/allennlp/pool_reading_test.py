"""Configs whose two readers read different instances, and readers that read others each time."""

import itertools
import json
import random
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Instance, TextFieldTensors, Vocabulary
from allennlp.data.dataset_readers import TextClassificationJsonReader
from allennlp.data.fields import MetadataField
from allennlp.data.tokenizers import WhitespaceTokenizer
from allennlp.modules import TextFieldEmbedder
from allennlp.modules.backbones import Backbone
from allennlp.nn.util import get_text_field_mask

from fiesta_allennlp.candidates.allennlp.allennlp_run import AllenNLPRun
from fiesta_allennlp.candidates.allennlp.pool_reading import read_pool
from fiesta_allennlp.candidates.allennlp.preparing import prepare_candidate
from fiesta_allennlp.candidates.candidate_types import type_of
from fiesta_allennlp.candidates.config import evaluation_config
from fiesta_allennlp.candidates.splits import OFFICIAL_RATIOS_DIVISION, SET_NAMES, Division
from fiesta_allennlp.core.errors import ConfigError, DataError
from fiesta_allennlp.core.records import Request
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.core.settings.metrics import Metric
from tests.conftest import classifier_config, write_reviews

REQUEST = Request("a", 3, split_seed=11, random_seed=12, numpy_seed=13, pytorch_seed=14)


@DatasetReader.register("reviews_with_ids")
class ReviewsWithIds(TextClassificationJsonReader):
    """Reviews with an id and two other keys. It skips every review whose number is a multiple of `skip`, and gives
    `copies` of each, all with `label` if that is set."""

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
                key = f"{file_path}:{number}"
                keys = {"id": key, "copy": f"{key}:{copy}", "run": next(self._running)}
                instance.add_field("metadata", MetadataField(keys))
                yield instance


def config_of(reviews: Path, training: Dict[str, Any], evaluating: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    """A classifier that reads the reviews with ids; without `evaluating` there is no validation reader."""
    config = {**classifier_config(reviews), "dataset_reader": {"type": "reviews_with_ids", **training}}
    if evaluating is not None:
        config["validation_dataset_reader"] = {"type": "reviews_with_ids", **evaluating}
    return config


READERS = ("dataset_reader", "validation_dataset_reader")
FILTERED, AUGMENTED = {"skip": 4}, {"copies": 3}


def ids_by_set(config: Dict[str, Any], division: Division) -> Dict[str, List[str]]:
    """What AllenNLP reads for each set of a run, as the ids of the instances."""
    made = json.loads(json.dumps(evaluation_config(config, REQUEST, group_by="id", division=division)))
    keys = {"train": "dataset_reader", "validation": "validation_dataset_reader", "test": "validation_dataset_reader"}
    params = {part: made.get(keys[part], made["dataset_reader"]) for part in division.set_names}
    return {part: [*map(id_of, reader_of(params[part]).read(part))] for part in division.set_names}


def reader_of(params: Dict[str, Any]) -> DatasetReader:
    return DatasetReader.from_params(Params(json.loads(json.dumps(params))))


def id_of(instance: Instance) -> str:
    return instance["metadata"]["id"]


@pytest.mark.parametrize(
    ("training", "division"), [(FILTERED, Division()), (AUGMENTED, Division(ratios=(0.5, 0.5), scored="validation"))]
)
def test_each_set_has_the_items_of_the_split_as_its_own_reader_reads_them(
    reviews: Path, training: Dict[str, Any], division: Division
) -> None:
    plain = ids_by_set(config_of(reviews, {}, None), division)
    read = ids_by_set(config_of(reviews, training, {}), division)
    for part in division.set_names[1:]:
        assert read[part] == plain[part], "as the validation reader reads alone"
    kept = [key for key in plain["train"] if int(key.rpartition(":")[2]) % 4 or "skip" not in training]
    assert read["train"] == [key for key in kept for _ in range(training.get("copies", 1))]
    assert len(read["train"]) != len(plain["train"])
    alone, pool = (read_pool(config_of(reviews, *readers), "id") for readers in (({}, None), (training, {})))
    assert (pool.official, pool.targets, pool.num_groups) == (alone.official, alone.targets, 72)
    assert pool.fingerprint == alone.fingerprint, "so that it can be compared with a candidate that reads all alike"


def test_without_a_key_positions_match_where_both_readers_give_as_much(reviews: Path) -> None:
    config = config_of(reviews, {}, {"max_sequence_length": 2})
    plain = config_of(reviews, {}, None)
    assert read_pool(config, None) == read_pool(plain, None)
    assert read_pool({**plain, "validation_dataset_reader": None}, None) == read_pool(plain, None)
    made = evaluation_config(config, REQUEST)
    assert "split_reader" not in made["dataset_reader"]
    read = {part: reader_of(made[key]).read(part) for key, part in zip(READERS, SET_NAMES, strict=False)}
    assert [[len(i["tokens"]) for i in read[part]] for part in SET_NAMES[:2]] == [[4] * 40, [2] * 12]


@pytest.mark.parametrize(
    ("training", "evaluating", "group_by", "message"),
    [
        (FILTERED, {}, None, "54 and 72 instances"),
        ({}, {"label": "good"}, "none", "other labels.*use --group-by with an id"),
        ({}, FILTERED, "id", r"'validation_dataset_reader' reads no instances with id = '\S+train.jsonl:0'"),
        ({"max_instances": 0}, {}, "id", "'dataset_reader' reads no instances"),
    ],
)
def test_readers_that_do_not_match_are_refused(
    reviews: Path, training: Dict[str, Any], evaluating: Dict[str, Any], group_by: Optional[str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        read_pool(config_of(reviews, training, evaluating), group_by)
    plain = classifier_config(reviews)["dataset_reader"]
    keyless = {**config_of(reviews, {}, None), "validation_dataset_reader": plain}
    with pytest.raises(DataError, match="'validation_dataset_reader': --group-by id: "):
        read_pool(keyless, "id")


@pytest.mark.parametrize("division", [OFFICIAL_RATIOS_DIVISION, Division(is_official=True)])
def test_a_file_without_instances_is_named(reviews: Path, division: Division) -> None:
    with pytest.raises(DataError, match=r"'train_data_path': no instances were read. Check \S+train.jsonl"):
        read_pool(config_of(reviews, {"max_instances": 0}, None), None, division=division)
    config = config_of(reviews, {}, None)
    Path(config["test_data_path"]).write_text("")
    with pytest.raises(DataError, match=r"'test_data_path': no instances were read. Check \S+test.jsonl"):
        read_pool(config, None, division=division)


def test_on_official_splits_each_set_is_read_by_its_own_reader(reviews: Path) -> None:
    division = Division(is_official=True)
    config = config_of(reviews, {**AUGMENTED, "skip": 4}, FILTERED)
    pool = read_pool(config, None, division=division)
    assert pool.official == pool.targets == {"train": 90, "validation": 9, "test": 15}
    made = evaluation_config(config, REQUEST, division=division)
    assert {key: made[key] for key in config if key != "trainer"} == {k: v for k, v in config.items() if k != "trainer"}


def test_what_a_split_reader_cannot_do_is_an_error(reviews: Path) -> None:
    made = evaluation_config(config_of(reviews, {}, FILTERED), REQUEST, group_by="id")["dataset_reader"]
    with pytest.raises(DataError, match=r"'split_reader' yields no instances with id = '\S+train.jsonl:0'"):
        list(reader_of(made).read("train"))
    with pytest.raises(ConfigurationError, match="'split_reader' needs 'group_by'"):
        reader_of({**made, "group_by": None})
    made = evaluation_config(config_of(reviews, {"max_instances": 0}, {}), REQUEST, group_by="id")["dataset_reader"]
    with pytest.raises(DataError, match="no instances for the training set"):
        list(reader_of(made).read("train"))


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


@pytest.mark.parametrize("inputs", [["left", "right"], ["text"], ["target"], ["left", "target", "right"]])
@pytest.mark.parametrize("group_by", [None, "none"])
def test_copies_are_records_whatever_the_model_reads(
    tmp_path: Path, inputs: List[str], group_by: Optional[str]
) -> None:
    """The contexts are the same in all records, so a model of these alone cannot tell them apart."""
    train = write_terms(tmp_path / "train.xml", 40, 7)
    config = {"dataset_reader": {"type": "semeval_tdsa", "inputs": inputs}, "train_data_path": train}
    (note,) = read_pool(config, group_by, division=Division(ratios=(0.5, 0.25, 0.25))).notes
    assert note.startswith("14 of 47 records have an exact copy")


OFFICIAL = Division(is_official=True)
TASKS = ("food", "hotels")
SIZES = {"train": 20, "validation": 6, "test": 10}


@Backbone.register("embedding_alone")
class EmbeddingAlone(Backbone):
    """Gives every token its embedding."""

    def __init__(self, vocab: Vocabulary, text_field_embedder: TextFieldEmbedder) -> None:
        super().__init__()
        self._embedder = text_field_embedder

    def forward(self, tokens: TextFieldTensors) -> Dict[str, torch.Tensor]:  # type: ignore[override]
        return {"encoded_text": self._embedder(tokens), "encoded_text_mask": get_text_field_mask(tokens)}


@pytest.fixture
def config(tmp_path: Path) -> Dict[str, Any]:
    """Two classifiers on one embedding, over 36 reviews each."""
    made = classifier_config(tmp_path)
    for part, size in SIZES.items():
        paths = {task: str(tmp_path / f"{task}_{part}.jsonl") for task in TASKS}
        for seed, path in enumerate(paths.values()):
            write_reviews(Path(path), size, seed=size + seed)
        made[f"{part}_data_path"] = paths
    made["dataset_reader"] = {"type": "multitask", "readers": dict.fromkeys(TASKS, made["dataset_reader"])}
    heads = {task: {"type": "classifier", "seq2vec_encoder": made["model"]["seq2vec_encoder"]} for task in TASKS}
    embedder = made["model"]["text_field_embedder"]
    backbone = {"type": "embedding_alone", "text_field_embedder": embedder}
    made["model"] = {"type": "multitask", "backbone": backbone, "heads": heads}
    made["data_loader"] = {"type": "multitask", "scheduler": {"batch_size": 4}}
    return json.loads(json.dumps(made))


def test_the_metrics_of_every_task_can_be_compared(config: Dict[str, Any], tmp_path: Path) -> None:
    with (tmp_path / "hotels_train.jsonl").open("a") as out:
        out.write('{"text": "bedbugs", "label": "bad"}\n')
    type_of(config).check(metric=Metric("hotels_accuracy"), division=OFFICIAL)
    config["trainer"]["validation_metric"] = "+hotels_accuracy"
    preparation = prepare_candidate(config, group_by=None, vectors_directory=tmp_path / "v", division=OFFICIAL)
    assert preparation.metrics == ["food_accuracy", "hotels_accuracy"]
    assert preparation.pool.official == {"train": 41, "validation": 12, "test": 20}
    assert "bedbugs" in preparation.pool.words
    evaluator = AllenNLPRun(config, "hotels_accuracy", division=OFFICIAL)
    request = make_request(99, "a", 0, shared_splits=True)
    evaluation = evaluator.evaluate(request, tmp_path / "e")
    assert evaluation.score == evaluation.metrics["test_hotels_accuracy"]


def test_random_splits_are_refused_and_every_task_needs_a_path(config: Dict[str, Any]) -> None:
    type_of(config).check(metric=Metric("food_accuracy"), division=OFFICIAL_RATIOS_DIVISION)
    with pytest.raises(ConfigError, match="'dataset_reader' reads several tasks.*--splits official"):
        read_pool(config, None)
    for path in ("food_train.jsonl", {"food": "food_train.jsonl"}):
        config["train_data_path"] = path
        with pytest.raises(ConfigError, match="'train_data_path' .*'dataset_reader', food, hotels"):
            read_pool(config, None, division=OFFICIAL)
