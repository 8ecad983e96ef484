import gc
import runpy
import signal

import pytest
from allennlp.common import plugins


def test_a_plugin_that_cannot_be_imported_is_told_and_the_server_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise AttributeError("module 'torch' has no attribute 'six'")

    frozen = []
    monkeypatch.setattr(plugins, "import_plugins", fail)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    runpy.run_module("fiesta_allennlp.isolation.preload")
    assert frozen == [True]
    told = capsys.readouterr().err
    assert told.startswith("A plugin of AllenNLP cannot be imported, and those after it are left out: ")
    assert "preload_test.py, line 13: AttributeError: module 'torch' has no attribute 'six'" in told
