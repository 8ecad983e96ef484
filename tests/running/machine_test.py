import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any, Dict, Iterator, Tuple

import pytest

from fiesta_allennlp.running.machine import DEVICES_VARIABLE, origin_here
from fiesta_allennlp.version import __version__

DRIVER = """#!/bin/sh
echo "GPU-aaaaaaaa-1111, NVIDIA H100"
echo "GPU-bbbbbbbb-2222, NVIDIA H200"
"""


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(DEVICES_VARIABLE, raising=False)
    origin_here.cache_clear()
    yield
    origin_here.cache_clear()


@pytest.mark.usefixtures("_fresh")
def test_software_and_hardware_are_those_of_this_process() -> None:
    origin = origin_here(("hypothesis.strategies", "no_such_package", "fiesta_allennlp.candidates"))
    assert (origin.host, origin.python) == (platform.node(), platform.python_version())
    for name in ("numpy", "hypothesis"):
        assert origin.versions[name] == version(name)
    assert origin.versions["fiesta-allennlp"] == __version__ and "no_such_package" not in origin.versions
    assert origin.cores >= 1 and origin.memory_gib > 0.1 and origin.processor and origin.is_only_machine


@pytest.mark.parametrize(
    ("visible", "device", "gpu", "models"),
    [
        (None, None, "GPU-aaaaaaaa,GPU-bbbbbbbb", "NVIDIA H100, NVIDIA H200"),
        ("1", None, "GPU-bbbbbbbb", "NVIDIA H200"),
        ("1", "0", "GPU-aaaaaaaa", "NVIDIA H100"),
        (None, "GPU-bbbb", "GPU-bbbb", "NVIDIA H200"),
        (None, "MIG-cccccccc-3", "MIG-cccccccc", ""),
        (None, "7", "7", ""),
        (None, "", "", ""),
    ],
)
def test_a_run_names_the_gpus_that_it_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visible: Any, device: Any, gpu: str, models: str
) -> None:
    (tmp_path / "nvidia-smi").write_text(DRIVER)
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    if visible is not None:
        monkeypatch.setenv(DEVICES_VARIABLE, visible)
    origin = origin_here(device=device)
    assert (origin.gpu, origin.gpu_names) == (gpu, models)
    assert str(origin.machine) == (f"{platform.node()} (GPU {gpu.removeprefix('GPU-')})" if gpu else platform.node())


@pytest.mark.parametrize(
    ("variables", "job"),
    [
        ({}, ""),
        ({"SLURM_JOB_ID": "7"}, "7"),
        ({"PBS_JOBID": "9.server"}, "9.server"),
    ],
)
def test_the_job_is_that_of_the_batch_system(
    monkeypatch: pytest.MonkeyPatch, variables: Dict[str, str], job: str
) -> None:
    names: Tuple[str, ...] = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert origin_here().job == job
