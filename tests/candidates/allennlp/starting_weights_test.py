"""What runs start from: archives and weights that were really trained."""

import json
import re
import tarfile
from io import BytesIO
from pathlib import Path
from typing import Any, Callable, Dict

import pytest

from fiesta_allennlp.candidates.candidate_types import AllenNLPRun
from fiesta_allennlp.candidates.config import official_paths, seen_data_reasons
from fiesta_allennlp.candidates.data_files import take_snapshot
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.selecting.objections import PRETRAINED
from tests.conftest import classifier_config


@pytest.fixture
def trained(reviews: Path, tmp_path: Path) -> Path:
    """The directory of a run on a random split, which keeps its archive and has the config beside it."""
    pytest.importorskip("allennlp")
    run = AllenNLPRun(classifier_config(reviews), metric="accuracy", keep_models=True)
    run.evaluate(make_request(1, "a", 0, shared_splits=True), tmp_path / "trained")
    return tmp_path / "trained"


MODELS: Dict[str, Callable[[Path], Dict[str, Any]]] = {
    "archive": lambda trained: {"type": "from_archive", "archive_file": str(trained / "model.tar.gz")},
    "module": lambda trained: {
        "type": "basic_classifier",
        "text_field_embedder": {"_pretrained": {"archive_file": str(trained / "model.tar.gz"), "module_path": "x"}},
    },
}


@pytest.mark.parametrize("kind", MODELS)
def test_weights_that_have_seen_the_pool_are_refused(kind: str, reviews: Path, trained: Path) -> None:
    config = {**classifier_config(reviews), "model": MODELS[kind](trained)}
    reasons = list(seen_data_reasons(config, take_snapshot(official_paths(config))))
    assert [re.findall(r"trained on (\S+),", reason) for reason in reasons] == [
        [str(reviews / f"{name}.jsonl")] for name in ("train", "validation", "test")
    ]
    with pytest.raises(ConfigError, match="model.tar.gz, which it starts from, was .*--splits official or other"):
        PRETRAINED.check(reasons, allowed=("unseeded",))
    PRETRAINED.check(reasons, allowed=("pretrained",))


def write_archive(path: Path, content: bytes) -> str:
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("config.json")
        member.size = len(content)
        archive.addfile(member, BytesIO(content))
    return str(path)


def test_a_copy_of_the_data_is_refused_and_other_data_are_not(reviews: Path, tmp_path: Path) -> None:
    copy, other = tmp_path / "copy.jsonl", tmp_path / "other.jsonl"
    copy.write_bytes((reviews / "train.jsonl").read_bytes())
    other.write_text('{"text": "new", "label": "good"}\n')
    for trained_on in (copy, other):
        own = {"train_data_path": str(trained_on), "validation_data_path": str(other), "test_data_path": str(copy)}
        archive = write_archive(tmp_path / "model.tar.gz", json.dumps(own).encode())
        config = {**classifier_config(reviews), "model": {"archive_file": archive}}
        reasons = list(seen_data_reasons(config, take_snapshot(official_paths(config))))
        assert len(reasons) == (trained_on == copy) and all(f"trained on {copy}" in reason for reason in reasons)


@pytest.mark.parametrize("content", [None, b"no config", b"[1]", b"[" * 100_000, b'{"dataset_reader": 1}'])
def test_weights_of_unknown_data_pass(content: Any, reviews: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.tar.gz"
    archive = str(path) if content is None else write_archive(path, content)
    model = {"embedder": {"type": "pretrained_transformer", "model_name": "bert-base-uncased"}}
    config = {**classifier_config(reviews), "model": {**model, "archive_file": archive}}
    assert list(seen_data_reasons(config, take_snapshot(official_paths(config)))) == []
