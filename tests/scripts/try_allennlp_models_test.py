from importlib import import_module


def test_every_change_is_used_and_there() -> None:
    script = import_module("try_allennlp_models")
    assert {case.change for case in script.CASES} == set(script.CHANGES)
