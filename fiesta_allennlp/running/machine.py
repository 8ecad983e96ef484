"""This machine: its GPUs, its hardware and its software, as an `Origin` of runs."""

import os
import platform
import subprocess
import sys
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from itertools import takewhile
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.core.records import UNKNOWN_ORIGIN, Origin
from fiesta_allennlp.version import __version__

PACKAGES = ("allennlp", "allennlp-models", "torch", "transformers", "spacy", "scikit-learn", "numpy", "scipy", "ray")
"""Distributions whose versions decide scores. One that is not installed is left out."""

RUN_ORIGIN: ContextVar[Origin] = ContextVar("RUN_ORIGIN", default=UNKNOWN_ORIGIN)
"""The origin of the run that this process makes."""

PYTHON = "python"
"""As the first word of a command, this interpreter, whatever the PATH has."""

JOB_VARIABLES = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID")
"""The variables in which batch systems put the number of a job."""

NODE_VARIABLE = "SLURMD_NODENAME"
"""The variable in which Slurm puts its name of the node."""

DEVICES_VARIABLE = "CUDA_VISIBLE_DEVICES"
GPU_PREFIXES = ("GPU-", "MIG-")  # begin the names of cards, and of parts of them
NUM_ID_CHARACTERS = 12  # of the name of a card: CUDA takes any beginning that no other card has


def with_interpreter(command: Sequence[str]) -> List[str]:
    """Return a program and its arguments, where a plain `python` is this interpreter."""
    return [sys.executable if word == PYTHON else word for word in command[:1]] + list(command[1:])


def num_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def origin_here(packages: Tuple[str, ...] = (), *, device: Optional[str] = None) -> Origin:
    """Return the origin of the runs that this process starts. Each sees the CUDA device `device` alone; None for all
    that this process sees. `packages` are the modules that it imports for the models that they register."""
    gpus = _gpus_of(os.environ.get(DEVICES_VARIABLE) if device is None else device)
    return Origin(
        host=os.environ.get(NODE_VARIABLE) or platform.node(),
        gpu=",".join(gpus),
        gpu_names=", ".join(filter(None, gpus.values())),
        job=next((os.environ[name] for name in JOB_VARIABLES if name in os.environ), ""),
        python=platform.python_version(),
        versions=_versions(packages),
        platform=platform.platform(),
        processor=_processor_name(),
        cores=num_cores(),
        memory_gib=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
    )


def _versions(modules: Tuple[str, ...]) -> Mapping[str, str]:
    """Return the versions of `PACKAGES` and of the distributions that modules come from. Python 3.10 does not know all
    of them; the others mostly have the module's name."""
    roots = dict.fromkeys(module.partition(".")[0] for module in modules if not module.startswith("fiesta_allennlp."))
    distributions_by_root = packages_distributions() if roots else {}
    versions = {"fiesta-allennlp": __version__}
    for name in (*PACKAGES, *(name for root in roots for name in distributions_by_root.get(root, [root]))):
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def _processor_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _cards() -> List[Tuple[str, str]]:
    """Return the name by which CUDA finds each NVIDIA card, and its model, in the order of their numbers. torch is not
    asked, because it would take memory on each card."""
    lines = _nvidia_smi("--query-gpu=uuid,name", "--format=csv,noheader,nounits")
    return [(uuid.strip(), model.strip()) for uuid, _, model in (line.partition(",") for line in lines)]


def _gpus_of(device_list: Optional[str]) -> Dict[str, str]:
    """Return the names of the GPUs in a list for `CUDA_VISIBLE_DEVICES`, each with its model; all GPUs for None."""
    cards = _cards()
    entries = [uuid for uuid, _ in cards] if device_list is None else _split_devices(device_list)
    gpus: Dict[str, str] = {}
    for entry in entries:
        uuid = cards[int(entry)][0] if entry.isdigit() and int(entry) < len(cards) else entry
        models = (model for card, model in cards if card.startswith(uuid))
        gpus[uuid[:NUM_ID_CHARACTERS]] = next(models, "")
    return gpus


def visible_gpus() -> List[str]:
    """Return the GPUs that this process may use, in the order in which it numbers them, as `CUDA_VISIBLE_DEVICES` names
    them: numbers of cards, or names. As for CUDA, a list ends before its first wrong entry. Only where the driver does
    not answer, torch counts them."""
    device_list, num_cards = os.environ.get(DEVICES_VARIABLE), len(_cards())
    cards = [str(index) for index in range(num_cards or _num_torch_devices())]
    if device_list is None:
        return cards
    devices = _split_devices(device_list)
    return [*takewhile(lambda entry: entry in cards or is_gpu(entry), devices)] if num_cards else devices[: len(cards)]


def is_gpu(name: str) -> bool:
    """Return whether a name, such as GPU-8932f937 or one that begins with MIG-, is that of a card or a part of one."""
    return name.startswith(GPU_PREFIXES) and any(f"UUID: {name}" in line for line in _nvidia_smi("-L"))


def _split_devices(device_list: str) -> List[str]:
    return [entry.strip() for entry in device_list.split(",") if entry.strip()]


def _num_torch_devices() -> int:
    try:
        import torch
    except ModuleNotFoundError:  # a selection among programs needs no torch
        return 0
    return torch.cuda.device_count()


def _nvidia_smi(*query: str) -> List[str]:
    """Return the lines of an answer of `nvidia-smi`; none if it does not answer."""
    try:
        process = subprocess.run(["nvidia-smi", *query], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in process.stdout.splitlines() if line.strip()]
