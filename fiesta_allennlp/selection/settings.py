"""The options that every family has in common, and how layers of given values are laid over each other."""

import difflib
import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Dict, Iterable, Mapping, Optional, Sequence, Tuple, Type

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.files import read_jsonnet

SPLITS = ("shared", "independent")


Kinds = Tuple[type, ...]


KIND_WORDS = {int: "a whole number", float: "a number", str: "text", tuple: "a list", bool: "true or false"}


@dataclass(frozen=True)
class ChoiceSettings:
    """What decides which candidate is evaluated next and when it is enough.

    `strategy`, `belief` and `stop` are registered names or JSON objects with a `type`; `strategy` None stands for
    `ttts`, or `sequential_halving` where a budget is given; `stop` None for `bayesian`.
    """

    strategy: Any = None
    belief: Any = "split_paired"
    stop: Any = None
    confidence: Optional[float] = None
    budget: Optional[int] = None
    margin: Optional[float] = None
    max_evaluations: Optional[int] = None

    def __post_init__(self) -> None:
        check_kinds(self, dict.fromkeys(("confidence", "margin"), (int, float)))
        check_kinds(self, dict.fromkeys(("budget", "max_evaluations"), (int,)))

    def strategy_params(self) -> Dict[str, Any]:
        """The strategy as a config, with the options that belong to it filled in.

        # Raises

        `ConfigError` : where options contradict each other or the strategy's own entries.
        """
        if self.confidence is not None and self.budget is not None and self.strategy is None:
            raise ConfigError("--confidence and --budget exclude each other: stop when sure, or after N trainings.")
        params = registered(self.strategy or ("ttts" if self.budget is None else "sequential_halving"), "--strategy")
        if "stop" in params:
            params["stop"] = registered(params["stop"], "--strategy")
        given = {
            "confidence": self.confidence,
            "budget": self.budget,
            "margin": self.margin,
            "max_evaluations": self.max_evaluations,
            "stop": None if self.stop is None else registered(self.stop, "--stop"),
        }
        fill(params, given, "--strategy")
        params.setdefault("belief", registered(self.belief, "--belief"))
        return params


def option(name: str) -> str:
    """A setting's name as it is typed."""
    return "--" + name.replace("_", "-")


def fill(params: Dict[str, Any], given: Mapping[str, Any], where: str) -> None:
    """Put the options that were given into the config of what they belong to, which was given as the option `where`.

    # Raises

    `ConfigError` : where an entry of the config says otherwise.
    """
    for name, value in given.items():
        if value is not None:
            if name in params and params[name] != value:
                raise ConfigError(
                    f"{option(name)} {value} contradicts '{name}': {params[name]} in {where}. Give one of them."
                )
            params[name] = value


def check_names(names: Iterable[str], known: Sequence[str]) -> None:
    """Refuse a name that is no setting.

    # Raises

    `ConfigError` : with the near one, and those that there are.
    """
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise ConfigError(f"'{name}' is not a setting.{hint} There are: {', '.join(known)}.")


def check_kinds(settings: Any, kinds: Mapping[str, Kinds]) -> None:
    """Refuse a value of another kind than its setting takes. None is always allowed.

    # Raises

    `ConfigError` : with the option and the value.
    """
    for name, allowed in kinds.items():
        value = getattr(settings, name)
        if value is not None and (not isinstance(value, allowed) or isinstance(value, bool) is not (bool in allowed)):
            raise ConfigError(f"{option(name)} must be {KIND_WORDS[allowed[-1]]} but got {json.dumps(value)}.")


def check_choices(settings: Any, choices: Mapping[str, Tuple[str, ...]]) -> None:
    """Refuse a value that is not among the choices of its setting.

    # Raises

    `ConfigError` : with the option, the choices and the value.
    """
    for name, allowed in choices.items():
        value = getattr(settings, name)
        if value not in allowed:
            raise ConfigError(f"{option(name)} must be one of {', '.join(allowed)} but got '{value}'.")


def check_least(settings: Any, least: Mapping[str, int]) -> None:
    """Refuse a number below the least that its setting allows.

    # Raises

    `ConfigError` : with the option and the value.
    """
    for name, bound in least.items():
        value = getattr(settings, name)
        if value is not None and value < bound:
            rule = "must not be negative" if bound == 0 else f"must be at least {bound}"
            raise ConfigError(f"{option(name)} {rule} but got {value}.")


def registered(value: Any, option_name: str) -> Dict[str, Any]:
    """A registered name, a JSON text or an object, as a config with a `type`."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise ConfigError(f"{option_name}: '{value}' is not valid JSON: {error}") from error
    if isinstance(value, str):
        return {"type": value}
    if not isinstance(value, dict) or "type" not in value:
        raise ConfigError(f"{option_name}: expected a name or a JSON object with a 'type' but got {json.dumps(value)}.")
    return dict(value)


OF_EXECUTOR = (
    "cuda_devices",
    "ray_address",
    "cpus_per_evaluation",
    "gpus_per_evaluation",
    "memory_per_evaluation",
    "ship_data",
)
"""Options of one executor or the other. Each is also a key of `--executor` as JSON."""


def overlay(*layers: Mapping[str, Any], of: Type[ChoiceSettings]) -> Dict[str, Any]:
    """What several layers of given values come to, later ones winning; the values are those of the class `of`.

    A layer that gives a budget takes the confidence of the layers below away, with the strategy that goes with it, and
    the other way round. A layer that gives another executor takes the options of the one below away.

    # Raises

    `ConfigError` : on a name that is no setting, with the near ones.
    """
    merged: Dict[str, Any] = {}
    rivals = {"budget": ("confidence", "margin", "max_evaluations", "stop"), "confidence": ("budget",)}
    known = [f.name for f in fields(of)]
    for layer in layers:
        replaced = [
            below for name in rivals.keys() & layer.keys() for below in rivals[name] if merged.get(below) is not None
        ]
        for below in [*replaced, "strategy"] if replaced else []:
            merged.pop(below, None)
        if "executor" in merged and layer.get("executor", merged["executor"]) != merged["executor"]:
            for name in OF_EXECUTOR:
                merged.pop(name, None)
        check_names(layer, known)
        for name, value in layer.items():
            merged[name] = tuple(value) if isinstance(value, list) else value
    return merged


def settings_from_file(path: Path, of: Type[ChoiceSettings]) -> Dict[str, Any]:
    """The given values of a `--config` file: Jsonnet with the options' names, dashes or underscores. They are those of
    the class `of`.

    # Raises

    `ConfigError` : where the file is missing or no Jsonnet object.
    """
    if not path.is_file():
        raise ConfigError(f"--config {path}: there is no such file.")
    values = read_jsonnet(path, where=f"--config {path}")
    if not isinstance(values, dict):
        raise ConfigError(
            f"--config {path}: must be a Jsonnet object with options as keys but is a {type(values).__name__}."
        )
    given = {name.replace("-", "_"): value for name, value in values.items()}
    if isinstance(given.get("cuda_devices"), list):
        given["cuda_devices"] = ",".join(map(str, given["cuda_devices"]))
    try:
        of(**overlay(given, of=of))
    except ConfigError as error:
        raise ConfigError(f"--config {path}: {error}") from error
    return given
