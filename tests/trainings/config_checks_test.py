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


def same_data(config: Dict[str, Any], division: Division = AT_OFFICIAL_RATIOS) -> None:
    check_config(config, metric=Metric("accuracy"), division=division)
    check_parts(config, division, mark_data(division.used(official_paths(config))))


def test_two_parts_with_the_same_data_are_refused(reviews: Path) -> None:
    def refused(message: str, division: Division = AT_OFFICIAL_RATIOS, **changes: Any) -> None:
        with pytest.raises(ConfigError, match=message):
            same_data({**config, **changes}, division)

    config, url = classifier_config(reviews), "none://example.org/test.jsonl"
    refused(f"'validation_data_path' and 'test_.*same data, {url}", validation_data_path=url, test_data_path=url)
    refused(r"'train_.*' and 'test_data_path' are the same data, \S+/test.js", train_data_path=f"{reviews}/t*.jsonl")
    same_data({**config, "train_data_path": f"{reviews}/tr*.jsonl"})
    twice = {**config, "validation_data_path": config["test_data_path"]}
    refused(r"Every run would be scored on .* and give --score validation", OFFICIAL, **twice)
    same_data({**twice, "test_data_path": None}, BY_VALIDATION)
    same_data(config, Division(is_official=True, scored="validation"))
    reader = with_resplit(reviews)["dataset_reader"]
    paths = {**reader["paths"], "validation": reader["paths"]["test"]}
    named = "'dataset_reader.paths.validation' and 'dataset_reader.paths.test' are"
    refused(named, **with_resplit(reviews, paths=paths))
    (reviews / "train.jsonl").write_bytes((reviews / "test.jsonl").read_bytes())
    refused("'train_data_path' and 'test_data_path' have equal contents")
    for part in ("train", "test"):  # a file that is beside both is no data, and a link is its file
        (reviews / part).mkdir()
        (reviews / part / "LICENCE").write_text("free")
        config[f"{part}_data_path"] = str(reviews / part)
        (reviews / part / "a.jsonl").write_text(part)
    same_data(config)
    (reviews / "train" / "b.jsonl").symlink_to(reviews / "test" / "a.jsonl")
    refused(r"are the same data, \S+/test/a.jsonl")


def with_resplit(reviews: Path, **keys: Any) -> Dict[str, Any]:
    """A config whose reader is a resplit reader already, as an evaluation's config has it."""
    config = classifier_config(reviews)
    paths = {part: config[f"{part}_data_path"] for part in ("train", "validation", "test")}
    reader = {"type": "resplit", "reader": config["dataset_reader"], "paths": paths, "split_seed": 3, **keys}
    return {**config, "dataset_reader": reader, **{f"{part}_data_path": part for part in paths}}


OFFICIAL = Division(is_official=True)
AT_RATIOS = Division(ratios=(0.5, 0.2, 0.3))
BY_VALIDATION = Division(scored="validation")


def checked(config: Dict[str, Any], message: Optional[str], metric: str = "accuracy", **options: Any) -> None:
    """Checks a config, which is refused with a message unless that is None."""
    with nullcontext() if message is None else pytest.raises(ConfigError, match=message):
        check_config(config, metric=Metric.of(metric), **options)


@pytest.mark.parametrize(
    ("keys", "options", "message"),
    [
        ({"max_instances": 5}, {}, r"'dataset_reader.max_instances' would have no effect.*Move it into"),
        ({"groupby": "author"}, {}, r"'dataset_reader.groupby' would have no effect: .*group_by"),
        ({"reader": None}, {}, r"'dataset_reader.reader' must be the reader of the data files but is null"),
        ({"reader": {"type": "resplit"}}, {}, r"'dataset_reader.reader' must be the reader of the data files"),
        ({"paths": ["train.jsonl"]}, {}, r"'dataset_reader.paths' must be an object .* but is \["),
        ({"paths": {"test": "x"}}, {}, r"the key 'dataset_reader.paths.train' is missing"),
        ({"group_by": "none"}, {}, r"'dataset_reader.group_by' must be .* but is \"none\"..*--group-by none"),
        ({"group_by": ["a"]}, {}, r"'dataset_reader.group_by' must be a metadata key but is \["),
        ({"group_by": "author"}, {"group_by": "author"}, None),
        ({"group_by": "topic"}, {"group_by": "author"}, r"'dataset_reader.group_by' is 'topic' but --group-by is 'aut"),
        ({"group_by": "topic"}, {"group_by": "none"}, r"but --group-by is 'none'"),
        ({}, {"division": OFFICIAL}, r"'dataset_reader' is a resplit reader, .*--splits shared"),
        ({"ratios": [0.5, 0.2, 0.3]}, {"division": AT_RATIOS}, None),
        ({"ratios": [0.5, 0.2, 0.3]}, {}, r"'dataset_reader.ratios' is .* has null. Give"),
        ({"ratios": [0.5, 0.3, 0.2]}, {"division": AT_RATIOS}, r"'dataset_reader.ratios' .* has .0.5, 0.2, 0.3"),
        ({"has_test": False}, {}, r"'dataset_reader.has_test' is false, but .* true. Give --score val"),
        ({"has_test": False}, {"division": BY_VALIDATION}, None),
    ],
)
def test_a_resplit_reader_and_the_options_must_agree(
    reviews: Path, keys: Dict[str, Any], options: Dict[str, Any], message: Optional[str]
) -> None:
    checked(with_resplit(reviews, **keys), message, **options)


@pytest.mark.parametrize(
    ("group_by", "second", "message"),
    [
        ("topic", {}, None),
        (None, {"group_by": "author"}, r"'dataset_reader.group_by' is 'topic' but validation_dataset_reader.group_by"),
        (None, {"paths": {"train": "a", "test": "b"}}, r"'validation_dataset_reader.paths' is .*, but a run of this"),
        ("topic", {"max_instances": 3}, r"'validation_dataset_reader.max_instances' would have no effect"),
    ],
)
def test_both_readers_of_an_evaluation_must_agree(
    reviews: Path, group_by: Optional[str], second: Dict[str, Any], message: Optional[str]
) -> None:
    config = with_resplit(reviews, group_by="topic")
    config["validation_dataset_reader"] = {**config["dataset_reader"], **second}
    checked(config, message, group_by=group_by)


def test_a_data_path_beside_a_resplit_reader_names_its_part(reviews: Path) -> None:
    checked(
        {**with_resplit(reviews), "test_data_path": "validation"}, "'test_data_path' is .validation. .*Write 'test',"
    )


def without(*parts: str) -> Dict[str, Any]:
    return {f"{part}_data_path": None for part in parts}


BUCKETS = {"batch_sampler": {"type": "bucket", "batch_size": 4, "drop_last": True}}
WHOLE = {"batch_size": 4, "drop_last": False, "batches_per_epoch": None}


@pytest.mark.parametrize(
    ("changes", "division", "message"),
    [
        (without("validation", "test"), AT_OFFICIAL_RATIOS, r"neither 'validation_data_path' nor .*--split-ratios"),
        (without("validation", "test"), AT_RATIOS, None),
        ({}, OFFICIAL, None),
        (without("test"), OFFICIAL, r"'test_data_path' is missing, but --splits official .*--score validation"),
        (without("validation"), OFFICIAL, r"'validation_data_path' is missing, but --splits official .*Name the file"),
        (without("test"), Division(is_official=True, scored="validation"), None),
        (without("test"), BY_VALIDATION, None),
        (without("validation"), BY_VALIDATION, r"'validation_data_path' is missing, and .*--split-ratios 0.8,0.2"),
        (without("validation", "test"), Division(ratios=(0.8, 0.2), scored="validation"), None),
        ({"data_loader": {"batch_size": 4, "batches_per_epoch": 2}}, OFFICIAL, r"'data_loader.batches_per_epoch' is 2"),
        ({"data_loader": {"batch_size": 4, "drop_last": True}}, OFFICIAL, r"'data_loader.drop_last' is true"),
        ({"data_loader": BUCKETS}, OFFICIAL, r"'data_loader.batch_sampler.drop_last' is true.*Give a 'validation_data"),
        ({"data_loader": WHOLE, "validation_data_loader": BUCKETS}, OFFICIAL, r"'validation_data_loader.batch_sampler"),
        ({"data_loader": BUCKETS, "validation_data_loader": WHOLE}, OFFICIAL, None),
        ({"data_loader": WHOLE, "validation_data_loader": None}, OFFICIAL, None),
    ],
)
def test_every_set_that_is_needed_has_a_file_and_is_scored_whole(
    reviews: Path, changes: Dict[str, Any], division: Division, message: Optional[str]
) -> None:
    checked({**classifier_config(reviews), **changes}, message, division=division)


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
    checked(config, refused and f"'trainer.validation_metric' is .*{refused}", metric)


def test_only_what_looks_like_a_path_is_a_missing_file(tmp_path: Path) -> None:
    config = {"model": {"type": "accuracy"}, "train_data_path": "nowhere.txt"}
    assert missing_file(config, "the metric accuracy was not found", tmp_path / "a.jsonnet") is None
    said = missing_file(config, "file nowhere.txt not found", tmp_path / "a.jsonnet")
    assert said is not None and said.startswith("'train_data_path' is 'nowhere.txt', but there is no such file")
