"""The versions and the hardware of a selection, for those who want to repeat it."""

import hashlib
import os
import platform
import shlex
import subprocess
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Sequence

from fiesta_allennlp.core.defaults import num_cores
from fiesta_allennlp.core.errors import StoreError
from fiesta_allennlp.core.files import file_digest
from fiesta_allennlp.version import __version__

PACKAGES = ("allennlp", "allennlp-models", "torch", "transformers", "spacy", "scikit-learn", "numpy", "scipy", "ray")
"""Distributions whose versions decide scores. One that is not installed is left out."""


def describe_environment(packages: Iterable[str] = (), files: Iterable[str] = ()) -> Dict[str, Any]:
    """Describe this machine as plain data: `host`, `directory` (the current one), `python`, `platform`, `processor`,
    `cores`, `memory_gib`, `gpus` (their names), `versions` (by distribution) and `code` (SHA-256 of each file,
    and of all source files of each top-level module that can be found). `packages` are further modules to look up,
    `files` are programs."""
    modules = sorted({package.partition(".")[0] for package in packages})
    return {
        "host": platform.node(),
        "directory": os.getcwd(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": _processor_name(),
        "cores": num_cores(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "gpus": query_gpus("name"),
        "versions": _versions(modules),
        "code": {**{file: file_digest(Path(file)) for file in files}, **_source_digests(modules)},
    }


def append_environment(environments: Sequence[Dict[str, Any]], current: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Return the environments of a selection's sessions, and this one if it differs from the last."""
    return [*environments] if current in environments[-1:] else [*environments, current]


def changed_code(environments: Sequence[Mapping[str, Any]], current: Mapping[str, Any]) -> List[str]:
    """Return the files, and the modules with source files, that have changed since the selection last ran."""
    digests_before = environments[-1].get("code", {}) if environments else {}
    return [name for name, digest in current["code"].items() if digests_before.get(name, digest) != digest]


def check_current_directory(environments: Sequence[Mapping[str, Any]]) -> None:
    """Refuse to continue a selection in another directory than it began in, where relative paths name other files. A
    directory that does not exist any more, or on another machine, has been moved."""
    first_directory = next((environment["directory"] for environment in environments if "directory" in environment), "")
    if os.path.isdir(first_directory) and not os.path.samefile(first_directory, os.getcwd()):
        here, there = os.getcwd(), shlex.quote(first_directory)
        raise StoreError(f"the selection began in another directory than {here}. Continue there: cd {there}")


def _source_digests(modules: Iterable[str]) -> Dict[str, str]:
    digests = {}
    for name in modules:
        digest = hashlib.sha256()
        source_files = _source_files(name)
        for file in source_files:
            digest.update(f"{file.name} {file_digest(file)}".encode())
        if source_files:
            digests[name] = digest.hexdigest()
    return digests


def _source_files(module: str) -> List[Path]:
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return []
    if spec is None:
        return []
    directories = spec.submodule_search_locations
    if directories is not None:
        return sorted(path for directory in directories for path in Path(directory).rglob("*.py"))
    return [Path(spec.origin)] if spec.origin is not None and Path(spec.origin).is_file() else []


def _versions(modules: Sequence[str]) -> Dict[str, str]:
    """Return the versions of `PACKAGES` and of the distributions that modules come from. Python 3.10 does not know all
    of them; the others mostly have the module's name."""
    distributions_by_module = packages_distributions() if modules else {}
    versions = {"fiesta-allennlp": __version__}
    for name in (*PACKAGES, *(name for module in modules for name in distributions_by_module.get(module, [module]))):
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


def query_gpus(field: str) -> List[str]:
    """Return one fact about each NVIDIA card as `nvidia-smi --query-gpu` names it, without units; empty without a card.
    torch is not asked, because it would take memory on each card."""
    return _nvidia_smi(f"--query-gpu={field}", "--format=csv,noheader,nounits")


DEVICES_VARIABLE = "CUDA_VISIBLE_DEVICES"
MIG_PREFIX = "MIG-"  # begins the names of parts of a card
GPU_PREFIXES = ("GPU-", MIG_PREFIX)


def visible_gpus() -> List[str]:
    """Return the GPUs that this process may use, in the order in which it numbers them, as `CUDA_VISIBLE_DEVICES` names
    them: numbers of cards, or names. As for CUDA, a list ends before its first wrong entry, and is empty if an entry is
    repeated. Only where the driver does not answer, torch counts them."""
    device_list, cards = os.environ.get(DEVICES_VARIABLE), [str(index) for index, _ in enumerate(query_gpus("name"))]
    if not cards:
        cards = [str(index) for index in range(_num_torch_devices())]
        return cards if device_list is None else _split_devices(device_list)[: len(cards)]
    if device_list is None:
        return cards
    devices = list(takewhile(lambda entry: entry in cards or is_gpu(entry), _split_devices(device_list)))
    return devices if len(set(devices)) == len(devices) else []


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
