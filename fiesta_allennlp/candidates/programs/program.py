"""The config of a candidate that is a program: its keys, what can be wrong with them, and its placeholders."""

import json
import os
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, FrozenSet, Iterator, List, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.candidates.candidate import AnyCandidate
from fiesta_allennlp.candidates.config import absolute_paths
from fiesta_allennlp.candidates.programs.program_data import FORMATS, ProgramData
from fiesta_allennlp.candidates.programs.program_run import PLACEHOLDER_PATTERN, STDOUT, ProgramRun
from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.candidates.splits import SET_NAMES, Division, Preparation, first_group_key
from fiesta_allennlp.core.errors import ConfigError, check_known_keys, did_you_mean
from fiesta_allennlp.core.files import shown_value
from fiesta_allennlp.running.machine import PYTHON
from fiesta_allennlp.selecting.objections import UNSEEDED

PROGRAM_TYPE = "program"
PROGRAM_KEYS = ("type", "command", "data", "metrics", "environment")
DATA_KEYS = (*SET_NAMES, "format", "group_by")

PLACEHOLDER_NAMES = (*SET_NAMES, "seed", "split_seed", "directory", "python")
SCRIPT_SUFFIXES = (".py", ".sh", ".R", ".pl", ".jl", ".rb", ".js", ".lua")
RESERVED_PREFIX = "FIESTA_"  # begins the variables by which the selection finds the processes of a run


def config_of_command(command: str, data: Optional[Mapping[str, str]]) -> Dict[str, Any]:
    """Return the config of a program from its command alone, split into words as by a shell."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"cannot split the command '{command}' into words: {error}.") from error
    return {"type": PROGRAM_TYPE, "command": words, **({} if data is None else {"data": dict(data)})}


def _check_type(key: str, value: Any, is_valid: bool, expected: str, hint: str = "") -> None:
    if not is_valid:
        raise ConfigError(f"'{key}' must be {expected} but is {shown_value(value)}.{hint}")


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and "\0" not in item for item in value)


# Placeholders.


def _placeholder_texts(config: Mapping[str, Any]) -> Iterator[Tuple[str, str]]:
    """Yield the texts of a config that may have placeholders, by key."""
    yield from ((f"command.{number}", word) for number, word in enumerate(config["command"]))
    yield from ((f"environment.{name}", text) for name, text in config.get("environment", {}).items())
    yield "metrics", config.get("metrics", "")


def _placeholders_in(text: str) -> FrozenSet[str]:
    return frozenset(name for _, name in PLACEHOLDER_PATTERN.findall(text) if name)


def placeholders_of(config: Mapping[str, Any]) -> FrozenSet[str]:
    """Return the placeholders that the command and the variables of a program use."""
    names = (_placeholders_in(text) for key, text in _placeholder_texts(config) if key != "metrics")
    return frozenset().union(*names)


def check_no_lone_placeholder(words: Sequence[str]) -> None:
    """Refuse a word of the command line that is a placeholder alone: the shell has cut its command into words."""
    for word in words:
        match = PLACEHOLDER_PATTERN.fullmatch(word)
        if match is not None and match[2] in PLACEHOLDER_NAMES:
            raise ConfigError(
                f"the placeholder {word} stands alone. Put every command into quotes: 'NAME=python train.py {word}'."
            )


def _check_sets(placeholders: FrozenSet[str], division: Division) -> None:
    for name in SET_NAMES:
        if (name in placeholders) != (name in division.set_names):
            problem = "does not use" if name in division.set_names else "uses"
            raise ConfigError(
                f"'command' {problem} {{{name}}}, but the sets of this selection are {', '.join(division.set_names)}. "
                "Change the command, or the sets: by the files of 'data', --split-ratios or --score."
            )


def _check_own_splits(placeholders: FrozenSet[str], settings: Settings) -> None:
    for set_name in SET_NAMES:
        if set_name in placeholders:
            raise ConfigError(
                f"'command' uses {{{set_name}}}, but 'data' is missing. Pass --data train.jsonl --data test.jsonl; or "
                'in a config, "data": {"train": "train.jsonl", "test": "test.jsonl", "format": "jsonl"}.'
            )
    if settings.on_official_splits and "split_seed" in placeholders:
        raise ConfigError("'command' uses {split_seed}, which --splits official does not vary. Remove one of them.")
    if not settings.on_official_splits and "split_seed" not in placeholders:
        raise ConfigError(
            "without data files and {split_seed}, all runs would use the same sets. Pass --data FILE (in a config, "
            "'data'), {split_seed} to a program that splits its data itself, or --splits official."
        )


def _check_command_exists(command: Sequence[str]) -> None:
    program, *arguments = command
    if PLACEHOLDER_PATTERN.search(program) is None and program != PYTHON and shutil.which(program) is None:
        raise ConfigError(
            f"'command' begins with '{program}', which is neither on the PATH nor executable. No shell reads the "
            "command: for cd, ~ or LR=1, begin with sh -c."
        )
    script = next((word for word in arguments if not word.startswith("-")), "")
    if script.endswith(SCRIPT_SUFFIXES) and not PLACEHOLDER_PATTERN.search(script) and not os.path.isfile(script):
        raise ConfigError(f"'command' runs '{script}', which does not exist in the current directory {Path.cwd()}.")


@AnyCandidate.register(PROGRAM_TYPE)
class ProgramCandidate(AnyCandidate):
    """A command in any language, which gets its sets as files and reports its metrics."""

    run_class = ProgramRun

    def _check_keys(self) -> None:
        """Refuse unknown keys and values of the wrong type."""
        check_known_keys(self.config, "a program", PROGRAM_KEYS)
        command, data = self.config.get("command"), self.config.get("data")
        metrics, environment = self.config.get("metrics", ""), self.config.get("environment", {})
        is_command = bool(command) and _is_list_of_texts(command)
        _check_type("command", command, is_command, 'a list of strings such as ["python", "train.py"]')
        are_texts = isinstance(environment, dict) and _is_list_of_texts(list(environment.values()))
        _check_type("environment", environment, are_texts, "an object of strings")
        for name in environment:
            if not name or "=" in name or name.startswith(RESERVED_PREFIX):
                raise ConfigError(f"'environment.{name}' is not an allowed variable. Use a different name.")
        _check_type("metrics", metrics, isinstance(metrics, str), 'the path to a JSON file, or "stdout",')
        if data is None:
            return
        example = '{"train": "train.jsonl", "format": "jsonl"}'
        _check_type("data", data, isinstance(data, dict), f"an object such as {example}")
        check_known_keys(data, "'data' of a program", DATA_KEYS)
        if data.get("train") is None:
            raise ConfigError("'data.train' is missing.")
        for set_name in SET_NAMES:
            path = data.get(set_name)
            is_file = path is None or (isinstance(path, str) and os.path.isfile(path))
            _check_type(f"data.{set_name}", path, is_file, "the path to a single file that exists")
        data_format = data.get("format")
        hint = did_you_mean(str(data_format), FORMATS)
        _check_type("data.format", data_format, data_format in FORMATS, f"one of {', '.join(FORMATS)}", hint)

    def check(self, settings: Settings) -> None:
        """Refuse a program that cannot run, or whose scores would not be comparable."""
        self._check_keys()
        config, division = self.config, self.own_division(settings.division)
        if self.data_paths:
            self.check_sets(division)
            own_key = None if division.is_official else config["data"].get("group_by")
            if own_key is not None and (not isinstance(own_key, str) or own_key == "none"):
                advice = "For no groups: --group-by none."
                raise ConfigError(f"'data.group_by' must be a key but is {json.dumps(own_key)}. {advice}")
            if own_key is not None and settings.group_by not in (None, own_key):
                problem = f"'data.group_by' is '{own_key}' but --group-by is '{settings.group_by}'"
                raise ConfigError(f"{problem}. Remove one.")
        for key, text in _placeholder_texts(config):
            for name in _placeholders_in(text) - set(PLACEHOLDER_NAMES):
                raise ConfigError(
                    f"'{key}' contains the unknown placeholder {{{name}}}.{did_you_mean(name, PLACEHOLDER_NAMES)} "
                    f"Valid placeholders: {', '.join(PLACEHOLDER_NAMES)}. Write {{{{{name}}}}} for literal braces."
                )
        metrics, placeholders = config.get("metrics", STDOUT), placeholders_of(config)
        if metrics != STDOUT and "directory" not in _placeholders_in(metrics):
            raise ConfigError(
                f"'metrics' is {json.dumps(metrics)}, which parallel runs would overwrite. Use "
                '"{directory}/metrics.json", or "stdout" for the last line of the output.'
            )
        if config.get("data") is not None:
            _check_sets(placeholders, division)
        else:
            _check_own_splits(placeholders, settings)
            super().check(settings)
        _check_command_exists(config["command"])
        if placeholders.isdisjoint(("seed", "split_seed")):
            reason = "'command' does not use {seed}, so its runs may all be the same. Pass {seed} to the program"
            UNSEEDED.check([reason], settings.allow)

    @property
    def data_paths(self) -> Dict[str, Any]:
        return absolute_paths(self.config.get("data") or {})

    @property
    def code(self) -> List[str]:
        """Return the files that a command names, such as its script, as they are typed."""
        return [word for word in self.config["command"] if os.path.isfile(word)]

    def own_division(self, division: Division) -> Division:
        """Return the division for a program: one that names neither {validation} nor a file of it has no validation
        set, unless ratios give it one."""
        data = self.config.get("data")
        if data is None or data.get("validation") is not None or division.scored != "test" or division.ratios:
            return division
        uses_validation = "validation" in placeholders_of(self.config)
        return replace(division, has_validation=uses_validation and division.has_validation)

    def prepare(self, *, group_by: Optional[str], division: Division, vectors: Path) -> Preparation:
        if not self.data_paths:
            return super().prepare(group_by=group_by, division=division, vectors=vectors)
        own_key = self.config["data"].get("group_by")
        key = None if division.is_official else first_group_key([group_by, own_key])
        return Preparation(ProgramData.read(self.config["data"], division, key).pool(division))
