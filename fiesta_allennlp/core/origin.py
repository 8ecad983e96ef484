"""The origin of an outcome: the machine that made it, and its software."""

from dataclasses import dataclass, field, replace
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
