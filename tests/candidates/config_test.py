import json
import shutil
import tarfile
from contextlib import nullcontext
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, Dict, Mapping, Optional

import pytest

from fiesta_allennlp.candidates.candidate_types import type_of
from fiesta_allennlp.candidates.config import (
    checking_unchanged,
    evaluation_config,
    files_behind,
    first_difference,
    official_paths,
    seen_data_reasons,
    take_snapshot,
    vector_files,
)
from fiesta_allennlp.candidates.preparation import load_candidates
from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.candidates.splits import Division
from fiesta_allennlp.core.errors import ConfigError, DataChangedError
from fiesta_allennlp.core.records import Request
from tests.conftest import classifier_config

REQUEST = Request("a", 3, split_seed=11, random_seed=12, numpy_seed=13, pytorch_seed=14)


def test_an_evaluation_config_is_complete(reviews: Path) -> None:
    config = classifier_config(reviews)
    made = evaluation_config(config, REQUEST, group_by="sentence_id")
    assert made["dataset_reader"] == {
        "type": "resplit",
        "reader": config["dataset_reader"],
        "paths": {part: str(reviews / f"{part}.jsonl") for part in ("train", "validation", "test")},
        "split_seed": 11,
        "group_by": "sentence_id",
    }
    assert [made[f"{part}_data_path"] for part in ("train", "validation", "test")] == ["train", "validation", "test"]
    assert (made["random_seed"], made["numpy_seed"], made["pytorch_seed"]) == (12, 13, 14)
    assert made["evaluate_on_test"] is True
    assert made["model"] == config["model"]
    trainer = {**config["trainer"], "checkpointer": {"save_completed_epochs": False}}
    assert made["trainer"] == trainer and trainer["cuda_device"] == -1
    assert "cuda_device" not in evaluation_config(config, REQUEST, free_device=True)["trainer"]
    for own in ({"checkpointer": {"keep_most_recent_by_count": 1}}, {"type": "my_trainer"}):
        assert evaluation_config({**config, "trainer": own}, REQUEST)["trainer"] == own


def test_on_official_splits_it_is_the_candidate_with_seeds(reviews: Path) -> None:
    config = classifier_config(reviews)
    made = evaluation_config(config, REQUEST, division=Division(is_official=True))
    assert made.pop("evaluate_on_test") is True
    assert made["trainer"].pop("checkpointer") == {"save_completed_epochs": False}
    assert [made.pop(f"{name}_seed") for name in ("random", "numpy", "pytorch")] == [12, 13, 14]
    assert made == config
    made = evaluation_config(config, REQUEST, division=Division(is_official=True, scored="validation"))
    assert (made["evaluate_on_test"], made["test_data_path"]) == (False, config["test_data_path"])


def test_where_the_validation_set_is_scored_the_test_set_stays_out_of_the_pool(reviews: Path) -> None:
    division = Division(ratios=(0.8, 0.2), scored="validation")
    made = evaluation_config(classifier_config(reviews), REQUEST, division=division)
    reader = made["dataset_reader"]
    assert (list(reader["paths"]), reader["ratios"], reader["has_test"]) == (["train", "validation"], [0.8, 0.2], False)
    assert (made["validation_data_path"], made["evaluate_on_test"]) == ("validation", False)
    assert "test_data_path" not in made


def test_vectors_are_replaced_wherever_they_are_named(reviews: Path) -> None:
    config = classifier_config(reviews)
    config["model"]["text_field_embedder"]["token_embedders"]["tokens"]["pretrained_file"] = "glove.txt"
    config["vocabulary"] = {"pretrained_files": {"tokens": "glove.txt"}}
    made = evaluation_config(config, REQUEST, vectors={"glove.txt": "few.txt"})
    assert "glove.txt" not in json.dumps(made)
    assert made["vocabulary"]["pretrained_files"] == {"tokens": "few.txt"}
    for vocabulary in ({"type": "from_files", "directory": "v"}, {"min_pretrained_embeddings": {"tokens": 10}}):
        assert vector_files({**config, "vocabulary": vocabulary}) == {}, "words may come from elsewhere"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such config file"),
        ("{ model: ", "not valid Jsonnet.*1:10"),
        ("{ model: { x: std.extVar('none') } }", r"variable: none \(\S+bad.jsonnet:1:\S+\)\. .*--points"),
        ("{ dataset_reader: {} }", "'model' is missing"),
        ({"trainer": None}, "'trainer' is missing"),
        ({"model": "basic_classifier"}, "'model' must .* \"basic_classifier\""),
        ({"distributed": {"cuda_devices": [0, 1]}}, "'distributed' is not supported"),
        ({"dataset_reader": {"type": "multitask"}}, "'dataset_reader' reads several tasks.*a program"),
        ({"validation_dataset_reader": {"type": "resplit"}}, "'validation_dataset_reader' is a resplit.* --group-by"),
    ],
)
def test_an_incomplete_config_is_refused_with_its_name(reviews: Path, content: Any, message: str) -> None:
    if content is not None:
        whole = content if isinstance(content, str) else json.dumps({**classifier_config(reviews), **content})
        (reviews / "bad.jsonnet").write_text(whole)
    with pytest.raises(ConfigError, match=f"bad.jsonnet:? .*{message}"):
        load_candidates(Settings(candidates=(str(reviews / "bad.jsonnet"),)), min_count=1)


def test_the_first_difference_has_its_path_and_both_values() -> None:
    old = {"model": {"layers": [{"size": 1}, {"size": 2}]}, "trainer": {}}
    assert first_difference(old, json.loads(json.dumps(old))) is None
    new = {"model": {"layers": [{"size": 1}, {"size": 3}]}, "trainer": {}}
    assert first_difference(old, new) == "'model.layers.1.size' was 2 and is now 3"
    assert first_difference(old, {**old, "extra": 1}) == "'extra' was added"
    assert first_difference(old, {"model": old["model"]}) == "'trainer' was removed"


def test_the_config_of_a_run_names_its_files_from_any_directory(reviews: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(reviews)
    made = evaluation_config(classifier_config(Path(".")), REQUEST)
    assert made["dataset_reader"]["paths"]["train"] == str(reviews / "train.jsonl")
    made = evaluation_config(classifier_config(Path(".")), REQUEST, division=Division(is_official=True))
    assert made["test_data_path"] == str(reviews / "test.jsonl")


OFFICIAL, BY_VALIDATION = {"splits": "official"}, {"score": "validation"}
OFFICIAL_BY_VALIDATION = {**OFFICIAL, **BY_VALIDATION}
OF_THREE = {"split_ratios": (0.5, 0.2, 0.3)}


def checked(config: Dict[str, Any], message: Optional[str] = None, **options: Any) -> None:
    """The config is refused with the message, or passes where there is none."""
    with nullcontext() if message is None else pytest.raises(ConfigError, match=message):
        type_of(config).check(Settings(**{"metric": "accuracy", **options}))


def compared(config: Dict[str, Any], message: Optional[str], options: Mapping[str, Any] = MappingProxyType({})) -> None:
    """The parts of the config are refused as the same data, or pass."""
    checked(config, **options)
    with nullcontext() if message is None else pytest.raises(ConfigError, match=f"{message}.* the same data"):
        known, division = type_of(config), Settings(**options).division
        known.check_distinct_sets(division, take_snapshot(division.used_paths(known.data_paths)))


def test_the_same_data_in_two_sets_are_refused(reviews: Path) -> None:
    """By path, by file, by content, and through links; a file that is next to both is not data."""
    config = {**classifier_config(reviews), "train_data_path": f"{reviews}/t*.jsonl"}
    compared(config, "'train_data_path' .* and 'test_data_path'")
    config["train_data_path"] = f"{reviews}/tr*.jsonl"
    compared(config, None)
    (reviews / "copy.jsonl").write_bytes((reviews / "test.jsonl").read_bytes())
    compared({**config, "train_data_path": str(reviews / "copy.jsonl")}, "'train_data_path' .* and 'test_data_path'")
    official = {**config, "validation_data_path": str(reviews / "test.jsonl")}
    compared(official, "'validation_data_path' .* and 'test_data_path'", OFFICIAL)
    compared({**official, "test_data_path": None}, None, BY_VALIDATION)
    compared(official, None, OFFICIAL_BY_VALIDATION)
    urls = dict.fromkeys(("validation_data_path", "test_data_path"), "none://example.org/test.jsonl")
    compared({**config, **urls}, "'validation_data_path' .* and 'test_data_path'")
    for part in ("train", "test"):
        (reviews / part).mkdir()
        (reviews / f"{part}.jsonl").rename(reviews / part / "a.jsonl")
        (reviews / part / "LICENCE").write_text("free")
        config[f"{part}_data_path"] = str(reviews / part)
    compared(config, None)
    (reviews / "train" / "b.jsonl").symlink_to(reviews / "test" / "a.jsonl")
    compared(config, "'train_data_path' .* and 'test_data_path'")


BUCKETS = {"batch_sampler": {"type": "bucket", "batch_size": 4, "drop_last": True}}
WHOLE = {"batch_size": 4, "drop_last": False, "batches_per_epoch": None}
NO_VALIDATION, NO_TEST = {"validation_data_path": None}, {"test_data_path": None}
ONE_FILE = {**NO_VALIDATION, **NO_TEST}


def wanting(metric: Any) -> Dict[str, Any]:
    return {"trainer": {"validation_metric": metric}}


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        (ONE_FILE, {}, "'validation_data_path' or 'test_data_path'"),
        (ONE_FILE, OF_THREE, None),
        (NO_TEST, OFFICIAL, "'test_data_path', .* --score validation"),
        (NO_TEST, OFFICIAL_BY_VALIDATION, None),
        (NO_VALIDATION, BY_VALIDATION, "'validation_data_path', .*--split-ratios 0.8,0.2"),
        ({"data_loader": {"batches_per_epoch": 2}}, {}, "'data_loader.batches_per_epoch' is 2"),
        ({"validation_data_loader": BUCKETS}, {}, "drop_last' is true"),
        ({"data_loader": BUCKETS, "validation_data_loader": WHOLE}, {}, None),
        (wanting(["+a", "-ppl"]), {"metric": "ppl"}, "contradicts --metric=\\+ppl"),
        (wanting("+accuracy"), {"metric": "-accuracy"}, r"contradicts --metric=-accuracy. Use --metric=\+accuracy"),
        (wanting("-ppl"), {"metric": "-ppl"}, None),
    ],
)
def test_sets_loaders_and_the_trainer_must_go_with_the_options(
    reviews: Path, changes: Dict[str, Any], options: Dict[str, Any], message: Optional[str]
) -> None:
    """Every set that is needed has a file, the whole test set is scored, and the trainer wants the same direction."""
    checked({**classifier_config(reviews), **changes}, message, **options)


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


@pytest.mark.parametrize("content", [None, b"[1]", b"[" * 100_000, b'{"dataset_reader": 1}'])
def test_weights_of_unknown_data_pass(content: Any, reviews: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.tar.gz"
    archive = str(path) if content is None else write_archive(path, content)
    model = {"embedder": {"type": "pretrained_transformer", "model_name": "bert-base-uncased"}}
    config = {**classifier_config(reviews), "model": {**model, "archive_file": archive}}
    assert list(seen_data_reasons(config, take_snapshot(official_paths(config)))) == []


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """A directory of two shards, one more below it, and two that nobody reads."""
    for name in ("b.txt", "a.txt", "more/c.txt", ".hidden.txt", ".cache/d.txt"):
        (tmp_path / "shards" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "shards" / name).write_text(name)
    (tmp_path / "shards" / "broken.txt").symlink_to("nowhere")
    return tmp_path / "shards"


def test_what_stands_behind_a_path(shards: Path) -> None:
    a, b, c = (shards / name for name in ("a.txt", "b.txt", "more/c.txt"))
    assert files_behind(str(a)) == [a]
    assert files_behind(str(shards)) == [a, b, c]
    assert files_behind(f"{shards}/*.txt") == [a, b]
    assert files_behind([str(b), str(a)]) == [b, a]
    assert files_behind({"y": str(b), "x": str(a)}) == [a, b]
    assert files_behind("https://example.org/a.txt") == files_behind("nowhere.txt") == files_behind(None) == []


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "b.txt", "/a.txt has changed"),
        ("a.txt", "more", r"/a.txt has changed .* \(5 bytes then, 4 now\)$"),
        ("e.txt", "new", "/e.txt is a new"),
    ],
)
@pytest.mark.parametrize("path", ["{}", "{}/*.txt"])
def test_data_that_changed_are_noticed_before_and_after(
    shards: Path, path: str, name: str, content: str, message: str
) -> None:
    mark = take_snapshot({"train": path.format(shards), "test": "https://example.org/test.txt"})
    before = take_snapshot({"train": path.format(shards)}).fingerprint
    with pytest.raises(DataChangedError, match=message), checking_unchanged(mark):
        raise ValueError(f"half of {(shards / name).write_text(content)} characters were read")
    with pytest.raises(DataChangedError, match=message), checking_unchanged(mark):
        raise AssertionError("it did not look before")
    assert take_snapshot({"train": path.format(shards)}).fingerprint != before


def test_a_file_that_is_away_may_come_again(shards: Path) -> None:
    mark = take_snapshot({"train": str(shards)})
    with checking_unchanged(mark):
        (shards / "b.txt").unlink()
    with pytest.raises(FileNotFoundError, match="b.txt"), checking_unchanged(mark):
        raise AssertionError("it did not look before")
    (shards / "b.txt").write_text("b.txt!")
    with pytest.raises(DataChangedError, match="b.txt has changed"), checking_unchanged(mark):
        pass


def test_files_at_another_place_are_known_by_their_content(shards: Path) -> None:
    moved = shards.with_name("copy")
    shutil.copytree(shards, moved, symlinks=True)
    assert take_snapshot({"train": str(moved)}).fingerprint == take_snapshot({"train": str(shards)}).fingerprint
