from pathlib import Path

import pytest

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.evaluators.config_checks import check_config
from tests.conftest import classifier_config


def test_a_part_within_the_files_of_another_is_refused(reviews: Path) -> None:
    config = {**classifier_config(reviews), "train_data_path": f"{reviews}/t*.jsonl"}
    with pytest.raises(ConfigError, match=r"'train_data_path' and 'test_data_path' are the same data, \S+/test.jsonl"):
        check_config(config)
    config["train_data_path"] = f"{reviews}/tr*.jsonl"
    check_config(config)


def test_one_path_twice_is_refused_whatever_it_is(reviews: Path) -> None:
    url = "https://example.org/test.jsonl"
    config = {**classifier_config(reviews), "validation_data_path": url, "test_data_path": url}
    with pytest.raises(ConfigError, match=f"'validation_data_path' and 'test_data_path' are the same data, {url}"):
        check_config(config)


def test_parts_of_a_resplit_reader_are_named_by_its_keys(reviews: Path) -> None:
    config = classifier_config(reviews)
    paths = {"train": config.pop("train_data_path"), "test": config.pop("test_data_path")}
    del config["validation_data_path"]
    config["dataset_reader"] = {"type": "resplit", "reader": config["dataset_reader"], "paths": paths}
    check_config(config)
    paths["validation"] = paths["test"]
    with pytest.raises(ConfigError, match=r"'dataset_reader.paths.validation' and 'dataset_reader.paths.test' are"):
        check_config(config)
