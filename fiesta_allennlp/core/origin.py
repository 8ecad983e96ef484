"""The origin of an outcome: the machine that made it, and its software. And where this package itself comes from."""

import json
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Mapping, NamedTuple, Tuple


class Machine(NamedTuple):
    """A host with the GPUs that a run saw: what a failure may be blamed on, if not the candidate."""

    host: str
    gpu: str = ""

    def __str__(self) -> str:
        return f"{self.host} (GPU {self.gpu.removeprefix('GPU-')})" if self.gpu else self.host


@dataclass(frozen=True)
class Origin:
    """The machine and the software that made an outcome. All is empty if they are unknown, as for scores of a table.

    `gpu` names the GPUs that the run saw, as `CUDA_VISIBLE_DEVICES` does, and `gpu_names` has their models. `job` is
    the job of a batch system. `versions` are those of the packages that decide scores, by distribution. With
    `is_only_machine`, the selection had no other machine for the run: neither another host nor another GPU.
    `file` is the table of scores that a run was taken from, which was made before the selection began.
    """

    host: str = ""
    gpu: str = ""
    gpu_names: str = ""
    job: str = ""
    python: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    platform: str = ""
    processor: str = ""
    cores: int = 0
    memory_gib: float = 0.0
    is_only_machine: bool = True
    file: str = ""

    @property
    def machine(self) -> Machine:
        return Machine(self.host, self.gpu)

    @property
    def software(self) -> Mapping[str, str]:
        """The versions of Python and of the packages."""
        return {"Python": self.python, **self.versions}

    @property
    def hardware(self) -> Tuple[Any, ...]:
        """The kind of machine, whatever its name."""
        return self.processor, self.cores, self.memory_gib, self.gpu_names, self.platform

    @property
    def without_job(self) -> "Origin":
        """The same machine and software, whatever the job."""
        return replace(self, job="", is_only_machine=True)


UNKNOWN_ORIGIN = Origin()


GIT_TIMEOUT_SECONDS = 5.0
CLONE = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class PackageSource:
    """The commit of the package, with a plus if files were changed after it, and the URL of its repository. Each is
    empty where it is unknown, as for a package from an index, which its version identifies."""

    commit: str = ""
    url: str = ""


@lru_cache(maxsize=1)
def package_source() -> PackageSource:
    """Return the source that pip recorded (PEP 610), or the commit of the clone that the package is in."""
    with suppress(PackageNotFoundError, ValueError, LookupError, TypeError, AttributeError):
        recorded = json.loads(distribution("fiesta-allennlp").read_text("direct_url.json") or "{}")
        if "vcs_info" in recorded:
            return PackageSource(str(recorded["vcs_info"]["commit_id"])[:10], str(recorded["url"]))
    if not (CLONE / ".git").exists():
        return PackageSource()
    command = ["git", "-C", str(CLONE), "describe", "--always", "--abbrev=10", "--exclude=*", "--dirty=+"]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, capture_output=True, text=True, timeout=GIT_TIMEOUT_SECONDS, check=True)
        return PackageSource(done.stdout.strip())
    return PackageSource()
