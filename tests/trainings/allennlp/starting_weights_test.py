"""What runs start from: archives and weights that were really trained."""

import json
from pathlib import Path
from typing import Any, Callable, Dict

import pytest

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.selection.objections import PRETRAINED
from fiesta_allennlp.trainings.allennlp.evaluator import AllenNLPRun
from fiesta_allennlp.trainings.config import official_paths
from fiesta_allennlp.trainings.data_files import (
    StartingWeights,
    find_starting_weights,
    seen_data_reasons,
    take_snapshot,
)
from tests.conftest import classifier_config


@pytest.fixture
def trained(reviews: Path, tmp_path: Path) -> Path:
    """The directory of a run on a random split, which keeps its archive and has the config beside it."""
    run = AllenNLPRun(classifier_config(reviews), metric="accuracy", keep_archives=True)
    run.evaluate(make_request(1, "a", 0, shared_splits=True), tmp_path / "trained")
    return tmp_path / "trained"


MODELS: Dict[str, Callable[[Path], Dict[str, Any]]] = {
    "archive": lambda trained: {"type": "from_archive", "archive_file": str(trained / "model.tar.gz")},
    "module": lambda trained: {
        "type": "basic_classifier",
        "text_field_embedder": {"_pretrained": {"archive_file": str(trained / "model.tar.gz"), "module_path": "x"}},
    },
    "initializer": lambda trained: {
        "initializer": {"regexes": [[".*", {"type": "pretrained", "weights_file_path": str(trained / "best.th")}]]}
    },
}


@pytest.mark.parametrize("kind", MODELS)
def test_weights_that_have_seen_the_pool_are_found_and_refused_on_random_splits(
    kind: str, reviews: Path, trained: Path
) -> None:
    config = {**classifier_config(reviews), "model": MODELS[kind](trained)}
    snapshot = take_snapshot(official_paths(config))
    (weights,) = find_starting_weights(config, snapshot)
    files = {str(reviews / f"{name}.jsonl") for name in ("train", "validation", "test")}
    assert set(weights.data) == set(weights.pool_data) == files
    candidates = {"scratch": (), "finetuned": (weights,)}
    with pytest.raises(ConfigError, match="'finetuned' starts from .*train.jsonl.*--splits official"):
        PRETRAINED.check(seen_data_reasons(candidates), allowed=("unseeded",))
    PRETRAINED.check(seen_data_reasons(candidates), allowed=("pretrained",))


def test_a_copy_of_the_data_counts_and_other_data_are_named_without_a_refusal(reviews: Path, tmp_path: Path) -> None:
    weights_directory = tmp_path / "weights"
    weights_directory.mkdir()
    copy, other = tmp_path / "copy.jsonl", tmp_path / "other.jsonl"
    copy.write_bytes((reviews / "train.jsonl").read_bytes())
    other.write_text('{"text": "new", "label": "good"}\n')
    trained_on = {"train_data_path": str(copy), "validation_data_path": str(other), "test_data_path": "none"}
    (weights_directory / "config.json").write_text(json.dumps(trained_on))
    config = {**classifier_config(reviews), "model": {"weights_file_path": str(weights_directory / "weights.th")}}
    (weights,) = find_starting_weights(config, take_snapshot(official_paths(config)))
    assert (weights.data, weights.pool_data) == ((str(copy), str(other)), (str(copy),))
    (weights_directory / "config.json").write_text(json.dumps({"train_data_path": str(other)}))
    (weights,) = find_starting_weights(config, take_snapshot(official_paths(config)))
    assert (weights.data, weights.pool_data) == ((str(other),), ())
    assert list(seen_data_reasons({"a": (weights,)})) == []
    assert weights.description.endswith(f"weights.th, trained on {other}")


@pytest.mark.parametrize("content", [None, b"no config", b"[1]", b"[" * 100_000, b'{"dataset_reader": 1}'])
def test_weights_of_unknown_data_are_named(content: Any, reviews: Path, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "config.json").write_bytes(content)
    model = {"embedder": {"type": "pretrained_transformer", "model_name": "bert-base-uncased"}}
    config = {**classifier_config(reviews), "model": {**model, "archive_file": str(tmp_path / "model.tar.gz")}}
    assert find_starting_weights(config, take_snapshot(official_paths(config))) == (
        StartingWeights("bert-base-uncased"),
        StartingWeights(str(tmp_path / "model.tar.gz")),
    )
