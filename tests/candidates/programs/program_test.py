import json
import sys
from pathlib import Path
from typing import Any, Dict, Tuple

import pytest

from fiesta_allennlp.candidates.candidate_types import type_of
from fiesta_allennlp.candidates.preparation import load_candidates
from fiesta_allennlp.candidates.programs.program_run import fill_placeholders
from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.candidates.splits import OFFICIAL_RATIOS_DIVISION
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.running.machine import with_interpreter
from tests.candidates.config_test import checked
from tests.programs import program_config

OFFICIAL, VALIDATION_OF_TWO = {"splits": "official"}, {"split_ratios": (0.8, 0.2), "score": "validation"}
OF_THREE, OF_TWO = {"split_ratios": (0.6, 0.2, 0.2)}, {"split_ratios": (0.8, 0.2)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"comand": []}, "'comand' .*'command'"),
        ({"command": "python train.py"}, "'command' must .*list"),
        ({"environment": {"FIESTA_WORKER": "x"}}, "'environment.FIESTA_WORKER'"),
        ({"data": "train.jsonl"}, "'data' must .*object"),
        ({"data": {"train": __file__, "format": "jsnl"}}, "'data.format' .*'jsonl'"),
        ({"data": {"test": "a", "format": "csv"}}, "'data.train' is missing"),
        ({"data": {"train": "absent.csv", "format": "csv"}}, "'data.train' must .*\"absent.csv\""),
        ({"data": {"train": __file__, "format": "csv"}}, "'data.validation' or 'data.test'"),
        ({"metrics": "metrics.json"}, "'metrics' is .*parallel runs"),
        ({"metrics": "{directry}/m"}, r"'metrics' .*\{directry\}.*'directory'"),
        ({"command": ["sh", "{train}"]}, r"'command' .*\{validation\}.* train, validation, test"),
        ({"data": None}, r"'command' uses \{train\}.*'data'"),
        ({"data": None, "command": ["sh", "{seed}"]}, r"\{split_seed\}.*--data FILE"),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_program_is_named(reviews: Path, changes: Dict[str, Any], message: str) -> None:
    checked({**program_config(reviews, "true"), **changes}, message)


ALL = ["{train}", "{validation}", "{test}", "{seed}"]


def test_a_program_or_script_that_is_not_there(reviews: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = program_config(reviews, "", command=["python", "-u", "train.py", *ALL])
    checked({**config, "command": ["no-such", *ALL]}, "'no-such', which is neither on the PATH")
    checked({**config, "command": ["cd", "x", "&&", *ALL]}, "'cd', .*begin with sh -c")
    checked({**config, "command": ["python", "~/train.py", *ALL]}, "'command' runs '~/train.py'")
    checked(config, "'command' runs 'train.py'")
    (tmp_path / "train.py").write_text("")
    checked(config)
    assert type_of(config).code == ["train.py"]


def test_a_program_may_do_without_a_validation_set(reviews: Path) -> None:
    config = program_config(reviews, "", command=["sh", "{train}", "{test}", "{seed}"])
    checked(config, r"does not use \{validation\}.*files of 'data'")
    del config["data"]["validation"]
    checked(config)
    checked(config, **OFFICIAL)
    checked(config, **OF_TWO)
    checked(config, r"does not use \{validation\}.*--score", **VALIDATION_OF_TWO)
    assert type_of(config).own_division(OFFICIAL_RATIOS_DIVISION).set_names == ("train", "test")
    checked(config, r"does not use \{validation\}.*--split-ratios", **OF_THREE)
    config["command"].append("{validation}")
    checked(config, r"uses \{validation\}, but the sets of this selection are train, test", **OF_TWO)
    checked(config, "'data.validation', which is missing", **OFFICIAL)
    checked(config, r"uses \{test\}, but the sets of this selection are train, validation", **VALIDATION_OF_TWO)
    config["data"]["group_by"] = "id"
    checked(config, "'data.group_by' is 'id' but --group-by is 'document'", group_by="document")
    config["data"]["group_by"] = "none"
    checked(config, "'data.group_by' must be a key")


def test_options_that_do_not_go_with_a_program_that_cuts_its_own_sets(reviews: Path) -> None:
    config = program_config(reviews, "", data=None, command=["sh", "{split_seed}"])
    checked(config)
    checked(config, group_by="none")
    checked(config, "--group-by needs data files", group_by="id")
    checked(config, "--split-ratios needs data files", **OF_THREE)
    checked(config, r"uses \{split_seed\}, which --splits official", **OFFICIAL)
    checked({**config, "command": ["sh", "{seed}"]}, **OFFICIAL)


def test_placeholders_are_filled_and_other_braces_stay() -> None:
    command = ["python", "{python}", '{"a": 1}', "${x}", "{{seed}}", "-{seed}-{seed}"]
    filled = ["python", sys.executable, '{"a": 1}', "${x}", "{seed}", "-3-3"]
    assert [fill_placeholders(word, {"seed": "3"}) for word in command] == filled
    assert with_interpreter(filled)[0] == sys.executable


def test_a_program_without_a_seed_is_refused_unless_that_is_allowed(reviews: Path) -> None:
    def load(*command: str, allow: Tuple[str, ...] = (), **more: Any) -> None:
        path = reviews / "program.jsonnet"
        path.write_text(json.dumps({"type": "program", "command": ["sh", *command], **more}))
        settings = Settings(candidates=(str(path),), metric="accuracy", splits="official", allow=allow)
        load_candidates(settings, min_count=1)

    with pytest.raises(ConfigError, match=r"program.jsonnet.*does not use \{seed\}.*Pass.*--allow unseeded"):
        load("{directory}")
    load("{directory}", allow=("unseeded",))
    load("{seed}")
    load("x", environment={"S": "{seed}"})
