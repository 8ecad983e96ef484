import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any, Dict, List

import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.common.meta import Meta
from allennlp.training import TrainerCallback
from rich.console import Console

from fiesta_allennlp.candidates.allennlp.instances import read_pool
from fiesta_allennlp.candidates.allennlp.training import prepare_candidate
from fiesta_allennlp.candidates.candidate_types import AllenNLPRun
from fiesta_allennlp.candidates.preparation import resolve_metric
from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.candidates.splits import OFFICIAL_RATIOS_DIVISION, Preparation
from fiesta_allennlp.core.errors import ConfigError, ModelError
from fiesta_allennlp.core.records import Candidate
from fiesta_allennlp.core.registry import build_record
from fiesta_allennlp.core.seeding import make_request
from tests.conftest import classifier_config
from tests.selections import facts


def prepared(config: Dict[str, Any], tmp_path: Path) -> Preparation:
    return prepare_candidate(config, group_by=None, division=OFFICIAL_RATIOS_DIVISION, vectors=tmp_path / "v")


def test_building_a_stock_classifier_tells_its_pool_parameters_and_metrics(reviews: Path, tmp_path: Path) -> None:
    preparation = prepared(classifier_config(reviews), tmp_path)
    assert preparation.metrics == ["accuracy"]
    assert preparation.pool.official == {"train": 40, "validation": 12, "test": 20}
    assert preparation.pool.targets == preparation.pool.official
    assert preparation.pool.num_groups == 72
    num_words = len(read_pool(classifier_config(reviews), None)[1]["tokens"])
    # An embedding of every word, padding and the unknown word in 4 dimensions; a layer from 4 to 2 labels.
    assert preparation.num_parameters == (num_words + 2) * 4 + 4 * 2 + 2


def test_vectors_are_filtered_to_the_pool_and_its_unknown_and_padding_words(reviews: Path, tmp_path: Path) -> None:
    (reviews / "v.txt").write_text("food 1 2 3 4\nmillions 1 2 3 4\nunk 1 2 3 4\n@@PADDING@@ 1 2 3 4\n")
    config = {**classifier_config(reviews), "vocabulary": {"oov_token": "unk"}}
    config["model"]["text_field_embedder"]["token_embedders"]["tokens"]["pretrained_file"] = str(reviews / "v.txt")
    ((original, filtered),) = prepared(config, tmp_path).vectors
    assert original == str(reviews / "v.txt")
    assert Path(filtered).read_text() == "food 1 2 3 4\nunk 1 2 3 4\n@@PADDING@@ 1 2 3 4\n"


def test_the_pool_knows_the_order_of_the_instances_but_not_their_words(reviews: Path) -> None:
    config, other = classifier_config(reviews), classifier_config(reviews)
    other["dataset_reader"]["tokenizer"] = {"type": "character"}
    (first, words), (second, characters) = read_pool(config, None), read_pool(other, None)
    assert first.fingerprint == second.fingerprint and words["tokens"] != characters["tokens"]
    lines = (reviews / "train.jsonl").read_text().splitlines(keepends=True)
    (reviews / "train.jsonl").write_text("".join(sorted(lines, key=lambda line: '"good"' in line)))
    assert read_pool(config, None)[0].fingerprint != first.fingerprint


WIDE = {"type": "cnn", "embedding_dim": 50, "num_filters": 8, "ngram_filter_sizes": [1]}


@pytest.mark.parametrize(
    ("key", "changes", "kind", "message"),
    [
        ("model", {"no_such_option": 1}, TypeError, "no_such_option"),
        ("trainer", {"num_epoch": 3}, ConfigError, "'num_epoch' .*'trainer'.*num_epochs"),
        ("data_loader", {"batchsize": 3}, (ConfigurationError, TypeError), "batchsize"),
        ("no_such_section", {"a": 1}, ConfigurationError, "no_such_section"),
        ("model", {"seq2vec_encoder": WIDE}, ModelError, "RuntimeError: .* 50 "),
        ("data_loader", {"batch_size": 41, "drop_last": True}, ConfigError, "'data_loader' makes no batches"),
    ],
)
def test_what_is_wrong_is_found_before_training(
    reviews: Path, tmp_path: Path, key: str, changes: Dict[str, Any], kind: Any, message: str
) -> None:
    config = {**classifier_config(reviews), "validation_data_loader": {"batch_size": 8}}
    config[key] = {**config.get(key, {}), **changes}
    with pytest.raises(kind, match=message):
        prepared(config, tmp_path)


def metric_of(*reported: List[str], given: Any = None, trainer: Any = None) -> "tuple[Any, str]":
    """The metric of candidates that report these, and what the console says."""
    out = StringIO()
    config = {**classifier_config(Path("reviews")), "trainer": {"validation_metric": trainer}}
    candidates = {str(k): Candidate(str(k), "a.jsonnet", config) for k, _ in enumerate(reported)}
    preparation = build_record(Preparation, facts())
    built = {str(k): replace(preparation, metrics=frozenset(names)) for k, names in enumerate(reported)}
    found = resolve_metric(Settings(metric=given), candidates, built, Console(file=out, width=200))
    return found.metric, out.getvalue()


def test_the_metric_is_the_given_one_or_the_default_or_the_only_one() -> None:
    found, printed = metric_of(["accuracy", "f1"], ["accuracy"])
    assert found == "accuracy" and printed.startswith("Comparing by accuracy")
    assert metric_of(["macro_f1"], ["macro_f1", "accuracy"]) == ("macro_f1", "")
    assert metric_of(["accuracy", "f1"], ["accuracy", "f1"], given="f1") == ("f1", "")
    assert metric_of(["accuracy"], ["accuracy"], given="-loss") == ("-loss", "")


@pytest.mark.parametrize(
    ("reported", "given", "trainer", "message"),
    [
        (["accuracy", "f1"], None, None, "^--metric is missing.* accuracy, f1, loss"),
        (["accuracy"], "-ppl", None, "'0', candidate '1': .*'ppl'"),
        (["perplexity"], None, None, "--metric=-perplexity"),
        (["cost"], None, "-cost", "'trainer.validation_metric' is .* --metric=-cost"),
    ],
)
def test_what_cannot_be_compared_is_refused(reported: List[str], given: Any, trainer: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        metric_of(reported, reported, given=given, trainer=trainer)


@TrainerCallback.register("reads-its-directory")
class ReadsItsDirectory(TrainerCallback):
    """A callback that reads the files of its run when it is built, as those of other packages may."""

    def __init__(self, serialization_dir: str) -> None:
        super().__init__(serialization_dir)
        assert json.loads((Path(serialization_dir) / "config.json").read_text())["train_data_path"] == "train"
        assert Meta.from_path(Path(serialization_dir) / "meta.json").version


@pytest.mark.parametrize("callback", ["tensorboard", "reads-its-directory"])
def test_a_callback_that_reads_the_directory_of_its_run_is_checked_and_trains(
    callback: str, reviews: Path, tmp_path: Path
) -> None:
    config = classifier_config(reviews)
    config["trainer"]["callbacks"] = [{"type": callback}]
    assert prepared(config, tmp_path).metrics == ["accuracy"]
    directory = tmp_path / "run"
    evaluation = AllenNLPRun(config, "accuracy").evaluate(make_request(1, "a", 0, shared_splits=True), directory)
    assert 0 <= evaluation.score <= 1
    assert list(directory.glob("log/train/events.*")) or callback != "tensorboard"
