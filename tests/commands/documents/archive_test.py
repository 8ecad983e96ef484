"""Real AllenNLP archives, tiny ones, through the whole command."""

import json
import shutil
from argparse import Namespace
from pathlib import Path
from tarfile import ReadError
from typing import Any, Dict

import pytest
from allennlp.commands.train import train_model
from allennlp.common import Params

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.registry import build
from fiesta_allennlp.documents.archive_server import load_predictor, predict_annotation
from fiesta_allennlp.documents.document_selection import parse_systems
from fiesta_allennlp.documents.system import System
from tests.commands.documents.conftest import DEFAULT
from tests.conftest import classifier_config, write_reviews
from tests.run_files import summary_of

pytestmark = pytest.mark.xdist_group("archives")


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Dict[str, Path]:
    """A classifier that learned its task, and one that did not."""
    directory = tmp_path_factory.mktemp("archives")
    for part, size in (("train", 60), ("validation", 12), ("test", 12)):
        write_reviews(directory / f"{part}.jsonl", size, seed=size)
    found = {}
    for name, trainer in (
        ("able", {"optimizer": {"type": "adam", "lr": 0.1}, "num_epochs": 6, "cuda_device": -1}),
        ("poor", {"optimizer": {"type": "sgd", "lr": 1e-9}, "num_epochs": 1, "cuda_device": -1}),
    ):
        config = {**classifier_config(directory), "trainer": trainer}
        train_model(Params(json.loads(json.dumps(config))), str(directory / name))
        found[name] = directory / name / "model.tar.gz"
    return found


def test_the_better_archive_is_found(archives: Dict[str, Path], tmp_path: Path, call: Any) -> None:
    write_reviews(tmp_path / "reviews.jsonl", 80, seed=1)
    lines = [json.loads(line) for line in (tmp_path / "reviews.jsonl").read_text().splitlines()]
    documents = tmp_path / "documents.jsonl"
    distinct = {line["text"]: line for line in lines}.values()  # nobody is asked the same twice
    documents.write_text("\n".join(json.dumps({"id": i, **line}) for i, line in enumerate(distinct)))
    given = [f"{name}={path}" for name, path in archives.items()]
    options = ["--documents", documents, "-s", tmp_path / "run", "--positive-label", "good", "--workers", 2]
    call.done(*given, *options)
    summary = summary_of(tmp_path / "run")
    assert (summary["best"], summary["metric"]) == ("able", "f_measure")
    assert summary["belief"] == {**DEFAULT, "average": "binary"}
    assert summary["candidates"][0]["measure"] > 0.9
    assert 0 <= summary["num_queries"] - summary["num_evaluations"] <= 1  # one was under way when it was decided


def test_the_server_answers_with_the_annotation_alone_and_names_what_does_not_load(
    archives: Dict[str, Path], tmp_path: Path
) -> None:
    options = {"predictor": "text_classifier", "overrides": "", "cuda_device": -1, "num_threads": 1}
    args = Namespace(archive=str(archives["able"]), include_package=[], **options)
    predictor = load_predictor(args)
    questions = ({"sentence": "lovely fresh food"}, {"text": "awful rude food"}, {"review": "lovely"})
    answers = [predict_annotation(predictor, question) for question in questions]
    assert answers == [{"label": "good"}, {"label": "bad"}, {"error": "KeyError: 'sentence'"}]
    args.archive = str(tmp_path / "model.tar.gz")
    Path(args.archive).write_bytes(b"no archive")
    with pytest.raises(ReadError, match="gzip"):
        load_predictor(args)


def test_an_archive_is_a_command_and_its_content_is_its_identity(archives: Dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "model.tar.gz"
    identities = []
    for name in ("able", "poor"):
        shutil.copyfile(archives[name], path)
        (config, _) = (system.config for system in parse_systems([str(path), f"other={path}"], ["my_package"]).values())
        assert config["command"][-2:] == [str(path), "--include-package=my_package"]
        identities.append(build(System, config).identity())
    assert identities[0] != identities[1]
    with pytest.raises(ConfigError, match="nowhere.tar.gz: file not found"):
        parse_systems(["nowhere.tar.gz", f"other={path}"])
