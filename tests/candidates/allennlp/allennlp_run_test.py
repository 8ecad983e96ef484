import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict

import numpy as np
import pytest
import torch
from allennlp.models import BasicClassifier
from allennlp.models.archival import load_archive

from fiesta_allennlp.candidates.allennlp.allennlp_run import AllenNLPRun, to_number, to_plain_metrics
from fiesta_allennlp.candidates.candidate_run import ReportedMetrics
from fiesta_allennlp.candidates.config import official_paths
from fiesta_allennlp.candidates.data_files import seen_data_reasons, take_snapshot
from fiesta_allennlp.candidates.splits import SET_NAMES
from fiesta_allennlp.core.errors import DataChangedError, FiestaError
from fiesta_allennlp.core.seeding import make_request
from tests.conftest import classifier_config

REQUEST = make_request(99, "a", 0, shared_splits=True)


def make_evaluator(reviews: Path, **kwargs: object) -> AllenNLPRun:
    return AllenNLPRun(classifier_config(reviews), metric="accuracy", **kwargs)


def test_an_evaluation_has_all_that_was_reported_and_is_repeated_by_plain_allennlp(
    reviews: Path, tmp_path: Path, plain_train: Callable[[Path], Dict[str, Any]]
) -> None:
    evaluator, directory = make_evaluator(reviews), tmp_path / "e"
    assert evaluator.salvage(REQUEST, directory) is None
    evaluation = evaluator.evaluate(REQUEST, directory)
    assert evaluation.request == REQUEST and evaluation.seconds > 0
    assert evaluation.score == evaluation.metrics["test_accuracy"]
    assert evaluation.score == json.loads((directory / "metrics.json").read_text())["test_accuracy"]
    assert {"best_validation_accuracy", "training_loss", "test_loss"} <= set(evaluation.metrics)
    assert {path.name for path in directory.iterdir()} >= {"config.json", "metrics.json", "outcome.json"}
    assert not list(directory.glob("*.th")) + list(directory.glob("*.gz")), "nothing large is left"

    again = plain_train(directory / "config.json")
    scored = ("training_loss", "best_validation_accuracy", "test_accuracy", "test_loss")
    assert [evaluation.metrics[name] for name in scored] == [again[name] for name in scored]
    other = evaluator.evaluate(make_request(99, "a", 1, shared_splits=True), tmp_path / "other")
    assert other.metrics["training_loss"] != evaluation.metrics["training_loss"]

    assert evaluator.salvage(REQUEST, directory) == evaluation
    assert evaluator.salvage(make_request(98, "a", 0, shared_splits=True), directory) is None
    by_loss = replace(evaluator, metric="loss").salvage(REQUEST, directory)
    assert by_loss is not None and by_loss.score == evaluation.metrics["test_loss"]
    missing = replace(evaluator, metric="macro_f1")
    assert missing.salvage(REQUEST, directory) is None
    with pytest.raises(FiestaError, match="'test_macro_f1'.* test_accuracy"):
        ReportedMetrics(evaluation.metrics).score(missing.metric_name)
    (directory / "outcome.json").write_text('{"score": 0.')
    assert evaluator.salvage(REQUEST, directory) is None


def test_a_number_of_any_library_is_a_number_and_nothing_else_is() -> None:
    for value in (0.5, np.float32(0.5), np.array(0.5), torch.tensor(0.5, dtype=torch.float16, requires_grad=True)):
        assert to_number(value) == 0.5 and type(to_plain_metrics({"a": value})["a"]) is float
    for value in (torch.tensor([0.5, 1]), np.array([0.5]), "0.5", True, np.True_, torch.tensor(True), 1j, None, [0.5]):
        assert to_number(value) is None and to_plain_metrics({"a": value})["a"] is value


def test_numbers_of_other_libraries_are_metrics(reviews: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = BasicClassifier.get_metrics
    monkeypatch.setattr(BasicClassifier, "get_metrics", lambda *a, **b: {"x": np.float32(made(*a, **b)["accuracy"])})
    evaluation = replace(make_evaluator(reviews), metric="x").evaluate(REQUEST, tmp_path / "e")
    assert type(evaluation.score) is type(evaluation.metrics["test_x"]) is float


def test_changed_files_give_no_score_and_a_kept_archive_predicts_and_names_its_data(
    reviews: Path, tmp_path: Path
) -> None:
    data = take_snapshot(official_paths(classifier_config(reviews)))
    here = make_evaluator(reviews, data=data, keep_archives=True)
    here.evaluate(REQUEST, tmp_path / "1")
    archive = load_archive(str(tmp_path / "1" / "model.tar.gz"))
    instance = archive.dataset_reader.text_to_instance("lovely food")
    archive.dataset_reader.apply_token_indexers(instance)
    assert archive.model.forward_on_instance(instance)["probs"].sum() == pytest.approx(1, abs=1e-6)
    weights = {"archive_file": str(tmp_path / "1" / "model.tar.gz")}
    for model in ({"type": "from_archive", **weights}, {"embedder": {"_pretrained": {**weights, "module_path": "x"}}}):
        reasons = " ".join(seen_data_reasons({"model": model}, data))
        assert re.findall(r"trained on (\S+),", reasons) == [str(reviews / f"{part}.jsonl") for part in SET_NAMES]
    train = reviews / "train.jsonl"
    train.write_text(train.read_text().replace("food", "fare", 1))
    with pytest.raises(DataChangedError, match="train.jsonl has changed"):
        here.evaluate(REQUEST, tmp_path / "2")
    assert not (tmp_path / "2" / "outcome.json").exists()
