"""Candidates as they are typed, and the points that turn one Jsonnet file, the template, into many candidates."""

import json
import math
import os
import shlex
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.core.errors import ConfigError, join_some
from fiesta_allennlp.core.files import read_jsonl, refuse_constant, refuse_repeated_keys, shorten, shown_value
from fiesta_allennlp.core.names import FORBIDDEN_CHARACTERS, split_name
from fiesta_allennlp.selection.jsonnet import SURROGATE_PATTERN
from fiesta_allennlp.trainings.programs.config import PLACEHOLDER_PATTERN

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
        """The text after a template's `?`, such as `lr=0.01,model.dropout=0.5`. `parse_point` reads it back."""
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


def parse_point(text: str) -> Point:
    """Read a point such as `lr=0.01,layers=2`. Each value is JSON, or a text that ends at the next comma."""
    values: Dict[str, Any] = {}
    remaining = text
    while remaining.strip():
        key, _, remaining = remaining.partition("=")
        value, remaining = _split_first_value(remaining, key := key.strip())
        if key in values:
            raise ConfigError(f"'{key}' appears twice. Remove one of them.")
        values[key] = value
    return Point(values)


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
        """The command, or the config and the values, as `parse_candidate` reads them."""
        if self.command:
            return self.command
        return f"{self.path}?{self.point.text}" if self.point.values else str(self.path)


def parse_candidate(source: str, *, name: Optional[str] = None) -> CandidateSpec:
    """Read a candidate that is typed as `CONFIG`, `CONFIG?NAME=VALUE,...` or a command."""
    if is_command(source):
        return CandidateSpec(Path(), explicit_name=name, command=source)
    path, question_mark, values = source.partition("?")
    if not question_mark or os.path.isfile(source):
        return CandidateSpec(Path(source), explicit_name=name)
    try:
        return CandidateSpec(Path(path), parse_point(values), name)
    except ConfigError as error:
        raise ConfigError(f"candidate '{source}': {error}") from error


def is_command(text: str) -> bool:
    """Return whether a candidate is a command: it contains spaces and a placeholder, and does not begin with a file."""
    is_template = os.path.isfile(text.partition("?")[0])
    return len(text.split()) > 1 and PLACEHOLDER_PATTERN.search(text) is not None and not is_template


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
            specs.append(parse_candidate(source, name=name))
    return specs


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
    configs_without_values = list(dict.fromkeys(text for text in candidates if "?" not in text or os.path.isfile(text)))
    if len(configs_without_values) != 1:
        raise ConfigError(
            f"--points needs exactly one config, the template, but got {join_some(configs_without_values) or 'none'}. "
            "To include a config unchanged, put a question mark after its path: 'CONFIG.jsonnet?'."
        )
    (template,) = configs_without_values
    if "=" in template and not os.path.isfile(template):
        raise ConfigError(f"--points names the candidates after their values: remove the name from '{template}'.")
    return template


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
    """Return a string unchanged if `_split_first_value` reads it back, and anything else as JSON."""
    with suppress(ConfigError):
        if isinstance(value, str) and _split_first_value(value, "") == (value, ""):
            return value
    return _to_json_text(value)


def _split_first_value(text: str, key: str) -> Tuple[Any, str]:
    """Return the value at the beginning of a text, and the text after its comma."""
    text = text.lstrip()
    with suppress(ValueError, RecursionError):
        decoder = json.JSONDecoder(parse_constant=refuse_constant, object_pairs_hook=refuse_repeated_keys)
        value, end = decoder.raw_decode(text)
        remaining = text[end:].lstrip()
        if not remaining or remaining.startswith(","):
            return value, remaining[1:]
    plain_text, _, remaining = text.partition(",")
    if not plain_text.strip() or plain_text[0] in '[{"':
        raise ConfigError(f"'{key}' must be JSON, or a text without commas, but is {shorten(text) or 'empty'}.")
    return plain_text.strip(), remaining


def _is_valid_name(text: str) -> bool:
    return text.isprintable() and set(text).isdisjoint(FORBIDDEN_CHARACTERS)
