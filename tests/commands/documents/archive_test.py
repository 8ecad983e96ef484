"""A real AllenNLP archive, a tiny one, through the whole command."""

import json
import sys
from argparse import Namespace
from pathlib import Path
from tarfile import ReadError
from typing import Any

import pytest
from allennlp.commands.train import train_model
from allennlp.common import Params

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.registry import build
from fiesta_allennlp.documents.archive_server import load_predictor, predict_annotation
from fiesta_allennlp.documents.document_selection import parse_systems
from fiesta_allennlp.documents.system import System
from tests import warm
from tests.conftest import classifier_config, write_all_reviews, write_reviews
from tests.run_files import summary_of


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of a classifier that learned its task."""
    directory = write_all_reviews(tmp_path_factory.mktemp("archive"))
    trainer = {"optimizer": {"type": "adam", "lr": 0.1}, "num_epochs": 6, "cuda_device": -1}
    config = {**classifier_config(directory), "trainer": trainer}
    train_model(Params(json.loads(json.dumps(config))), str(directory / "able"))
    return directory / "able" / "model.tar.gz"


@pytest.fixture
def warm_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python that starts modules from the process that has AllenNLP loaded."""
    python = tmp_path / "python"
    command = f'exec {sys.executable} "$@"'
    python.write_text(f"""#!/bin/sh\n[ $1 = -m ] && set '{warm.__file__}' "$@"\n{command}\n""")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))


@pytest.mark.usefixtures("warm_python")
def test_an_archive_is_asked_as_any_other_system(archive: Path, tmp_path: Path, call: Any) -> None:
    write_reviews(tmp_path / "reviews.jsonl", 80, seed=1)
    lines = [json.loads(line) for line in (tmp_path / "reviews.jsonl").read_text().splitlines()]
    distinct = {line["text"]: line for line in lines}.values()  # nobody is asked the same twice
    documents, poor = tmp_path / "documents.jsonl", tmp_path / "poor.jsonl"
    documents.write_text("\n".join(json.dumps({"id": i, **line}) for i, line in enumerate(distinct)))
    poor.write_text(
        "\n".join(json.dumps({"id": i, "label": "bad" if i % 2 else "good"}) for i, _ in enumerate(distinct))
    )
    options = ["--documents", documents, "-s", tmp_path / "run", "--positive-label", "good", "--seed", 1]
    call.done(f"able={archive}", poor, *options)
    summary = summary_of(tmp_path / "run")
    assert (summary["best"], summary["metric"]) == ("able", "f_measure")
    able = summary["candidates"][0]
    assert able["measure"] > 0.8
    assert able["num_queries"] == able["num_evaluations"]


def test_the_server_answers_with_the_annotation_alone_and_names_what_does_not_load(
    archive: Path, tmp_path: Path
) -> None:
    options = {"predictor": "text_classifier", "overrides": "", "cuda_device": -1, "num_threads": 1}
    args = Namespace(archive=str(archive), include_package=[], **options)
    predictor = load_predictor(args)
    questions = ({"sentence": "lovely fresh food"}, {"text": "awful rude food"}, {"review": "lovely"})
    answers = [predict_annotation(predictor, question) for question in questions]
    assert answers == [{"label": "good"}, {"label": "bad"}, {"error": "KeyError: 'sentence'"}]
    args.archive = str(tmp_path / "model.tar.gz")
    Path(args.archive).write_bytes(b"no archive")
    with pytest.raises(ReadError, match="gzip"):
        load_predictor(args)


def test_an_archive_is_a_command_and_its_content_is_its_identity(tmp_path: Path) -> None:
    path = tmp_path / "model.tar.gz"
    identities = []
    for content in (b"one", b"two"):
        path.write_bytes(content)
        (config, _) = (system.config for system in parse_systems([str(path), f"other={path}"], ["my_package"]).values())
        assert config["command"][-2:] == [str(path), "--include-package=my_package"]
        identities.append(build(System, config).identity())
    assert identities[0] != identities[1]
    with pytest.raises(ConfigError, match="nowhere.tar.gz: file not found"):
        parse_systems(["nowhere.tar.gz", f"other={path}"])
