import gzip
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, Optional

import numpy as np
import pytest
import torch
from allennlp.data import Vocabulary
from allennlp.models import BasicClassifier
from allennlp.models.archival import load_archive
from allennlp.modules.token_embedders import Embedding

from fiesta_allennlp.candidates.allennlp.training import filtered_vectors
from fiesta_allennlp.candidates.candidate import ReportedMetrics, is_number, to_plain_metrics
from fiesta_allennlp.candidates.candidate_types import AllenNLPRun
from fiesta_allennlp.candidates.config import official_paths, seen_data_reasons, take_snapshot
from fiesta_allennlp.candidates.splits import SET_NAMES
from fiesta_allennlp.core.errors import DataChangedError, DataError, FiestaError
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
        number = to_plain_metrics({"a": value})["a"]
        assert number == 0.5 and type(number) is float
    for value in (torch.tensor([0.5, 1]), np.array([0.5]), "0.5", True, np.True_, torch.tensor(True), 1j, None, [0.5]):
        assert not is_number(to_plain_metrics({"a": value})["a"])


def test_numbers_of_other_libraries_are_metrics(reviews: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = BasicClassifier.get_metrics
    monkeypatch.setattr(BasicClassifier, "get_metrics", lambda *a, **b: {"x": np.float32(made(*a, **b)["accuracy"])})
    evaluation = replace(make_evaluator(reviews), metric="x").evaluate(REQUEST, tmp_path / "e")
    assert type(evaluation.score) is type(evaluation.metrics["test_x"]) is float


def test_changed_files_give_no_score_and_a_kept_archive_predicts_and_names_its_data(
    reviews: Path, tmp_path: Path
) -> None:
    data = take_snapshot(official_paths(classifier_config(reviews)))
    here = make_evaluator(reviews, data=data, keep_models=True)
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


ROWS = "the 0.1 0.2\nfood 0.3 0.4\nbroken 1 2 3\nservice 0.5 0.6\nfood 0.7 0.8\n"


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    path = tmp_path / "glove.2d.txt.gz"
    with gzip.open(path, "wt", encoding="utf-8") as out:
        out.write(ROWS)
    return path


def test_rows_of_the_words_are_kept_as_they_are_and_in_order(vectors: Path, tmp_path: Path) -> None:
    made = filtered_vectors(str(vectors), {"food", "broken", "unheard"}, tmp_path / "run")
    assert made.read_text() == "food 0.3 0.4\nbroken 1 2 3\nfood 0.7 0.8\n"
    (tmp_path / "v.txt").write_text("2 2\nthe 0.1 0.2\nfood 0.3 0.4\n")  # with a header
    assert filtered_vectors(str(tmp_path / "v.txt"), {"food", "2"}, tmp_path / "run").read_text() == "food 0.3 0.4\n"


def test_a_model_gets_the_same_matrix(vectors: Path, tmp_path: Path) -> None:
    """Also for the words without a vector, whose random rows depend on the mean and sd of the rows that are found."""
    vocab = Vocabulary(tokens_to_add={"tokens": ["food", "unheard", "service", "also unheard"]})
    made = filtered_vectors(str(vectors), {"food", "unheard", "service", "the", "also unheard"}, tmp_path / "run")
    matrices = []
    for file in (vectors, made):
        torch.manual_seed(5)
        matrices.append(Embedding(embedding_dim=2, pretrained_file=str(file), vocab=vocab).weight.detach().numpy())
    assert np.array_equal(matrices[0], matrices[1])
    assert matrices[0][vocab.get_token_index("food")] == pytest.approx([0.7, 0.8])


def test_the_original_is_read_once_for_the_same_words(vectors: Path, tmp_path: Path) -> None:
    first = filtered_vectors(str(vectors), {"food"}, tmp_path / "run")
    first.write_text("marked")
    assert filtered_vectors(str(vectors), {"food"}, tmp_path / "run").read_text() == "marked"
    assert filtered_vectors(str(vectors), {"food", "the"}, tmp_path / "run") != first
    with gzip.open(vectors, "wt") as out:
        out.write(ROWS * 2)
    assert filtered_vectors(str(vectors), {"food"}, tmp_path / "run") != first


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"Food 1 2\n", "none of its 1 words"),
        (b"\xff\xfe\x00", "cannot be read"),
        (gzip.compress(ROWS.encode(), mtime=0)[:-12], "cannot be read"),
        (None, "cannot be read"),
    ],
    ids=repr,
)
def test_a_useless_file_is_refused_with_its_name(tmp_path: Path, content: Optional[bytes], message: str) -> None:
    path = tmp_path / ("v.txt.gz" if content and content[:2] == b"\x1f\x8b" else "v.txt")
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=f"v.txt.*{message}"):
        filtered_vectors(str(path), {"the", "food"}, tmp_path / "run")
    assert not list((tmp_path / "run").glob("*.txt"))
