import json
from pathlib import Path
from typing import Any, Dict

import numpy as np
import pytest
import torch
from allennlp.models import BasicClassifier, Model
from allennlp.models.archival import load_archive

from fiesta_allennlp.errors import DataChangedError, FiestaError
from fiesta_allennlp.seeding import make_request
from fiesta_allennlp.trainings.allennlp.evaluator import AllenNLPTraining, as_plain, number_of
from fiesta_allennlp.trainings.allennlp.preparing import prepare_candidate
from fiesta_allennlp.trainings.config import official_paths
from fiesta_allennlp.trainings.data_files import mark_data
from tests.conftest import classifier_config
from tests.warm import Command

REQUEST = make_request(99, "a", 0, shared_splits=True)


def make_evaluator(reviews: Path, **kwargs: object) -> AllenNLPTraining:
    return AllenNLPTraining(configs={"a": classifier_config(reviews)}, metric="accuracy", **kwargs)


def test_an_evaluation_has_the_test_metric_and_everything_that_was_reported(reviews: Path, tmp_path: Path) -> None:
    evaluation = make_evaluator(reviews).evaluate(REQUEST, tmp_path / "e")
    assert evaluation.request == REQUEST
    assert evaluation.score == evaluation.metrics["test_accuracy"]
    assert evaluation.score == json.loads((tmp_path / "e" / "metrics.json").read_text())["test_accuracy"]
    assert {"best_validation_accuracy", "training_loss", "test_loss"} <= set(evaluation.metrics)
    assert evaluation.seconds > 0
    assert {path.name for path in (tmp_path / "e").iterdir()} >= {"config.json", "metrics.json", "outcome.json"}
    assert not list((tmp_path / "e").glob("*.th")) + list((tmp_path / "e").glob("*.gz")), "nothing large is left"


def test_the_same_request_gives_the_same_score_and_another_one_another_split(reviews: Path, tmp_path: Path) -> None:
    evaluator = make_evaluator(reviews)
    first = evaluator.evaluate(REQUEST, tmp_path / "1")
    again = evaluator.evaluate(REQUEST, tmp_path / "2")
    other = evaluator.evaluate(make_request(99, "a", 1, shared_splits=True), tmp_path / "3")
    scored = [name for name in first.metrics if "memory" not in name]
    assert [first.metrics[name] for name in scored] == [again.metrics[name] for name in scored]
    assert first.metrics["training_loss"] != other.metrics["training_loss"]


def test_plain_allennlp_train_on_the_config_repeats_the_evaluation(reviews: Path, tmp_path: Path) -> None:
    evaluation = make_evaluator(reviews).evaluate(REQUEST, tmp_path / "e")
    train = Command(
        ["-m", "allennlp", "train", tmp_path / "e" / "config.json", "-s", tmp_path / "p"]
        + ["--include-package", "fiesta_allennlp.plugin"]
    )
    output, _ = train.communicate()
    assert train.returncode == 0, output
    assert json.loads((tmp_path / "p" / "metrics.json").read_text())["test_accuracy"] == evaluation.score


def test_a_kept_archive_predicts(reviews: Path, tmp_path: Path) -> None:
    make_evaluator(reviews, keep_archives=True).evaluate(REQUEST, tmp_path / "e")
    archive = load_archive(str(tmp_path / "e" / "model.tar.gz"))
    instance = archive.dataset_reader.text_to_instance("lovely food")
    archive.dataset_reader.apply_token_indexers(instance)
    assert archive.model.forward_on_instance(instance)["probs"].sum() == pytest.approx(1, abs=1e-6)


def test_finished_work_of_the_same_request_is_taken_over_once_it_is_complete(reviews: Path, tmp_path: Path) -> None:
    evaluator = make_evaluator(reviews)
    assert evaluator.salvage(REQUEST, tmp_path / "e") is None
    evaluation = evaluator.evaluate(REQUEST, tmp_path / "e")
    assert evaluator.salvage(REQUEST, tmp_path / "e") == evaluation
    assert evaluator.salvage(make_request(98, "a", 0, shared_splits=True), tmp_path / "e") is None
    assert AllenNLPTraining(configs=evaluator.configs, metric="loss").salvage(REQUEST, tmp_path / "e") is None
    (tmp_path / "e" / "outcome.json").write_text('{"score": 0.')
    assert evaluator.salvage(REQUEST, tmp_path / "e") is None


def test_a_metric_that_is_missing_is_an_error(reviews: Path, tmp_path: Path) -> None:
    missing = AllenNLPTraining(configs={"a": classifier_config(reviews)}, metric="macro_f1")
    with pytest.raises(FiestaError, match="no metric 'test_macro_f1'; it reported: .*test_accuracy"):
        missing.evaluate(REQUEST, tmp_path / "1")


def test_a_number_of_any_library_is_a_number_and_nothing_else_is() -> None:
    for value in (0.5, np.float32(0.5), np.array(0.5), torch.tensor(0.5, dtype=torch.float16, requires_grad=True)):
        assert number_of(value) == 0.5 and type(as_plain({"a": value})["a"]) is float
    for value in (torch.tensor([0.5, 1]), np.array([0.5]), "0.5", True, np.True_, torch.tensor(True), 1j, None, [0.5]):
        assert number_of(value) is None and as_plain({"a": value})["a"] is value


@Model.register("numbers_of_other_libraries")
class NumbersOfOtherLibraries(BasicClassifier):
    """Reports its accuracy as NumPy and torch have numbers."""

    def get_metrics(self, reset: bool = False) -> Dict[str, Any]:
        accuracy = super().get_metrics(reset)["accuracy"]
        return {"accuracy": np.float32(accuracy), "tensor": torch.tensor(accuracy)}


def test_numbers_of_other_libraries_are_metrics(reviews: Path, tmp_path: Path) -> None:
    config = classifier_config(reviews, type="numbers_of_other_libraries")
    preparation = prepare_candidate(config, group_by=None, vectors_directory=tmp_path / "v")
    assert preparation.metrics == {"accuracy", "tensor"}
    evaluation = AllenNLPTraining(configs={"a": config}, metric="tensor").evaluate(REQUEST, tmp_path / "e")
    wanted = make_evaluator(reviews).evaluate(REQUEST, tmp_path / "w").score
    assert evaluation.score == evaluation.metrics["test_accuracy"] == pytest.approx(wanted, abs=1e-6)


def test_no_score_is_made_of_data_that_changed(reviews: Path, tmp_path: Path) -> None:
    data = {"a": mark_data(official_paths(classifier_config(reviews)))}
    evaluator = make_evaluator(reviews, data=data)
    evaluator.evaluate(REQUEST, tmp_path / "1")
    text = (reviews / "train.jsonl").read_text()
    (reviews / "train.jsonl").write_text(text.replace("food", "fare", 1))
    with pytest.raises(DataChangedError, match="train.jsonl has changed"):
        evaluator.evaluate(REQUEST, tmp_path / "2")
    assert not (tmp_path / "2" / "outcome.json").exists()


def test_files_at_other_places_give_the_same_score_and_the_config_names_the_original_ones(
    reviews: Path, tmp_path: Path
) -> None:
    here = make_evaluator(reviews)
    wanted = here.evaluate(REQUEST, tmp_path / "1")
    (tmp_path / "elsewhere").mkdir()
    files = here.files(REQUEST)
    assert files == [str(reviews / f"{part}.jsonl") for part in ("train", "validation", "test")]
    places = {path: str(Path(path).rename(tmp_path / "elsewhere" / Path(path).name)) for path in files}
    assert here.reading(places).evaluate(REQUEST, tmp_path / "2").score == wanted.score
    configs = [(tmp_path / name / "config.json").read_text() for name in ("1", "2")]
    assert configs[0] == configs[1]


def test_the_filtered_vectors_are_files_made_for_the_selection(reviews: Path) -> None:
    evaluator = make_evaluator(reviews, vectors={"a": {"glove.txt": "/run/vectors/glove.txt"}})
    assert evaluator.made_files(REQUEST) == ["/run/vectors/glove.txt"]
    assert make_evaluator(reviews).made_files(REQUEST) == []
