import sys
from pathlib import Path
from typing import Any, Dict

import pytest

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.splits import AT_OFFICIAL_RATIOS, Division
from fiesta_allennlp.trainings.config import official_paths, with_absolute_paths
from fiesta_allennlp.trainings.config_checks import check_config
from fiesta_allennlp.trainings.programs.config import (
    check_keys,
    code_of,
    division_for,
    example_command,
    filled_command,
    filled_environment,
    notes_on_program,
)
from tests.programs import program_config

ACCURACY = Metric("accuracy")
OFFICIAL, VALIDATION = Division(is_official=True), Division(scored="validation")


def checked(config: Dict[str, Any], **options: Any) -> None:
    check_keys(config)
    official_paths(config)
    check_config(config, metric=ACCURACY, **options)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"comand": []}, r"'comand' is not a key of a program. Did you mean 'command'"),
        ({"command": "python train.py"}, r"'command' must be a list of strings .* but is python train.py"),
        ({"environment": {"A": 1}}, r"'environment' must be an object of strings"),
        ({"environment": {"FIESTA_WORKER": "x"}}, r"'environment.FIESTA_WORKER': this variable must not be set"),
        ({"metrics": 3}, r"'metrics' must be the path of a JSON file"),
        ({"data": "train.jsonl"}, r"'data' must be an object"),
        ({"data": {"train": "a", "fromat": "csv"}}, r"'fromat' is not a key of 'data' of a program.*'format'"),
        ({"data": {"train": "a", "format": "jsnl"}}, r"'data.format' is jsnl.*Did you mean 'jsonl'"),
        ({"data": {"test": "a", "format": "csv"}}, r"the key 'data.train' is missing"),
        ({"data": {"train": ["a"], "format": "csv"}}, r"'data.train' must be the path of one file"),
        ({"data": {"train": "a", "format": "csv"}}, r"names neither 'data.validation' nor 'data.test'.*--split-ratios"),
        ({"metrics": "metrics.json"}, r"'metrics' is \"metrics.json\", one file for all runs"),
        (
            {"metrics": "{directry}/m.json"},
            r"'metrics': there is no placeholder \{directry\}. Did you mean 'directory'",
        ),
        ({"command": ["sh", "{train}"]}, r"'command' does not name \{validation\}, \{test\}"),
        ({"data": None}, r"'command' names \{train\}, but 'data' is missing"),
        ({"data": None, "command": ["sh", "{seed}"]}, r"'data' is missing, and 'command' does not name \{split_seed\}"),
        ({"command": ["no-such-program", *"abc"]}, r"does not name \{train\}"),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_program_is_named(reviews: Path, changes: Dict[str, Any], message: str) -> None:
    config = {**program_config(reviews, "true"), **changes}
    with pytest.raises(ConfigError, match=message):
        checked(config)


ALL = ["{train}", "{validation}", "{test}", "{seed}"]


def test_a_program_or_script_that_is_not_there(reviews: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="begins with 'no-such', which is neither on the PATH"):
        checked(program_config(reviews, "", command=["no-such", *ALL]))
    with pytest.raises(ConfigError, match=r"'command' runs 'train.py', but there is no such file in the current dir"):
        checked(program_config(reviews, "", command=["python", "-u", "train.py", *ALL]))
    (tmp_path / "run").write_text("#!/bin/sh\n")
    with pytest.raises(ConfigError, match=r"'./run', .* The file is not executable: chmod"):
        checked(program_config(reviews, "", command=["./run", *ALL]))
    (tmp_path / "train.py").write_text("")
    config = program_config(reviews, "", command=["python", "-u", "train.py", *ALL])
    checked(config)
    assert code_of(config) == ["train.py"]


def test_a_program_may_do_without_a_validation_set(reviews: Path) -> None:
    config = program_config(reviews, "", command=["sh", "{train}", "{test}", "{seed}"])
    with pytest.raises(ConfigError, match=r"does not name \{validation\}.*leave '.*validation.jsonl' out"):
        checked(config)
    del config["data"]["validation"]
    checked(config)
    checked(config, division=OFFICIAL)
    checked(config, division=Division(ratios=(0.8, 0.2), has_validation=False))
    assert division_for(config, AT_OFFICIAL_RATIOS).parts == ("train", "test")
    with pytest.raises(ConfigError, match=r"does not name \{validation\}.*leave its share out of --split-ratios"):
        checked(config, division=Division(ratios=(0.6, 0.2, 0.2)))
    config["command"].append("{validation}")
    with pytest.raises(ConfigError, match=r"names \{validation\}, but with --split-ratios of two numbers"):
        checked(config, division=Division(ratios=(0.8, 0.2), has_validation=False))


def test_options_that_do_not_go_with_a_program(reviews: Path) -> None:
    config = program_config(reviews, "true")
    with pytest.raises(ConfigError, match=r"names \{test\}, but with --score validation a run has no test set"):
        checked(config, division=VALIDATION)
    checked({**config, "command": ["sh", "{train}", "{validation}"]}, division=VALIDATION)
    checked(config, division=OFFICIAL)
    del config["data"]["validation"]
    checked(config)
    with pytest.raises(ConfigError, match=r"'data.validation' is missing, but --splits official takes every set"):
        checked(config, division=OFFICIAL)
    config["data"]["group_by"] = "id"
    with pytest.raises(ConfigError, match=r"'data.group_by' is 'id' but --group-by is 'document'"):
        checked(config, group_by="document")


def test_options_that_do_not_go_with_a_program_that_cuts_its_own_sets(reviews: Path) -> None:
    config = program_config(reviews, "", data=None, command=["sh", "{split_seed}"])
    checked(config)
    checked(config, group_by="none")
    with pytest.raises(ConfigError, match="--group-by is about the splits of the selection"):
        checked(config, group_by="id")
    with pytest.raises(ConfigError, match="--split-ratios is about the splits of the selection"):
        checked(config, division=Division(ratios=(0.6, 0.2, 0.2)))
    with pytest.raises(ConfigError, match=r"names \{split_seed\}, but with --splits official only seeds vary"):
        checked(config, division=OFFICIAL)
    checked({**config, "command": ["sh", "{seed}"]}, division=OFFICIAL)


def test_placeholders_are_filled_and_other_braces_stay() -> None:
    config = {
        "command": ["python", "{python}", '{"a": 1}', "${x}", "{{seed}}", "-{seed}-{seed}"],
        "environment": {"SEED": "{seed}"},
    }
    filled = [sys.executable, sys.executable, '{"a": 1}', "${x}", "{seed}", "-3-3"]
    assert filled_command(config, {"seed": "3"}) == filled
    assert filled_environment(config, {"seed": "3"}) == {"SEED": "3"}
    data = {"train": "in/a.csv", "test": "in/b.csv", "format": "csv"}
    config = {"command": ["x", "{test}"], "data": data}
    assert (
        example_command(config, AT_OFFICIAL_RATIOS, Path("DIR/evaluations/a-0"))
        == "x DIR/evaluations/a-0/data/test.csv"
    )
    assert example_command(config, OFFICIAL, Path("DIR/evaluations/a-0")) == "x in/b.csv"


def test_a_program_without_a_seed_is_noted() -> None:
    def notes(*command: str, **more: Any) -> str:
        return "".join(notes_on_program({"type": "program", "command": list(command), **more}, AT_OFFICIAL_RATIOS))

    assert "does not use {seed}" in notes("x", "{train}")
    assert not notes("x", environment={"S": "{seed}"}) and not notes("x", "{split_seed}")
    assert "names no {validation}" in notes("x", "{train}", "{test}", "{seed}", data={"train": "a"})


def test_data_are_found_from_any_directory(reviews: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(reviews)
    data = {"train": "train.jsonl", "test": "nowhere.jsonl", "format": "jsonl"}
    config = program_config(reviews, "", data=data)
    made = with_absolute_paths(config)["data"]
    assert made == {"train": str((reviews / "train.jsonl").resolve()), "test": "nowhere.jsonl", "format": "jsonl"}
    assert config["data"] == data
