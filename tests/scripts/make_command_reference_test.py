import argparse
from importlib import import_module
from types import ModuleType

import pytest


@pytest.fixture
def script() -> ModuleType:
    return import_module("make_command_reference")


def test_the_reference_is_up_to_date(script: ModuleType) -> None:
    text = script.REFERENCE.read_text(encoding="utf-8")
    assert text == script.reference(), "run: python scripts/make_command_reference.py"


def test_every_option_of_every_command_is_there(script: ModuleType) -> None:
    text = script.reference()
    assert set(script.parsers()) >= {"fiesta-replay", "fiesta-select"}
    for parser in script.parsers().values():
        for action in parser._actions:
            assert action.dest == "help" or all(f"`{name}" in text for name in action.option_strings)


def test_an_option_is_shown_as_it_is_typed(script: ModuleType) -> None:
    parser = argparse.ArgumentParser()
    for arguments, options, expected in [
        (["-s", "--seed"], {"type": int, "help": "so\n  much|100%%, see --other"}, "`-s`, `--seed N`"),
        (["--kind"], {"metavar": "a|b"}, "`--kind a\\|b`"),
        (["--way"], {"choices": ["x", "y"]}, "`--way x\\|y`"),
        (["--flag"], {"action": "store_true"}, "`--flag`"),
        (["--pair"], {"nargs": 2, "metavar": ("A", "B")}, "`--pair A B`"),
        (["place"], {"metavar": "DIR"}, "`DIR`"),
    ]:
        action = parser.add_argument(*arguments, **options)
        assert script.synopsis(action) == expected
    (seed, *_) = parser._actions[1:]
    assert script.meaning(seed) == "so much\\|100%, see `--other`"
