"""Multitask configs: official splits are trained as AllenNLP does, random ones are refused."""

import json
from pathlib import Path
from typing import Any, Dict

import pytest
import torch
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.modules import TextFieldEmbedder
from allennlp.modules.backbones import Backbone
from allennlp.nn.util import get_text_field_mask

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.core.splits import AT_OFFICIAL_RATIOS, Division
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.trainings.allennlp.evaluator import AllenNLPTraining
from fiesta_allennlp.trainings.allennlp.pool_reading import read_pool
from fiesta_allennlp.trainings.allennlp.preparing import prepare_candidate
from fiesta_allennlp.trainings.candidate_types import type_of
from tests.conftest import classifier_config, write_reviews

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
    evaluator = AllenNLPTraining(config, "hotels_accuracy", division=OFFICIAL)
    request = make_request(99, "a", 0, shared_splits=True)
    evaluation = evaluator.evaluate(request, tmp_path / "e")
    assert evaluation.score == evaluation.metrics["test_hotels_accuracy"] and len(evaluator.files(request)) == 6


def test_random_splits_are_refused_and_every_task_needs_a_path(config: Dict[str, Any]) -> None:
    type_of(config).check(metric=Metric("food_accuracy"), division=AT_OFFICIAL_RATIOS)
    with pytest.raises(ConfigError, match="'dataset_reader' is a multitask reader .*--splits official"):
        read_pool(config, None)
    for path in ("food_train.jsonl", {"food": "food_train.jsonl"}):
        config["train_data_path"] = path
        with pytest.raises(ConfigError, match="'train_data_path' .*'dataset_reader', food, hotels"):
            read_pool(config, None, division=OFFICIAL)
