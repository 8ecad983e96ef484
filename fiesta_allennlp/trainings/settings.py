"""The options of a selection as one record, from defaults, a file, and the command line."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.files import split_name
from fiesta_allennlp.selection.settings import (
    OF_EXECUTOR,
    SPLITS,
    ChoiceSettings,
    Kinds,
    check_choices,
    check_kinds,
    check_least,
    fill,
    option,
    overlay,
    registered,
)

CHOICES = {
    "splits": SPLITS,
    "keep": ("none", "best", "all"),
}


KINDS: Dict[str, Kinds] = {
    **dict.fromkeys(("threads_per_worker", "max_failures", "entropy"), (int,)),
    **dict.fromkeys(("time_limit", "max_hours"), (int, float)),
    **dict.fromkeys(("cpus_per_evaluation", "gpus_per_evaluation", "memory_per_evaluation"), (int, float)),
    **dict.fromkeys(("metric", "group_by", "cuda_devices", "overrides", "ray_address"), (str,)),
    **dict.fromkeys(("candidates", "include_package"), (tuple,)),
    **dict.fromkeys(("ship_data", "tensorboard"), (bool,)),
}
"""What a setting may be. Flags are converted by the command line; a file can hold anything."""


OF_EVERY_EXECUTOR = {
    "workers": "--workers",
    "time_limit": "--time-limit",
    "num_threads": "--threads-per-worker",
    "packages": "--include-package",
}
"""Arguments of every executor and where they come from."""


FIXED_AT_START = ("metric", "splits", "group_by", "overrides", "entropy")
"""What decides which scores are made. A selection that is resumed keeps these; all else may change."""


@dataclass(frozen=True)
class Settings(ChoiceSettings):
    """What `allennlp fiesta-select` can be told. Names and defaults are those of the command's options.

    `candidates` are config files, each as `PATH` or `NAME=PATH`. `executor` is a registered name or a JSON object
    with a `type`. `workers` is a number or `auto`.
    """

    candidates: Tuple[str, ...] = ()
    metric: str = "macro_f1"
    splits: str = "shared"
    group_by: Optional[str] = None
    workers: Any = 1
    executor: Any = "processes"
    threads_per_worker: int = 1
    cuda_devices: Optional[str] = None
    ray_address: Optional[str] = None
    cpus_per_evaluation: Optional[float] = None
    gpus_per_evaluation: Optional[float] = None
    memory_per_evaluation: Optional[float] = None
    ship_data: Optional[bool] = None
    max_hours: Optional[float] = None
    time_limit: Optional[float] = None
    max_failures: int = 3
    keep: str = "none"
    tensorboard: bool = False
    overrides: str = ""
    entropy: Optional[int] = None
    include_package: Tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_kinds(self, KINDS)
        check_choices(self, CHOICES)
        check_least(self, {"max_failures": 1, "entropy": 0})
        if self.workers != "auto" and (not isinstance(self.workers, int) or isinstance(self.workers, bool)):
            raise ConfigError(f"--workers must be a whole number or auto but got {json.dumps(self.workers)}.")
        if self.max_hours is not None and not self.max_hours > 0:
            raise ConfigError(f"--max-hours must be above 0 but got {self.max_hours:g}.")

    def as_json(self) -> Dict[str, Any]:
        """Plain data, for the store."""
        return {**asdict(self), "candidates": list(self.candidates), "include_package": list(self.include_package)}

    def executor_params(self) -> Dict[str, Any]:
        """The executor as a config, with the options that belong to it filled in; those that all have are left out.

        # Raises

        `ConfigError` : where options contradict the executor's own entries.
        """
        params = registered(self.executor, "--executor")
        for key, flag in OF_EVERY_EXECUTOR.items():
            if key in params:
                raise ConfigError(f"{flag} is an option of its own: take '{key}' out of --executor.")
        fill(params, {name: getattr(self, name) for name in OF_EXECUTOR}, "--executor")
        devices = params.get("cuda_devices")
        if devices is not None:
            given = devices.split(",") if isinstance(devices, str) else devices
            params["cuda_devices"] = [str(device).strip() for device in given]
        return params


def merge(*layers: Mapping[str, Any]) -> Settings:
    """Settings from layers of given values, later ones winning; see `overlay`."""
    return Settings(**overlay(*layers, of=Settings))


def named_candidates(candidates: Tuple[str, ...], *, least: int = 2) -> Dict[str, Path]:
    """Candidate names and their files, in the order given. A file's name without its ending names its candidate.

    # Raises

    `ConfigError` : where there are fewer than `least`, or two of one name.
    """
    named: Dict[str, Path] = {}
    for given in candidates:
        name, path = split_name(given, what="candidate", stem=Path(given).stem)
        if name in named:
            raise ConfigError(
                f"two candidates are named '{name}': {named[name]} and {path}. Name one of them anew with NAME={path}."
            )
        named[name] = Path(path)
    if len(named) < least:
        raise ConfigError(
            f"a selection needs at least 2 candidates but got {len(named)}: {', '.join(named) or 'none'}. "
            "Give several config files."
        )
    return named


def changed_settings(old: Mapping[str, Any], new: Settings) -> List[str]:
    """In words, what a resumed selection must not change but does."""
    return [
        f"{option(name)} was {json.dumps(old.get(name))} and is now {json.dumps(getattr(new, name))}"
        for name in FIXED_AT_START
        if old.get(name) != getattr(new, name)
    ]
