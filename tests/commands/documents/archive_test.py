"""Real AllenNLP archives, tiny ones, through the whole command."""

import json
import shutil
from io import StringIO
from pathlib import Path
from typing import Any, Dict

import pytest
from allennlp.commands.train import train_model
from allennlp.common import Params

from fiesta_allennlp.documents.systems import archive_server
from fiesta_allennlp.documents.systems.archive_server import load_predictor, predict_annotation
from fiesta_allennlp.documents.systems.base import Unanswered
from fiesta_allennlp.documents.systems.command import Archive, ProcessSystem
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


def options_of(system: Archive, directory: Path, *packages: str) -> Any:
    """The options of the process that answers."""
    return json.loads(system.start_command(packages)[0][-1])


def test_what_an_archive_is_and_answers(
    archives: Dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = Archive(str(archives["able"]), inputs={"sentence": "review"})
    predictor = load_predictor(options_of(system, tmp_path))
    assert predict_annotation(predictor, {"sentence": "lovely fresh food"}, None) == {"label": "good"}
    assert predict_annotation(predictor, {"sentence": "awful rude food"}, None) == {"label": "bad"}
    failed = predict_annotation(predictor, {"review": "lovely"}, None)
    monkeypatch.setattr(ProcessSystem, "ask", lambda system, question: failed)
    with pytest.raises(Unanswered, match="its predictor failed with KeyError: 'sentence'"):
        system.ask({})
    copy = tmp_path / "copy.tar.gz"
    shutil.copyfile(archives["able"], copy)
    assert Archive(str(copy)).identity() == Archive(str(archives["able"])).identity()
    assert Archive(str(archives["poor"])).identity() != Archive(str(copy)).identity()
    assert Archive(str(copy), predictor="text_classifier").identity() != Archive(str(copy)).identity()


def test_an_archive_that_does_not_load_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.tar.gz").write_bytes(b"no archive")
    answers = StringIO()
    monkeypatch.setattr(archive_server, "_redirect_output", lambda: answers)
    options = options_of(Archive(str(tmp_path / "model.tar.gz")), tmp_path)
    monkeypatch.setattr("sys.argv", ["archive_server", json.dumps(options)])
    monkeypatch.setattr("sys.stdin", StringIO("null\n"))
    with pytest.raises(Exception, match="tar|gzip|archive|file could not"):
        archive_server.main()
    assert f"{tmp_path}/model.tar.gz" in json.loads(answers.getvalue())["error"]
