"""Search spaces in files: our own JSON, and the forms of allennlp-optuna and AllenTune."""

import json
from pathlib import Path
from typing import Any, Callable, List, Mapping, Sequence, Tuple

from fiesta_allennlp.errors import ConfigError, did_you_mean
from fiesta_allennlp.files import no_constant, shortened
from fiesta_allennlp.searches.space import Choices, Numbers, Space, Values, is_number


def read_space(given: Any) -> Space:
    """Return the space in a JSON file, or as plain data: our own form, a list as allennlp-optuna has it, or an object
    as AllenTune has it.

    Raises:
        ConfigError: where the file is missing, no JSON, or an entry is wrong; with the file, the entry and the value.
    """
    is_file = isinstance(given, (str, Path))
    content = _content(Path(given)) if is_file else given
    try:
        return Space(dict(_entries(content)))
    except ConfigError as error:
        raise ConfigError(f"{given if is_file else 'the space'}: {error}") from error


def _content(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"), parse_constant=no_constant)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}. Give the search space as a JSON file.") from error
    except ValueError as error:
        raise ConfigError(f"{path}: is not valid JSON: {error}") from error


def _entries(content: Any) -> List[Tuple[str, Values]]:
    if isinstance(content, list):
        return [_of_optuna(entry, number) for number, entry in enumerate(content, start=1)]
    if not isinstance(content, dict) or not content:
        raise ConfigError(
            'must be an object of names, such as {"lr": {"low": 1e-4, "high": 0.1, "log": true}, "layers": [1, 2]}, '
            f"but is {shortened(content)}."
        )
    return [(name, _named(name, entry)) for name, entry in content.items()]


def _named(name: str, entry: Any) -> Values:
    """Return an entry of our own form or of AllenTune's."""
    if isinstance(entry, dict) and "sampling strategy" in entry:
        return _of_allentune(name, entry)
    if isinstance(entry, dict):
        return _numbers(name, entry, kind=entry.get("type"))
    return _choices(name, entry if isinstance(entry, list) else [entry])


OWN_KEYS = ("low", "high", "log", "step", "type")


def _numbers(name: str, entry: Mapping[str, Any], *, kind: Any) -> Numbers:
    unknown = next((key for key in entry if key not in OWN_KEYS), None)
    if unknown is not None:
        hint = did_you_mean(unknown, OWN_KEYS)
        raise ConfigError(f"'{name}': '{unknown}' is an unknown key.{hint} Valid keys: {', '.join(OWN_KEYS)}.")
    low: Any = entry.get("low")
    high: Any = entry.get("high")
    step, log = entry.get("step"), entry.get("log", False)
    if kind not in (None, "int", "float"):
        raise ConfigError(f"'{name}': 'type' must be int or float but is {json.dumps(kind)}.")
    if not is_number(low) or not is_number(high) or low > high or not isinstance(log, bool):
        raise ConfigError(
            f"'{name}': a range needs the numbers 'low' and 'high', low first, and 'log' true or false, but is "
            f"{shortened(entry)}. Write a list for a choice among values."
        )
    if log and low <= 0:
        raise ConfigError(f"'{name}': 'log' needs 'low' above 0 but it is {low}.")
    if step is not None and (not is_number(step) or step <= 0 or log):
        raise ConfigError(f"'{name}': 'step' must be a number above 0, without 'log', but is {shortened(entry)}.")
    whole = kind == "int" or (kind is None and all(isinstance(value, int) for value in (low, high, step or 1)))
    if whole and not all(float(value).is_integer() for value in (low, high, step or 1)):
        raise ConfigError(f"'{name}': 'low', 'high' and 'step' of an int must be whole numbers: {shortened(entry)}.")
    return Numbers(low, high, log=log, whole=whole, step=step)


def _choices(name: str, values: Any) -> Choices:
    distinct = {json.dumps(value, sort_keys=True) for value in values} if isinstance(values, list) else set()
    if not distinct or len(distinct) < len(values):
        raise ConfigError(f"'{name}': must be a list of different values but is {shortened(values)}.")
    return Choices(values)


def _of_optuna(entry: Any, number: int) -> Tuple[str, Values]:
    """Read `{"type": "float", "attributes": {"name": "lr", "low": 0.001, "high": 0.1, "log": true}}`"""
    kind = entry.get("type") if isinstance(entry, dict) else None
    attributes = entry.get("attributes") if isinstance(entry, dict) else None
    if kind not in ("int", "float", "categorical") or not isinstance(attributes, dict) or "name" not in attributes:
        raise ConfigError(
            f"entry {number}: must have 'type' int, float or categorical, and 'attributes' with a 'name', but is "
            f"{shortened(entry)}."
        )
    rest = {key: value for key, value in attributes.items() if key != "name"}
    name = str(attributes["name"])
    return name, _choices(name, rest.get("choices")) if kind == "categorical" else _numbers(name, rest, kind=kind)


def _of_allentune(name: str, entry: Mapping[str, Any]) -> Values:
    """Read `{"sampling strategy": "loguniform", "bounds": [0.0001, 0.1]}`, or `choice` with `choices`."""
    read: Mapping[str, Callable[[Sequence[Any]], Values]] = {
        "uniform": lambda ends: _range(name, ends, kind="float"),
        "loguniform": lambda ends: _range(name, ends, kind="float", log=True),
        "integer": lambda ends: _range(name, ends, kind="int"),
    }
    sampling = entry["sampling strategy"]
    if sampling == "choice":
        return _choices(name, entry.get("choices"))
    if sampling not in read:
        raise ConfigError(
            f"'{name}': 'sampling strategy' must be one of {', '.join([*read, 'choice'])} but is "
            f"{json.dumps(sampling)}."
        )
    ends = entry.get("bounds")
    if not isinstance(ends, list) or len(ends) != 2:
        raise ConfigError(f"'{name}': 'bounds' must be two numbers but is {shortened(ends)}.")
    return read[sampling](ends)


def _range(name: str, ends: Sequence[Any], *, kind: str, log: bool = False) -> Numbers:
    return _numbers(name, {"low": ends[0], "high": ends[1], "log": log}, kind=kind)
