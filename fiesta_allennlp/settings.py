"""The options of a selection as one record, from defaults, a file, and the command line."""

import difflib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

from allennlp.common import Params

from fiesta_allennlp.choice import SPLITS, ChoiceSettings, Kinds, check_choices, check_kinds, check_least, option
from fiesta_allennlp.errors import ConfigError

CHOICES = {
    "splits": SPLITS,
    "keep": ("none", "best", "all"),
    "executor": ("processes",),
}

KINDS: Dict[str, Kinds] = {
    **dict.fromkeys(("workers", "threads_per_worker", "max_failures", "entropy"), (int,)),
    **dict.fromkeys(("metric", "group_by", "cuda_devices", "overrides"), (str,)),
    "time_limit": (int, float),
    **dict.fromkeys(("candidates", "include_package"), (tuple,)),
}
"""What a setting may be. Flags are converted by the command line; a file can hold anything."""

FIXED_AT_START = ("metric", "splits", "group_by", "overrides", "entropy")
"""What decides which scores are made. A selection that is resumed keeps these; all else may change."""


@dataclass(frozen=True)
class Settings(ChoiceSettings):
    """What `allennlp fiesta-select` can be told. Names and defaults are those of the command's options.

    `candidates` are config files, each as `PATH` or `NAME=PATH`.
    """

    candidates: Tuple[str, ...] = ()
    metric: str = "macro_f1"
    splits: str = "shared"
    group_by: Optional[str] = None
    workers: int = 1
    executor: str = "processes"
    threads_per_worker: int = 1
    cuda_devices: Optional[str] = None
    time_limit: Optional[float] = None
    max_failures: int = 3
    keep: str = "none"
    overrides: str = ""
    entropy: Optional[int] = None
    include_package: Tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_kinds(self, KINDS)
        check_choices(self, CHOICES)
        check_least(self, {"max_failures": 1, "entropy": 0})

    def as_json(self) -> Dict[str, Any]:
        """Plain data, for the store."""
        return {**asdict(self), "candidates": list(self.candidates), "include_package": list(self.include_package)}

    @property
    def device_list(self) -> List[str]:
        """The devices of `cuda_devices`, none where it was not given."""
        return [] if self.cuda_devices is None else [device.strip() for device in self.cuda_devices.split(",")]


def merge(*layers: Mapping[str, Any]) -> Settings:
    """Settings from layers of given values, later ones winning; see `overlay`."""
    return Settings(**overlay(*layers))


def overlay(*layers: Mapping[str, Any]) -> Dict[str, Any]:
    """What several layers of given values come to, later ones winning.

    A layer that gives a budget takes the confidence of the layers below away, with the strategy that goes with it, and
    the other way round.

    # Raises

    `ConfigError` : on a name that is no setting, with the near ones.
    """
    merged: Dict[str, Any] = {}
    rivals = {"budget": ("confidence", "margin", "max_evaluations", "stop"), "confidence": ("budget",)}
    known = [f.name for f in fields(Settings)]
    for layer in layers:
        replaced = [
            below for name in rivals.keys() & layer.keys() for below in rivals[name] if merged.get(below) is not None
        ]
        for below in [*replaced, "strategy"] if replaced else []:
            merged.pop(below, None)
        for name, value in layer.items():
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f" Did you mean '{near[0]}'?" if near else ""
                raise ConfigError(f"'{name}' is not a setting.{hint} There are: {', '.join(known)}.")
            merged[name] = tuple(value) if isinstance(value, list) else value
    return merged


def settings_from_file(path: Path) -> Dict[str, Any]:
    """The given values of a `--config` file: Jsonnet with the options' names, dashes or underscores.

    # Raises

    `ConfigError` : where the file is missing or no Jsonnet object.
    """
    if not path.is_file():
        raise ConfigError(f"--config {path}: there is no such file.")
    try:
        values = Params.from_file(str(path)).as_dict(quiet=True)
    except (RuntimeError, ValueError) as error:
        raise ConfigError(f"--config {path}: cannot be read as Jsonnet: {str(error).strip()}") from error
    if not isinstance(values, dict):
        raise ConfigError(
            f"--config {path}: must be a Jsonnet object with options as keys but is a {type(values).__name__}."
        )
    given = {name.replace("-", "_"): value for name, value in values.items()}
    if isinstance(given.get("cuda_devices"), list):
        given["cuda_devices"] = ",".join(map(str, given["cuda_devices"]))
    try:
        merge(given)
    except ConfigError as error:
        raise ConfigError(f"--config {path}: {error}") from error
    return given


def named_candidates(candidates: Tuple[str, ...]) -> Dict[str, Path]:
    """Candidate names and their files, in the order given. A file's name without its ending names its candidate.

    # Raises

    `ConfigError` : where there are fewer than two, or two of one name.
    """
    named: Dict[str, Path] = {}
    for given in candidates:
        name, separator, path = given.partition("=")
        if not separator:
            name, path = Path(given).stem, given
        if not name or not set(name).isdisjoint('/\\:*?"<>|'):
            raise ConfigError(f"candidate '{given}': a name must not be empty nor contain any of / \\ : * ? \" < > |.")
        if name in named:
            raise ConfigError(
                f"two candidates are named '{name}': {named[name]} and {path}. Name one of them anew with NAME={path}."
            )
        named[name] = Path(path)
    if len(named) < 2:
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
