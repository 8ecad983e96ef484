import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Dict, Optional

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
OF_THREE, OF_TWO = Division(ratios=(0.6, 0.2, 0.2)), Division(ratios=(0.8, 0.2), has_validation=False)


def checked(config: Dict[str, Any], message: Optional[str] = None, **options: Any) -> None:
    """The config is refused with the message, or passes where there is none."""
    with nullcontext() if message is None else pytest.raises(ConfigError, match=message):
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
        ({"metrics": "{directry}/m"}, r"'metrics': there is no placeholder \{directry\}. Did you mean 'directory'"),
        ({"command": ["sh", "{train}"]}, r"'command' does not name \{validation\}, \{test\}"),
        ({"data": None}, r"'command' names \{train\}, but 'data' is missing"),
        ({"data": None, "command": ["sh", "{seed}"]}, r"'data' is missing, and 'command' does not name \{split_seed\}"),
        ({"command": ["no-such-program", *"abc"]}, r"does not name \{train\}"),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_program_is_named(reviews: Path, changes: Dict[str, Any], message: str) -> None:
    checked({**program_config(reviews, "true"), **changes}, message)


PYTHON = ["python", "-u", "train.py"]
ALL = ["{train}", "{validation}", "{test}", "{seed}"]


def test_a_program_or_script_that_is_not_there(reviews: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config, of_mine = (program_config(reviews, "", command=[*words, *ALL]) for words in (PYTHON, ["./run"]))
    checked({**config, "command": ["no-such", *ALL]}, "begins with 'no-such', which is neither on the PATH")
    checked(config, r"'command' runs 'train.py', but there is no such file in the current dir")
    (tmp_path / "run").write_text("#!/bin/sh\n")
    checked(of_mine, r"'./run', .* The file is not executable: chmod")
    (tmp_path / "train.py").write_text("")
    checked(config)
    assert code_of(config) == ["train.py"]


def test_a_program_may_do_without_a_validation_set(reviews: Path) -> None:
    config = program_config(reviews, "", command=["sh", "{train}", "{test}", "{seed}"])
    checked(config, r"does not name \{validation\}.*leave '.*validation.jsonl' out")
    del config["data"]["validation"]
    checked(config)
    checked(config, division=OFFICIAL)
    checked(config, division=OF_TWO)
    assert division_for(config, AT_OFFICIAL_RATIOS).parts == ("train", "test")
    checked(config, r"does not name \{validation\}.*leave its share out of --split-ratios", division=OF_THREE)
    config["command"].append("{validation}")
    checked(config, r"names \{validation\}, but with --split-ratios of two numbers", division=OF_TWO)


def test_options_that_do_not_go_with_a_program(reviews: Path) -> None:
    config = program_config(reviews, "true")
    checked(config, r"names \{test\}, but with --score validation a run has no test set", division=VALIDATION)
    checked({**config, "command": ["sh", "{train}", "{validation}"]}, division=VALIDATION)
    checked(config, division=OFFICIAL)
    del config["data"]["validation"]
    checked(config)
    checked(config, r"'data.validation' is missing, but --splits official takes every set", division=OFFICIAL)
    config["data"]["group_by"] = "id"
    checked(config, r"'data.group_by' is 'id' but --group-by is 'document'", group_by="document")


def test_options_that_do_not_go_with_a_program_that_cuts_its_own_sets(reviews: Path) -> None:
    config = program_config(reviews, "", data=None, command=["sh", "{split_seed}"])
    checked(config)
    checked(config, group_by="none")
    checked(config, "--group-by applies only to splits made by the selection", group_by="id")
    checked(config, "--split-ratios applies only to splits made by the selection", division=OF_THREE)
    checked(config, r"names \{split_seed\}, but with --splits official only seeds vary", division=OFFICIAL)
    checked({**config, "command": ["sh", "{seed}"]}, division=OFFICIAL)


def test_placeholders_are_filled_and_other_braces_stay() -> None:
    command = ["python", "{python}", '{"a": 1}', "${x}", "{{seed}}", "-{seed}-{seed}"]
    config = {"command": command, "environment": {"SEED": "{seed}"}}
    filled = [sys.executable, sys.executable, '{"a": 1}', "${x}", "{seed}", "-3-3"]
    assert filled_command(config, {"seed": "3"}) == filled
    assert filled_environment(config, {"seed": "3"}) == {"SEED": "3"}
    data = {"train": "in/a.csv", "test": "in/b.csv", "format": "csv"}
    config = {"command": ["x", "{test}"], "data": data}
    assert example_command(config, AT_OFFICIAL_RATIOS, Path("DIR/a-0")) == "x DIR/a-0/data/test.csv"
    assert example_command(config, OFFICIAL, Path("DIR/a-0")) == "x in/b.csv"


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
