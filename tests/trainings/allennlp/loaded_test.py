import runpy
import subprocess
import sys

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
    assert "loaded_test.py, line 13: AttributeError: module 'torch' has no attribute 'six'" in told


FORK = """
import os, sys
import fiesta_allennlp.trainings.allennlp.loaded
import torch

if not os.fork():
    print(torch.cuda._is_in_bad_fork(), "allennlp.models" in sys.modules, "cupy" in sys.modules, flush=True)
    os._exit(0)
os.wait()
"""


def test_a_process_that_has_loaded_everything_can_fork_one_that_uses_a_gpu() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True)
    assert done.stdout == "False True False\n", done.stderr
