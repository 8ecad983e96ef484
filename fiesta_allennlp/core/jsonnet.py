"""Jsonnet as plain data, with overrides and variables as AllenNLP has them."""

import copy
import json
import os
import re
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Tuple, Union

from fiesta_allennlp.core.errors import ConfigError, did_you_mean

SURROGATE_PATTERN = re.compile("[\ud800-\udfff]")
"""Halves of surrogate pairs, which Jsonnet cannot read."""

VARIABLE_DEFAULTS = {
    "FIESTA_DATA": "data/semeval14",
    "FIESTA_TAGGING": "data/conll2003/eng.train,data/conll2003/eng.testa,data/conll2003/eng.testb",
    "FIESTA_VECTORS": "data/vectors/glove.6B.%dd.txt",
}
"""The places where shipped configs look for data and word vectors, relative to the current directory, unless the
environment says otherwise. In `FIESTA_TAGGING`, commas separate training, validation and test set; `%d` is the number
of dimensions."""


def set_default_variables() -> None:
    """Set each default whose variable is not in the environment, for AllenNLP's own commands."""
    for name, value in VARIABLE_DEFAULTS.items():
        os.environ.setdefault(name, value)


def read_jsonnet(
    source: Union[Path, str], *, overrides: str = "", variables: Optional[Mapping[str, str]] = None, label: str
) -> Any:
    """Return the content of a Jsonnet file or text as plain data. `overrides` is Jsonnet for `apply_overrides`;
    `variables` are texts for `std.extVar`, which win over the environment. Raise a `ConfigError` that calls the file
    `label`."""
    try:
        content = json.loads(_evaluate(source, variables or {}))
        changes = json.loads(_evaluate(overrides, variables or {})) if overrides else {}
        if isinstance(changes, dict) and "+" in overrides:
            values = {path: _value_at(content, path) for path in changes}
            containers = {path: value for path, value in values.items() if isinstance(value, (dict, list))}
            changes = json.loads(_evaluate(f"{json.dumps(containers)} + ({overrides})", variables or {}))  # for `+:`
    except (RuntimeError, ValueError) as error:
        reason, *trace = str(error).strip().splitlines()
        place = f" ({trace[0].split()[0]})" if trace else ""
        raise ConfigError(f"{label} is not valid Jsonnet: {reason}{place}") from error
    if not isinstance(changes, dict):
        raise ConfigError(f'{label}: overrides must be an object such as {{"trainer.num_epochs": 5}}.')
    try:
        return apply_overrides(content, changes)
    except ConfigError as error:
        raise ConfigError(f"{label}: {error}") from error


def _evaluate(source: Union[Path, str], variables: Mapping[str, str]) -> str:
    from _jsonnet import evaluate_file, evaluate_snippet

    readable = {name: value for name, value in os.environ.items() if not SURROGATE_PATTERN.search(name + value)}
    ext_vars = {**VARIABLE_DEFAULTS, **readable, **variables}
    is_text = isinstance(source, str)
    return evaluate_snippet("", source, ext_vars=ext_vars) if is_text else evaluate_file(str(source), ext_vars=ext_vars)


def apply_overrides(content: Any, overrides: Mapping[str, Any]) -> Any:
    """Return a copy of a config with other values. A key with dots is a path into it, with positions for lists. Only
    the last step of a path may be a new key; raise a `ConfigError` if an earlier one does not exist."""
    result = copy.deepcopy(content)
    for path, value in overrides.items():
        container, rest = _follow(result, path)
        keys, key = _keys_by_text(container), rest.partition(".")[0]
        if rest in keys or (isinstance(container, dict) and rest == key):
            container[keys.get(rest, rest)] = copy.deepcopy(value)
        elif isinstance(container, (dict, list)):
            raise ConfigError(f"cannot apply the override '{path}': no key '{key}'.{did_you_mean(key, keys)}")
        else:
            reason = f"'{path[: -len(rest) - 1]}' is {json.dumps(container)}, not an object. Override it as a whole"
            raise ConfigError(f"cannot apply the override '{path}': {reason}.")
    return result


def _value_at(content: Any, path: str) -> Any:
    """Return the value at a path; None if it does not exist."""
    container, rest = _follow(content, path)
    keys = _keys_by_text(container)
    return container[keys[rest]] if rest in keys else None


def _follow(container: Any, path: str) -> Tuple[Any, str]:
    """Follow a path up to its last step that exists. Return what contains that step, and the rest of the path."""
    keys = _keys_by_text(container)
    prefix = None if path in keys else next((name for name in keys if path.startswith(f"{name}.")), None)
    return (container, path) if prefix is None else _follow(container[keys[prefix]], path[len(prefix) + 1 :])


def _keys_by_text(container: Any) -> Dict[str, Any]:
    """Return the keys of an object, or the positions of a list, by their text; empty for anything else."""
    if isinstance(container, (dict, list)):
        return {str(key): key for key in (container if isinstance(container, dict) else range(len(container)))}
    return {}
