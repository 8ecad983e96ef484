"""Candidates as they are typed, and the points that turn one Jsonnet file, the template, into many candidates."""

import json
import math
import os
import shlex
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

from fiesta_allennlp.candidates.programs.program import PLACEHOLDER_PATTERN
from fiesta_allennlp.core.errors import ConfigError, join_some
from fiesta_allennlp.core.files import read_jsonl, shown_value
from fiesta_allennlp.core.names import FORBIDDEN_CHARACTERS, split_name
from fiesta_allennlp.core.settings.jsonnet import SURROGATE_PATTERN

MAX_NAME_BYTES = 60  # of a name that is made of values
DIGEST_DIGITS = 8  # of the digest that ends a shortened name


@dataclass(frozen=True)
class Point:
    """Values for one candidate of a template, such as `{"lr": 0.01, "model.dropout": 0.5}`.

    A key with a dot is the path of a config key, as in `--overrides`; a key of the config's top begins with the dot
    (`.vocabulary`). Every other key is an external variable, which the template reads with `std.extVar`; or, if the
    template is a command, a placeholder. `explicit_name` names the candidate, which is by default named after the
    values.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    explicit_name: Optional[str] = None

    def __post_init__(self) -> None:
        for key in self.values:
            _check_key(key)
        object.__setattr__(self, "values", {key: _to_json_value(value, key) for key, value in self.values.items()})

    @property
    def variables(self) -> Dict[str, str]:
        """The external variables: strings unchanged, and anything else as JSON, for `std.parseJson`."""
        return {key: _to_text(value) for key, value in self.values.items() if "." not in key}

    @property
    def overrides(self) -> Dict[str, Any]:
        return {key.removeprefix("."): value for key, value in self.values.items() if "." in key}

    @property
    def text(self) -> str:
        """The values as one text, such as `lr=0.01,model.dropout=0.5`, which differs for points with other values."""
        return ",".join(f"{key}={_to_point_text(value)}" for key, value in self.values.items())

    @property
    def identity(self) -> str:
        """A text that is equal for points with equal values."""
        return json.dumps(self.values, sort_keys=True)

    @property
    def name(self) -> str:
        """The candidate's name: the text as typed, unless another one is given. If it is long, or cannot name a file,
        it is cut and cleaned, and ends with a digest of the values."""
        if self.explicit_name is not None:
            return self.explicit_name
        if _is_valid_name(self.text) and len(self.text.encode()) <= MAX_NAME_BYTES:
            return self.text
        short = ",".join(f"{key.rpartition('.')[2]}={_to_text(value)}" for key, value in self.values.items())
        clean = "".join(c if _is_valid_name(c) else "_" for c in short).encode()
        start = clean[: MAX_NAME_BYTES - DIGEST_DIGITS - 1].decode(errors="ignore")
        return f"{start}~{sha256(self.identity.encode()).hexdigest()[:DIGEST_DIGITS]}"


EMPTY_POINT = Point()
NO_POINTS = "none"


@dataclass(frozen=True)
class CandidateSpec:
    """A candidate as it is typed: the `path` of a config, with the values of a `point` if it is a template; or the
    `command` of a program without a config, for which `path` is empty."""

    path: Path
    point: Point = EMPTY_POINT
    explicit_name: Optional[str] = None
    command: str = ""

    @property
    def name(self) -> str:
        """The given name, or the values, or the config's file name without its extension."""
        return (self.point.name or self.path.stem) if self.explicit_name is None else self.explicit_name

    @property
    def label(self) -> str:
        """The name for messages: the source of a config, or the name of a command, which may be long."""
        return f"candidate '{self.name}'" if self.command else self.source

    @property
    def source(self) -> str:
        """The command, or the config with the values after a question mark."""
        if self.command:
            return self.command
        return f"{self.path}?{self.point.text}" if self.point.values else str(self.path)


def is_command(text: str) -> bool:
    """Return whether a candidate is a command: it contains spaces and a placeholder, and does not begin with a file."""
    return len(text.split()) > 1 and PLACEHOLDER_PATTERN.search(text) is not None and not os.path.isfile(text)


def parse_candidates(texts: Sequence[str], points: Any = None) -> List[CandidateSpec]:
    """Read candidates that are typed as `SOURCE` or `NAME=SOURCE`; each point of the template makes one. The template
    is the only config, or without a config the only command. `points` is a JSONL file, a list of points, or None or
    `none` for none."""
    template = None if points in (None, NO_POINTS) else _find_template(texts)
    point_specs = [] if template is None else [_spec_at(template, point) for point in read_points(points)]
    specs: List[CandidateSpec] = []
    for text in texts:
        name, source = split_name(text)
        if text == template:
            specs += point_specs
        elif is_command(text) and (name is None or len(name.split()) != 1):
            raise ConfigError(f"the command '{text}' needs a name without spaces in front, as in 'NAME=COMMAND'.")
        else:
            specs.append(_spec_of(source, name))
    return specs


def _spec_of(source: str, name: Optional[str]) -> CandidateSpec:
    if is_command(source):
        return CandidateSpec(Path(), explicit_name=name, command=source)
    return CandidateSpec(Path(source), explicit_name=name)


def read_points(points: Any) -> List[Point]:
    """Read the points of a JSONL file, or of a list of objects, which must all differ."""
    if isinstance(points, str):
        rows = [(f"--points {points}, line {line}", row) for line, row in read_jsonl(Path(points))]
    elif isinstance(points, (list, tuple)):
        rows = [(f"--points, point {position}", row) for position, row in enumerate(points, start=1)]
    else:
        raise ConfigError(f"--points must be a JSONL file or a list of objects but is {shown_value(points)}.")
    if not rows:
        raise ConfigError(f'--points {points} is empty. Add an object such as {{"lr": 0.01}} for each candidate.')
    points_by_identity: Dict[str, Point] = {}
    for where, row in rows:
        if not isinstance(row, (Mapping, Point)):
            raise ConfigError(f'{where}: expected an object such as {{"lr": 0.01}} but found {shown_value(row)}.')
        try:
            point = row if isinstance(row, Point) else Point(row)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from error
        if point.identity in points_by_identity:
            raise ConfigError(f"{where}: duplicate of an earlier point: {point.text or 'no values'}. Remove it.")
        points_by_identity[point.identity] = point
    return list(points_by_identity.values())


def plain_points(points: Any) -> Any:
    """Return points from Python as plain data: the path of a file as text, or a checked list."""
    if points is None or isinstance(points, (str, Path)):
        return None if points is None else str(points)
    return [dict(point.values) for point in read_points(points)]


def _find_template(texts: Sequence[str]) -> str:
    candidates = [text for text in texts if not is_command(text)]
    if not candidates and len(texts) == 1:
        return texts[0]
    unnamed_configs = list(dict.fromkeys(text for text in candidates if split_name(text)[0] is None))
    if len(unnamed_configs) != 1:
        raise ConfigError(
            f"--points needs exactly one config without a name, the template, but got "
            f"{join_some(unnamed_configs) or 'none'}. To include a config unchanged, name it: NAME=CONFIG.jsonnet."
        )
    return unnamed_configs[0]


def _spec_at(template: str, point: Point) -> CandidateSpec:
    """Return the candidate that a template is at a point. A command uses every value as a placeholder."""
    if not is_command(template):
        return CandidateSpec(Path(template), point)
    name, source = split_name(template)
    command = source if name is not None and len(name.split()) == 1 else template
    texts = {key: shlex.quote(_to_text(value)) for key, value in point.values.items()}
    for key in texts.keys() - {match[2] for match in PLACEHOLDER_PATTERN.finditer(command)}:
        raise ConfigError(f"the command '{command}' does not use {{{key}}}. Add it, or remove '{key}'.")
    command = PLACEHOLDER_PATTERN.sub(lambda match: texts.get(match[2], match[0]), command)
    return CandidateSpec(Path(), point, command=command)


# Keys and values.


def _check_key(key: Any) -> None:
    if not isinstance(key, str) or not key or key != key.strip() or not {",", "="}.isdisjoint(key):
        raise ConfigError(f"the name {json.dumps(key, default=str)} must be a string without '=', ',' or outer spaces.")
    if key.startswith(".") and (key == "." or "." in key[1:]):
        raise ConfigError(f"'{key}': a leading dot is only for top-level keys. Write '{key.strip('.')}'.")


def _to_json_value(value: Any, key: str) -> Any:
    """Return a value as JSON has it. JSON does not distinguish kinds of numbers: 2.0 is 2."""
    value = value.item() if hasattr(value, "item") and not getattr(value, "shape", ()) else value
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: _to_json_value(item, key) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_json_value(item, key) for item in value]
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str) and "\0" not in value and not SURROGATE_PATTERN.search(value):  # which Jsonnet cuts off
        return value
    if isinstance(value, float) and math.isfinite(value):
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    raise ConfigError(f"'{key}' must be JSON but is {value!r}, a {type(value).__name__}.")


def _to_json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else _to_json_text(value)


def _to_point_text(value: Any) -> str:
    """Return a string unchanged unless it looks like another value, and anything else as JSON."""
    is_plain = isinstance(value, str) and value == value.strip() != "" and value[0] not in '[{"' and "," not in value
    return value if is_plain and not _is_json(value) else _to_json_text(value)


def _is_json(text: str) -> bool:
    with suppress(ValueError, RecursionError):
        json.loads(text)
        return True
    return False


def _is_valid_name(text: str) -> bool:
    return text.isprintable() and set(text).isdisjoint(FORBIDDEN_CHARACTERS)
