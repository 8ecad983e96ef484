from contextlib import nullcontext
from pathlib import Path
from typing import Any, Dict, Optional

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


OFFICIAL = Division(is_official=True)
OF_THREE, OF_TWO = Division(ratios=(0.5, 0.2, 0.3)), Division(ratios=(0.8, 0.2), scored="validation")
BY_VALIDATION, OFFICIAL_BY_VALIDATION = (Division(scored="validation", is_official=known) for known in (False, True))
RATIOS = {"ratios": [0.5, 0.2, 0.3]}
TOPIC = {"group_by": "topic"}


@pytest.mark.parametrize(
    ("keys", "second", "options", "message"),
    [
        ({"group_by": "author"}, {}, {"group_by": "author"}, None),
        ({"max_instances": 5}, None, {}, r"'dataset_reader.max_instances' would have no effect.*Move it into"),
        ({"groupby": "author"}, None, {}, r"'dataset_reader.groupby' would have no effect: .*group_by"),
        ({"reader": None}, None, {}, r"'dataset_reader.reader' must be the reader of the data files but is null"),
        ({"paths": ["train.jsonl"]}, None, {}, r"'dataset_reader.paths' must be an object with one file per set but"),
        ({"paths": {"test": "x"}}, None, {}, r"the key 'dataset_reader.paths.train' is missing"),
        (
            {"group_by": "none"},
            None,
            {},
            r"'dataset_reader.group_by' must be a metadata key but is \"none\"..*--group-by",
        ),
        (
            TOPIC,
            {},
            {"group_by": "author"},
            r"'dataset_reader.group_by' is 'topic' but --group-by is 'author'.*or leav",
        ),
        (TOPIC, {"group_by": "x"}, {}, r"'dataset_reader.group_by' is 'topic' but validation_dataset_reader.group_by"),
        (
            TOPIC,
            {"paths": {"train": "a", "test": "b"}},
            {},
            r"'validation_dataset_reader.paths' is .*, but this selection would use",
        ),
        (TOPIC, {"max_instances": 3}, TOPIC, r"'validation_dataset_reader.max_instances' would have no effect"),
        ({}, None, {"division": OFFICIAL}, r"'dataset_reader' is a resplit reader, .*--splits shared"),
        (RATIOS, None, {"division": OF_THREE}, None),
        (RATIOS, None, {}, r"'dataset_reader.ratios' is .* would use null. Pass the numbers"),
        (
            {"ratios": [0.5, 0.3, 0.2]},
            None,
            {"division": OF_THREE},
            r"is .* would use .0.5, 0.2, 0.3.. Pass the numbers",
        ),
        ({"has_test": False}, None, {}, r"'dataset_reader.has_test' is false, but .* true. Use --score val"),
        ({"has_test": False}, None, {"division": BY_VALIDATION}, None),
    ],
)
def test_a_resplit_reader_must_agree_with_the_options_and_the_second_reader(
    reviews: Path, keys: Any, second: Any, options: Any, message: Optional[str]
) -> None:
    config = with_resplit(reviews, **keys)
    if second is not None:
        config["validation_dataset_reader"] = {**config["dataset_reader"], **second}
    checked(config, message, **options)


def test_a_data_path_beside_a_resplit_reader_names_its_part(reviews: Path) -> None:
    config = {**with_resplit(reviews), "test_data_path": "validation"}
    checked(config, "'test_data_path' is \"validation\" next to a resplit reader.*Write 'test',")


def test_official_sets_must_be_different_data_too(reviews: Path) -> None:
    config = {**classifier_config(reviews), "validation_data_path": str(reviews / "test.jsonl")}
    with pytest.raises(ConfigError, match=r"Every run would be scored on .* and use --score validation"):
        same_data(config, OFFICIAL)
    same_data({**config, "test_data_path": None}, BY_VALIDATION)
    same_data(config, OFFICIAL_BY_VALIDATION)


def test_only_what_looks_like_a_path_is_a_missing_file(tmp_path: Path) -> None:
    config = {"model": {"type": "accuracy"}, "train_data_path": "nowhere.txt"}
    assert missing_file(config, "the metric accuracy was not found", tmp_path / "a.jsonnet") is None
    said = missing_file(config, "file nowhere.txt not found", tmp_path / "a.jsonnet")
    assert said is not None and said.startswith("'train_data_path' is 'nowhere.txt', but there is no such file")


BUCKETS = {"batch_sampler": {"type": "bucket", "batch_size": 4, "drop_last": True}}
WHOLE = {"batch_size": 4, "drop_last": False, "batches_per_epoch": None}
NO_VALIDATION, NO_TEST = {"validation_data_path": None}, {"test_data_path": None}
ONE_FILE = {**NO_VALIDATION, **NO_TEST}


def wanting(metric: Any) -> Dict[str, Any]:
    return {"trainer": {"validation_metric": metric}}


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        (ONE_FILE, {}, r"neither 'validation_data_path' nor .*--split-ratios TRAIN,"),
        (ONE_FILE, {"division": OF_THREE}, None),
        (ONE_FILE, {"division": OF_TWO}, None),
        ({}, {"division": OFFICIAL}, None),
        (
            NO_TEST,
            {"division": OFFICIAL},
            r"'test_data_path' is missing, but --splits official .*--score val.*--splits",
        ),
        (NO_VALIDATION, {"division": OFFICIAL}, r"'validation_data_path' is missing, but --splits official .*Name the"),
        (NO_TEST, {"division": OFFICIAL_BY_VALIDATION}, None),
        (NO_TEST, {"division": BY_VALIDATION}, None),
        (
            NO_VALIDATION,
            {"division": BY_VALIDATION},
            r"'validation_data_path' is missing, and .*--split-ratios 0.8,0.2",
        ),
        ({"data_loader": {"batches_per_epoch": 2}}, {}, r"'data_loader.batches_per_epoch' is 2, and"),
        ({"data_loader": {"drop_last": True}}, {}, r"'data_loader.drop_last' is true, .*Give a"),
        (
            {"data_loader": BUCKETS},
            {},
            r"'data_loader.batch_sampler.drop_last' is true.*Give a 'validation_data_loader'",
        ),
        ({"validation_data_loader": BUCKETS}, {}, r"drop_last' is true, .*cover only part of the test set. Remove it."),
        ({"data_loader": BUCKETS, "validation_data_loader": WHOLE}, {}, None),
        ({"data_loader": WHOLE, "validation_data_loader": None}, {}, None),
        (
            wanting("-perplexity"),
            {"metric": Metric("perplexity")},
            "a lower 'perplexity' is better there, but .* highest mean",
        ),
        (wanting(["+a", "-perplexity"]), {"metric": Metric("perplexity")}, "is .*a lower 'perplexity' is better"),
        (wanting("+accuracy"), {"metric": Metric.of("-accuracy")}, r"lowest mean. Write --metric=\+accuracy"),
        (wanting("-perplexity"), {"metric": Metric.of("-perplexity")}, None),
        (wanting("-loss"), {"metric": Metric("perplexity")}, None),
        (wanting(None), {"metric": Metric.of("-perplexity")}, None),
    ],
)
def test_sets_loaders_and_the_trainer_must_go_with_the_options(
    reviews: Path, changes: Dict[str, Any], options: Dict[str, Any], message: Optional[str]
) -> None:
    """Every set that is needed has a file, the whole test set is scored, and the trainer wants the same direction."""
    checked({**classifier_config(reviews), **changes}, message, **options)
