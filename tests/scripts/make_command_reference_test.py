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
    assert set(script.parsers()) >= {"plugin", "replay", "select"}
    for parser in script.parsers().values():
        for action in parser._actions:
            assert action.dest == "help" or all(f"`{name}" in text for name in action.option_strings)
