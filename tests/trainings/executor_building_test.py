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


def candidates(*trainers: Dict[str, Any]) -> Dict[str, Candidate]:
    """`one` and `two`, with these trainers."""
    named = zip(("one", "two"), trainers, strict=True)
    return {name: Candidate(name, "", {"trainer": trainer}) for name, trainer in named}


@pytest.mark.parametrize("device", [None, -1, "cpu", 0, "cuda:0"])
def test_a_gpu_that_is_asked_for_must_be_seen(device: object) -> None:
    configs = candidates({}, {"cuda_device": device})
    check_gpus(configs, Mock(hides_gpus=False))
    if device in (None, -1, "cpu"):
        check_gpus(configs, Mock(hides_gpus=True))
        return
    with pytest.raises(ConfigError, match=r"candidate 'two': .* --overrides '\{\"trainer.cuda_device\": -1\}'"):
        check_gpus(configs, Mock(hides_gpus=True))


@pytest.mark.parametrize(
    ("trainer", "works"),
    [
        ({}, True),
        ({"cuda_device": None}, True),
        ({"cuda_device": -1}, True),
        ({"cuda_device": 1}, True),
        ({"cuda_device": 2}, False),
        ({"cuda_device": [0, 1]}, False),
        ({"cuda_device": [-1]}, False),
        ({"cuda_device": "cuda:0"}, False),
        ({"type": "of_mine", "cuda_device": "cuda:0"}, True),
        ({"type": "of_mine", "cuda_device": 2}, False),
    ],
)
def test_a_device_that_a_config_names_must_be_there(
    monkeypatch: pytest.MonkeyPatch, trainer: Dict[str, Any], works: bool
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    configs = candidates({}, trainer)
    check_gpus(configs, Mock(hides_gpus=False, gives_devices=True))
    here = Mock(hides_gpus=False, gives_devices=False)
    if works:
        check_gpus(configs, here)
        return
    with pytest.raises(ConfigError, match=r"candidate 'two': 'trainer.cuda_device' is .*this machine has 2, numbered"):
        check_gpus(configs, here)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"executor": "{bad"}, "--executor: '{bad' is not valid JSON"),
        ({"executor": {"type": "processes", "wrkers": 2}}, "--executor processes: .*wrkers"),
        ({"executor": {"type": "processes", "workers": 2}}, "take 'workers' out of --executor"),
        ({"gpus_per_evaluation": 1}, "--gpus-per-evaluation cannot be combined with --executor processes"),
        ({"executor": "ray", "cuda_devices": "0"}, "--cuda-devices cannot be combined with --executor ray"),
        ({"workers": -2}, "--workers must be above 0 but got -2"),
        ({"threads_per_worker": 0}, "--threads-per-worker must be above 0"),
        ({"time_limit": -3}, "--time-limit must be above 0"),
        ({"cuda_devices": "gpu"}, "no device 'gpu' found.*numbered from 0"),
    ],
)
def test_executors_that_cannot_be_built_are_refused(tmp_path: Path, given: Dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_executor(merge(given), RunDirectory(tmp_path), packages=())
