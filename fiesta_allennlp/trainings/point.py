"""A point: the values with which one Jsonnet file, the template, gives one candidate."""

import json
import math
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Dict, Mapping, Optional, Tuple

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.files import NOT_IN_NAMES, no_constant, shortened

MOST_BYTES = 60
"""Of a name that is made of values."""
DIGITS = 8
"""Of the digest that ends a name which does not say all values."""


@dataclass(frozen=True)
class Point:
    """Values for one candidate of a template, such as `{"lr": 0.01, "model.dropout": 0.5}`.

    A key with a dot is the path of a config key, as in `--overrides`; a key of the config's top begins with the dot
    (`.vocabulary`). Every other key is an external variable, which the template reads with `std.extVar`.

    Raises:
        ConfigError: where a key cannot be typed, or a value is not JSON.
    """

    values: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key in self.values:
            _check_key(key)
        object.__setattr__(self, "values", {key: _plain(value, key) for key, value in self.values.items()})

    @property
    def variables(self) -> Dict[str, str]:
        """What `std.extVar` gives: a text is itself, and anything else is JSON, for `std.parseJson`."""
        return {key: _text(value) for key, value in self.values.items() if "." not in key}

    @property
    def overrides(self) -> Dict[str, Any]:
        return {key.removeprefix("."): value for key, value in self.values.items() if "." in key}

    @property
    def typed(self) -> str:
        """As it is typed after a template's `?`: `lr=0.01,model.dropout=0.5`. `read_point` reads it back."""
        return ",".join(f"{key}={_typed(value)}" for key, value in self.values.items())

    @property
    def identity(self) -> str:
        """Equal for points with equal values."""
        return json.dumps(self.values, sort_keys=True)

    @property
    def name(self) -> str:
        """The candidate's name: what is typed. Where that is long, or no file can be called so, it is cut and cleaned,
        and ends with a digest of the values."""
        if _can_be_a_name(self.typed) and len(self.typed.encode()) <= MOST_BYTES:
            return self.typed
        short = ",".join(f"{key.rpartition('.')[2]}={_text(value)}" for key, value in self.values.items())
        clean = "".join(c if _can_be_a_name(c) else "_" for c in short).encode()
        start = clean[: MOST_BYTES - DIGITS - 1].decode(errors="ignore")
        return f"{start}~{sha256(self.identity.encode()).hexdigest()[:DIGITS]}"


def read_point(text: str) -> Point:
    """A point from `lr=0.01,layers=2`: each value is JSON, or else a text that ends at the next comma.

    Raises:
        ConfigError: where a name or a value is missing, a name appears twice, or JSON is broken.
    """
    values: Dict[str, Any] = {}
    rest = text
    while rest.strip():
        key, _, rest = rest.partition("=")
        value, rest = _first_value(rest, key := key.strip())
        if key in values:
            raise ConfigError(f"'{key}' is given twice. Leave one of them out.")
        values[key] = value
    return Point(values)


# Keys and values.


def _check_key(key: Any) -> None:
    if not isinstance(key, str) or not key or key != key.strip() or not {",", "="}.isdisjoint(key):
        raise ConfigError(f"the name {json.dumps(key, default=str)} must be a text without '=', ',' and outer blanks.")
    if key.startswith(".") and (key == "." or "." in key[1:]):
        raise ConfigError(f"'{key}': a dot in front is for keys at the top of a config. Write '{key.strip('.')}'.")


def _plain(value: Any, key: str) -> Any:
    """A value as JSON has it. Numbers have no kinds there: 2.0 is 2."""
    value = value.item() if hasattr(value, "item") and not getattr(value, "shape", ()) else value
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: _plain(inner, key) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner, key) for inner in value]
    if value is None or isinstance(value, (bool, int)) or (isinstance(value, str) and _is_text(value)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    raise ConfigError(f"'{key}' must be JSON but is {value!r}, a {type(value).__name__}.")


def _is_text(value: str) -> bool:
    """Whether Jsonnet takes all of it."""
    return "\0" not in value and value.encode("utf-8", "ignore").decode("utf-8") == value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _typed(value: Any) -> str:
    return value if isinstance(value, str) and _reads_back(value) else _json(value)


def _reads_back(text: str) -> bool:
    try:
        return _first_value(text, "") == (text, "")
    except ConfigError:
        return False


def _first_value(text: str, key: str) -> Tuple[Any, str]:
    """The value at the beginning of a text, and what follows its comma."""
    text = text.lstrip()
    found = _first_json(text)
    if found is not None:
        return found
    plain, _, rest = text.partition(",")
    if not plain.strip():
        raise ConfigError(f"'{key}' has no value. Write NAME=VALUE,NAME=VALUE; a text without characters is \"\".")
    if plain[0] in '[{"':
        raise ConfigError(f"'{key}' begins as JSON but is none: {shortened(text)}")
    return plain.strip(), rest


def _first_json(text: str) -> Optional[Tuple[Any, str]]:
    try:
        value, end = json.JSONDecoder(parse_constant=no_constant).raw_decode(text)
    except (ValueError, RecursionError):
        return None
    rest = text[end:].lstrip()
    return (value, rest[1:]) if not rest or rest.startswith(",") else None


def _can_be_a_name(text: str) -> bool:
    return text.isprintable() and set(text).isdisjoint(NOT_IN_NAMES)
