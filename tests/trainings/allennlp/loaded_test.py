import runpy

import pytest
from allennlp.common import plugins


def test_a_plugin_that_cannot_be_imported_is_told_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise AttributeError("module 'torch' has no attribute 'six'")

    monkeypatch.setattr(plugins, "import_plugins", fail)
    runpy.run_module("fiesta_allennlp.trainings.allennlp.loaded")
    told = capsys.readouterr().err
    assert told.startswith("A plugin of AllenNLP cannot be imported, and those after it are left out: ")
    assert "loaded_test.py, line 11: AttributeError: module 'torch' has no attribute 'six'" in told
