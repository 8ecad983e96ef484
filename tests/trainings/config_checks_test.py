from contextlib import nullcontext
from pathlib import Path
from typing import Any, Dict, Optional, Tuple

import pytest

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.splits import AT_OFFICIAL_RATIOS, Division
from fiesta_allennlp.trainings.config import official_paths
from fiesta_allennlp.trainings.config_checks import check_config, check_parts
from fiesta_allennlp.trainings.data_files import mark_data, missing_file
from tests.conftest import classifier_config

ACCURACY = Metric("accuracy")


def checked(config: Dict[str, Any], message: Optional[str], *, metric: Metric = ACCURACY, **options: Any) -> None:
    """The config is refused with the message, or passes where there is none."""
    with nullcontext() if message is None else pytest.raises(ConfigError, match=message):
        check_config(config, metric=metric, **options)


def same_data(config: Dict[str, Any], division: Division = AT_OFFICIAL_RATIOS) -> None:
    checked(config, None, division=division)
    check_parts(config, division, mark_data(division.used(official_paths(config))))


def test_a_part_within_the_files_of_another_is_refused(reviews: Path) -> None:
    config = {**classifier_config(reviews), "train_data_path": f"{reviews}/t*.jsonl"}
    with pytest.raises(ConfigError, match=r"'train_data_path' and 'test_data_path' are the same data, \S+/test.jsonl"):
        same_data(config)
    config["train_data_path"] = f"{reviews}/tr*.jsonl"
    same_data(config)
    (reviews / "train.jsonl").write_bytes((reviews / "test.jsonl").read_bytes())
    with pytest.raises(ConfigError, match="'train_data_path' and 'test_data_path' have equal contents"):
        same_data(config)
    config["validation_data_path"] = config["test_data_path"] = "none://example.org/test.jsonl"
    with pytest.raises(ConfigError, match="'validation_data_path' and 'test_data_path' are the same data, none://"):
        same_data(config)


def test_a_file_that_is_next_to_both_is_no_data_and_a_link_is_the_file(reviews: Path) -> None:
    config = classifier_config(reviews)
    for part in ("train", "test"):
        (reviews / part).mkdir()
        (reviews / f"{part}.jsonl").rename(reviews / part / "a.jsonl")
        (reviews / part / "LICENCE").write_text("free")
        config[f"{part}_data_path"] = str(reviews / part)
    same_data(config)
    (reviews / "train" / "b.jsonl").symlink_to(reviews / "test" / "a.jsonl")
    with pytest.raises(ConfigError, match=r"are the same data, \S+/test/a.jsonl"):
        same_data(config)


def test_parts_of_a_resplit_reader_are_named_by_its_keys(reviews: Path) -> None:
    config = classifier_config(reviews)
    paths = {"train": config.pop("train_data_path"), "test": config.pop("test_data_path")}
    del config["validation_data_path"]
    config["dataset_reader"] = {"type": "resplit", "reader": config["dataset_reader"], "paths": paths}
    checked(config, None)
    paths["validation"] = paths["test"]
    with pytest.raises(ConfigError, match=r"'dataset_reader.paths.validation' and 'dataset_reader.paths.test' are"):
        same_data(config)


def with_resplit(reviews: Path, **keys: Any) -> Dict[str, Any]:
    """A config whose reader is a resplit reader already, as an evaluation's config has it."""
    config = classifier_config(reviews)
    paths = {part: config[f"{part}_data_path"] for part in ("train", "validation", "test")}
    reader = {"type": "resplit", "reader": config["dataset_reader"], "paths": paths, "split_seed": 3, **keys}
    return {**config, "dataset_reader": reader, **{f"{part}_data_path": part for part in paths}}


def test_the_config_of_an_evaluation_passes(reviews: Path) -> None:
    config = with_resplit(reviews, group_by="author")
    checked({**config, "validation_dataset_reader": config["dataset_reader"]}, None)
    checked(config, None, group_by="author")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"max_instances": 5}, r"'dataset_reader.max_instances' would have no effect.*Move it into"),
        ({"groupby": "author"}, r"'dataset_reader.groupby' would have no effect: .*group_by"),
        ({"reader": None}, r"'dataset_reader.reader' must be the reader of the data files but is null"),
        ({"paths": ["train.jsonl"]}, r"'dataset_reader.paths' must be an object with one file per set but is \["),
        ({"paths": {"test": "x"}}, r"the key 'dataset_reader.paths.train' is missing"),
        ({"group_by": "none"}, r"'dataset_reader.group_by' must be a metadata key but is \"none\"..*--group-by none"),
    ],
)
def test_what_a_resplit_reader_says_in_vain_is_refused(reviews: Path, keys: Dict[str, Any], message: str) -> None:
    checked(with_resplit(reviews, **keys), message)


@pytest.mark.parametrize(
    ("group_by", "second", "message"),
    [
        ("author", {}, r"'dataset_reader.group_by' is 'topic' but --group-by is 'author'.*or leave one of them out"),
        (None, {"group_by": "author"}, r"'dataset_reader.group_by' is 'topic' but validation_dataset_reader.group_by"),
        (None, {"paths": {"train": "a", "test": "b"}}, r"'validation_dataset_reader.paths' is .*, but a run of this"),
        ("topic", {"max_instances": 3}, r"'validation_dataset_reader.max_instances' would have no effect"),
    ],
)
def test_readers_and_option_must_agree(
    reviews: Path, group_by: Optional[str], second: Dict[str, Any], message: str
) -> None:
    config = with_resplit(reviews, group_by="topic")
    config["validation_dataset_reader"] = {**config["dataset_reader"], **second}
    checked(config, message, group_by=group_by)


def test_a_data_path_beside_a_resplit_reader_names_its_part(reviews: Path) -> None:
    config = {**with_resplit(reviews), "test_data_path": "validation"}
    checked(config, "'test_data_path' is \"validation\" next to a resplit reader.*Write 'test',")


OFFICIAL = Division(is_official=True)
AT_RATIOS = Division(ratios=(0.5, 0.2, 0.3))
BY_VALIDATION = Division(scored="validation")


@pytest.mark.parametrize(
    ("division", "missing", "message"),
    [
        (AT_OFFICIAL_RATIOS, ("validation", "test"), r"neither 'validation_data_path' nor .*--split-ratios TRAIN,"),
        (AT_RATIOS, ("validation", "test"), None),
        (OFFICIAL, (), None),
        (OFFICIAL, ("test",), r"'test_data_path' is missing, but --splits official .*--score validation.*--splits"),
        (OFFICIAL, ("validation",), r"'validation_data_path' is missing, but --splits official .*Name the file; or"),
        (Division(is_official=True, scored="validation"), ("test",), None),
        (BY_VALIDATION, ("test",), None),
        (BY_VALIDATION, ("validation",), r"'validation_data_path' is missing, and .*--split-ratios 0.8,0.2"),
        (Division(ratios=(0.8, 0.2), scored="validation"), ("validation", "test"), None),
    ],
)
def test_every_set_that_is_needed_has_a_file(
    reviews: Path, division: Division, missing: Tuple[str, ...], message: Optional[str]
) -> None:
    config = {**classifier_config(reviews), **{f"{part}_data_path": None for part in missing}}
    checked(config, message, division=division)


@pytest.mark.parametrize(
    ("keys", "division", "message"),
    [
        ({}, OFFICIAL, r"'dataset_reader' is a resplit reader, .*--splits shared"),
        ({"ratios": [0.5, 0.2, 0.3]}, AT_RATIOS, None),
        ({"ratios": [0.5, 0.2, 0.3]}, AT_OFFICIAL_RATIOS, r"'dataset_reader.ratios' is .* has null. Give"),
        ({"ratios": [0.5, 0.3, 0.2]}, AT_RATIOS, r"'dataset_reader.ratios' is .* has .0.5, 0.2, 0.3.. Give --split"),
        ({"has_test": False}, AT_OFFICIAL_RATIOS, r"'dataset_reader.has_test' is false, but .* true. Give --score val"),
        ({"has_test": False}, BY_VALIDATION, None),
    ],
)
def test_a_resplit_reader_and_the_options_must_agree(
    reviews: Path, keys: Dict[str, Any], division: Division, message: Optional[str]
) -> None:
    config = with_resplit(reviews, **keys)
    checked(config, message, division=division)


def test_official_sets_must_be_different_data_too(reviews: Path) -> None:
    config = {**classifier_config(reviews), "validation_data_path": str(reviews / "test.jsonl")}
    with pytest.raises(ConfigError, match=r"Every run would be scored on .* and give --score validation"):
        same_data(config, OFFICIAL)
    same_data({**config, "test_data_path": None}, BY_VALIDATION)
    same_data(config, Division(is_official=True, scored="validation"))


def test_only_what_looks_like_a_path_is_a_missing_file(tmp_path: Path) -> None:
    config = {"model": {"type": "accuracy"}, "train_data_path": "nowhere.txt"}
    assert missing_file(config, "the metric accuracy was not found", tmp_path / "a.jsonnet") is None
    said = missing_file(config, "file nowhere.txt not found", tmp_path / "a.jsonnet")
    assert said is not None and said.startswith("'train_data_path' is 'nowhere.txt', but there is no such file")


BUCKETS = {"batch_sampler": {"type": "bucket", "batch_size": 4, "drop_last": True}}
WHOLE = {"batch_size": 4, "drop_last": False, "batches_per_epoch": None}


@pytest.mark.parametrize(
    ("loaders", "message"),
    [
        ({"data_loader": {"batch_size": 4, "batches_per_epoch": 2}}, r"'data_loader.batches_per_epoch' is 2, and"),
        ({"data_loader": {"batch_size": 4, "drop_last": True}}, r"'data_loader.drop_last' is true, .*Give a"),
        ({"data_loader": BUCKETS}, r"'data_loader.batch_sampler.drop_last' is true.*Give a 'validation_data_loader'"),
        (
            {"data_loader": WHOLE, "validation_data_loader": BUCKETS},
            r"'validation_data_loader.batch_sampler.drop_last' is true, .*on a fraction of the test set. Remove it.",
        ),
        ({"data_loader": BUCKETS, "validation_data_loader": WHOLE}, None),
        ({"data_loader": WHOLE, "validation_data_loader": None}, None),
    ],
)
def test_the_whole_test_part_must_be_scored(reviews: Path, loaders: Dict[str, Any], message: Optional[str]) -> None:
    config = {**classifier_config(reviews), **loaders}
    checked(config, message)


@pytest.mark.parametrize(
    ("wanted", "metric", "refused"),
    [
        ("-perplexity", "perplexity", "less of 'perplexity' is better, but .* highest mean. Write"),
        (["+accuracy", "-perplexity"], "+perplexity", "less of 'perplexity' is better"),
        ("+accuracy", "-accuracy", r"more of 'accuracy' is better, but .* lowest mean. Write --metric=\+accuracy"),
        ("-perplexity", "-perplexity", None),
        ("+perplexity", "perplexity", None),
        ("-loss", "perplexity", None),
        (None, "-perplexity", None),
    ],
)
def test_a_metric_of_which_the_trainer_wants_the_opposite_is_refused(
    reviews: Path, wanted: Any, metric: str, refused: Optional[str]
) -> None:
    config = classifier_config(reviews)
    config["trainer"]["validation_metric"] = wanted
    checked(config, refused and f"'trainer.validation_metric' is .*{refused}", metric=Metric.of(metric))
