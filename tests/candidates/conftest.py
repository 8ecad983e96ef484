"""What tests of trainings share."""

import json
from pathlib import Path
from typing import Any, Callable, Dict

import pytest


@pytest.fixture
def plain_train(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Path], Dict[str, Any]]:
    """What `allennlp train` reports for a config file, in this process, whose logging stays as it is."""
    train = pytest.importorskip("allennlp.commands.train")
    monkeypatch.setattr("allennlp.common.logging.prepare_global_logging", lambda *args, **kwargs: None)

    def run(config: Path) -> Dict[str, Any]:
        train.train_model_from_file(config, tmp_path / "plain")
        return json.loads((tmp_path / "plain" / "metrics.json").read_text())

    return run
