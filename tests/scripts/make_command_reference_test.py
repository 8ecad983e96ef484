from importlib import import_module


def test_the_reference_is_up_to_date_and_has_every_option() -> None:
    script = import_module("make_command_reference")
    text = script.REFERENCE.read_text(encoding="utf-8")
    assert text == script.reference(), "run: python scripts/make_command_reference.py"
    for parser in script.parsers().values():
        for action in parser._actions:
            assert action.dest == "help" or all(f"`{name}" in text for name in action.option_strings)
