from contextlib import nullcontext
from pathlib import Path
from typing import Any, Dict
from unittest.mock import Mock

import pytest
import torch

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.records import Candidate
from fiesta_allennlp.trainings.settings import merge
from fiesta_allennlp.trainings.workers import build_executor, check_gpus


@pytest.mark.parametrize(
    ("trainer", "needs_gpu", "is_here"),
    [
        ({}, False, True),
        ({"cuda_device": -1}, False, True),
        ({"type": "of_mine", "cuda_device": "cpu"}, False, True),
        ({"cuda_device": 1}, True, True),
        ({"cuda_device": 2}, True, False),
        ({"cuda_device": [0, 1]}, True, False),
        ({"cuda_device": "cuda:0"}, True, False),
        ({"type": "of_mine", "cuda_device": "cuda:0"}, True, True),
    ],
)
def test_a_gpu_that_a_config_names_must_be_seen_and_be_there(
    monkeypatch: pytest.MonkeyPatch, trainer: Dict[str, Any], needs_gpu: bool, is_here: bool
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    configs = {name: Candidate(name, "", {"trainer": each}) for name, each in (("one", {}), ("two", trainer))}
    check_gpus(configs, Mock(hides_gpus=False, gives_devices=True))
    unseen = r"candidate 'two': .* --overrides '\{\"trainer.cuda_device\": -1\}'"
    with pytest.raises(ConfigError, match=unseen) if needs_gpu else nullcontext():
        check_gpus(configs, Mock(hides_gpus=True))
    missing = r"candidate 'two': 'trainer.cuda_device' is .*from 0 to 1"
    with nullcontext() if is_here else pytest.raises(ConfigError, match=missing):
        check_gpus(configs, Mock(hides_gpus=False, gives_devices=False))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"executor": {"type": "processes", "wrkers": 2}}, "--executor processes: .*wrkers"),
        ({"executor": {"type": "processes", "workers": 2}}, "remove 'workers' from --executor"),
        ({"gpus_per_evaluation": 1}, "--gpus-per-evaluation cannot be combined with --executor processes"),
        ({"executor": "ray", "cuda_devices": "0"}, "--cuda-devices cannot be combined with --executor ray"),
        ({"threads_per_worker": 0}, "--threads-per-worker must be above 0"),
        ({"time_limit": -3}, "--time-limit must be above 0"),
        ({"cuda_devices": "gpu"}, "no GPU 'gpu' found"),
    ],
)
def test_executors_that_cannot_be_built_are_refused(tmp_path: Path, given: Dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_executor(merge(given), RunDirectory(tmp_path), packages=())
