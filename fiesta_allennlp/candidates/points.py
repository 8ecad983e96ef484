"""Candidates as they are typed, and the points that turn one template into many: values from a file, or the best trials
of an Optuna study (Akiba et al., 2019)."""

import json
import math
import os
import shlex
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.candidates.programs.program_run import PLACEHOLDER_PATTERN
from fiesta_allennlp.core.errors import ConfigError, describe_as_sentence, join_some
from fiesta_allennlp.core.files import SURROGATE_PATTERN, read_jsonl, shown_value
from fiesta_allennlp.core.records import Candidate
from fiesta_allennlp.core.texts import FORBIDDEN_CHARACTERS, split_name

MAX_NAME_BYTES = 60  # of a name that is made of values
DIGEST_DIGITS = 8  # of the digest that ends a shortened name

TRIAL_KEY = "trial"
"""The key of a trial in the facts of its candidate."""

SQLITE_PREFIX, SQLITE_MAGIC = "sqlite:///", b"SQLite format 3\0"


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
            if not isinstance(key, str) or not key or key != key.strip() or not {",", "="}.isdisjoint(key):
                name = json.dumps(key, default=str)
                raise ConfigError(f"the name {name} must be a string without '=', ',' or outer spaces.")
            if key.startswith(".") and (key == "." or "." in key[1:]):
                raise ConfigError(f"'{key}': a leading dot is only for top-level keys. Write '{key.strip('.')}'.")
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
        """The values as one text, such as `lr=0.01,model.dropout=0.5`."""
        return ",".join(f"{key}={_to_text(value)}" for key, value in self.values.items())

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


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _is_valid_name(text: str) -> bool:
    return text.isprintable() and set(text).isdisjoint(FORBIDDEN_CHARACTERS)


@dataclass(frozen=True)
class CandidateSpec:
    """A candidate as it is typed: the `path` of a config, with the values of a `point` if it is a template; or the
    `command` of a program without a config, for which `path` is empty."""

    path: Path
    point: Point = field(default_factory=Point)
    explicit_name: Optional[str] = None
    command: str = ""

    @property
    def name(self) -> str:
        """The given name, or the values, or the config's file name without its extension."""
        return (self.point.name or self.path.stem) if self.explicit_name is None else self.explicit_name

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
    is the only one without a name, or the only command. `points` is a JSONL file, a list of points, or None or `none`
    for none."""
    template = None if points in (None, "none") else _find_template(texts)
    specs: List[CandidateSpec] = []
    for text in texts:
        name, source = _split_candidate(text)
        if text == template:
            specs += [_spec_at(text, point) for point in read_points(points)]
        elif is_command(text) and name is None:
            raise ConfigError(f"the command '{text}' needs a name without spaces in front, as in 'NAME=COMMAND'.")
        else:
            path, command = (Path(), source) if is_command(source) else (Path(source), "")
            specs.append(CandidateSpec(path, explicit_name=name, command=command))
    return specs


def _split_candidate(text: str) -> Tuple[Optional[str], str]:
    """Split `NAME=SOURCE`. In a command, what comes before an equals sign is a name only if it is one word."""
    name, source = split_name(text)
    return (None, text) if name is not None and is_command(text) and len(name.split()) != 1 else (name, source)


def _find_template(texts: Sequence[str]) -> str:
    if len(texts) == 1 and is_command(texts[0]):
        return texts[0]
    unnamed = list(dict.fromkeys(text for text in texts if _split_candidate(text)[0] is None))
    if len(unnamed) != 1:
        raise ConfigError(
            "--points and --study need exactly one candidate without a name, the template, but got "
            f"{join_some(unnamed) or 'none'}. To include another one unchanged, name it: NAME=CONFIG.jsonnet."
        )
    return unnamed[0]


def _spec_at(template: str, point: Point) -> CandidateSpec:
    """Return the candidate that a template is at a point. A command uses every value as a placeholder."""
    if not is_command(template):
        return CandidateSpec(Path(template), point)
    _, command = _split_candidate(template)
    texts = {key: shlex.quote(_to_text(value)) for key, value in point.values.items()}
    for key in sorted(texts.keys() - {match[2] for match in PLACEHOLDER_PATTERN.finditer(command)}):
        raise ConfigError(f"the command '{command}' does not use {{{key}}}. Add it, or remove '{key}'.")
    command = PLACEHOLDER_PATTERN.sub(lambda match: texts.get(match[2], match[0]), command)
    return CandidateSpec(Path(), point, command=command)


@dataclass(frozen=True)
class Trial:
    """A completed trial: its number, the `values` of its parameters, its `score`, and whether the study minimizes it.

    The trial was chosen by its score, so the score is shown and never counts."""

    number: int
    values: Mapping[str, Any]
    score: float
    minimise: bool

    @property
    def name(self) -> str:
        return f"trial-{self.number}"


def trials_of(candidates: Mapping[str, Candidate]) -> Dict[str, Trial]:
    """Return the trials that candidates come from, by the names of the candidates."""
    return {name: Trial(**c.facts[TRIAL_KEY]) for name, c in candidates.items() if TRIAL_KEY in c.facts}


def read_trials(study: str, top: int) -> List[Trial]:
    """Return the `top` best completed trials of a study with different values, the best first.

    Args:
        study: Optuna's storage, which is an SQLite file, a journal file or a URL; with `#NAME` behind if it has several
            studies.

    Raises:
        ConfigError: if Optuna is not installed, the study cannot be read, has several objectives, or too few trials.
    """
    try:
        import optuna
    except ImportError as error:
        raise ConfigError("--study requires Optuna. Install it: pip install 'fiesta-allennlp[optuna]'") from error
    opened = _open_study(optuna, study)
    if len(opened.directions) > 1:
        raise ConfigError(f"--study {study} has {len(opened.directions)} objectives. Pass a study with a single one.")
    minimise = opened.direction == optuna.study.StudyDirection.MINIMIZE
    trials: List[Any] = opened.get_trials(deepcopy=False)
    completed = [trial for trial in trials if trial.state == optuna.trial.TrialState.COMPLETE]
    best_by_values: Dict[str, Trial] = {}
    for trial in sorted(completed, key=lambda trial: (trial.value if minimise else -trial.value, trial.number)):
        values = json.dumps(trial.params, sort_keys=True, default=repr)
        best_by_values.setdefault(values, Trial(trial.number, trial.params, trial.value, minimise))
    if len(best_by_values) < top:
        raise ConfigError(
            f"--study {study}: {len(completed)} of its {len(trials)} trials are complete, {len(best_by_values)} of "
            f"them with different values, but --top is {top}. Use a smaller --top, or complete more trials."
        )
    return list(best_by_values.values())[:top]


def _open_study(optuna: ModuleType, study: str) -> Any:
    location, name = (study, "") if os.path.isfile(study) or "#" not in study else study.rsplit("#", 1)
    try:
        storage = _open_storage(optuna, location)
        names = optuna.get_all_study_names(storage)
        if name in names or (not name and len(names) == 1):
            return optuna.load_study(study_name=name or names[0], storage=storage)
    except Exception as error:  # whatever Optuna, its databases and their drivers raise
        reason = f"{error.strerror}." if isinstance(error, OSError) else describe_as_sentence(error)
        raise ConfigError(f"--study {study} cannot be read as an Optuna study: {reason}") from error
    raise ConfigError(
        f"--study {study}: name one of its studies, {location}#NAME. Studies: {join_some(names) or 'none'}."
    )


def _open_storage(optuna: ModuleType, location: str) -> Any:
    """Open a storage for reading. Raise an `OSError` for a file that does not exist, which Optuna would create."""
    path = location.removeprefix(SQLITE_PREFIX)
    if "://" not in path:
        with open(path, "rb") as file:
            if file.read(len(SQLITE_MAGIC)) != SQLITE_MAGIC:
                return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(path))
        path = f"{SQLITE_PREFIX}{path}"
    return optuna.storages.RDBStorage(path, skip_table_creation=True)
