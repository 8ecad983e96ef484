"""Jsonnet files as plain data, with overrides and variables as AllenNLP has them."""

import copy
import json
import os
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Union

from fiesta_allennlp.errors import ConfigError

DEFAULTS = {
    "FIESTA_DATA": "data/semeval14",
    "FIESTA_TAGGING": "data/conll2003/eng.train,data/conll2003/eng.testa,data/conll2003/eng.testb",
    "FIESTA_VECTORS": "data/vectors/glove.6B.%dd.txt",
}
"""The places where shipped configs look for data and word vectors, relative to the current directory, unless the
environment says otherwise. In `FIESTA_TAGGING`, commas separate training, validation and test set; `%d` is the number
of dimensions."""


def set_defaults() -> None:
    """Put each default into the environment where its variable is not set, for AllenNLP's own commands."""
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)


def read_jsonnet(
    source: Union[Path, str], *, overrides: str = "", variables: Optional[Mapping[str, str]] = None, where: str
) -> Any:
    """Return the content of a Jsonnet file, or of a Jsonnet text, as plain data.

    Args:
        overrides: Jsonnet of an object that is laid over the content; see `with_overrides`.
        variables: texts for `std.extVar`, above those of the environment.
        where: what a message calls the file.

    Raises:
        ConfigError: if the file is not valid Jsonnet, or an override has no place in it.
    """
    from _jsonnet import evaluate_file, evaluate_snippet

    known = {**DEFAULTS, **_environment(), **(variables or {})}
    try:
        is_text = isinstance(source, str)
        evaluated = (
            evaluate_snippet("", source, ext_vars=known) if is_text else evaluate_file(str(source), ext_vars=known)
        )
        content = json.loads(evaluated)
        if not overrides:
            return content
        return with_overrides(content, json.loads(evaluate_snippet("", overrides, ext_vars=known)))
    except (RuntimeError, ValueError) as error:
        raise ConfigError(f"{where}: cannot be read as Jsonnet: {str(error).strip()}") from error


def with_overrides(content: Any, overrides: Mapping[str, Any]) -> Any:
    """Return a copy of a config with other values. A key with dots is a path into it, with positions for lists.

    The last step of a path may be a new key of an object. All earlier ones must exist.

    Raises:
        ValueError: if a path leads nowhere.
    """
    result = copy.deepcopy(content)
    for path, value in overrides.items():
        _put(result, path, copy.deepcopy(value), path)
    return result


def _put(holder: Any, path: str, value: Any, whole: str) -> None:
    places = _places(holder)
    if path in places or (isinstance(holder, dict) and "." not in path):
        holder[places.get(path, path)] = value
        return
    step = next((name for name in places if path.startswith(f"{name}.")), None)
    if step is None:
        raise ValueError(f"the override '{whole}' has no place: there is no '{path.partition('.')[0]}' to go into")
    _put(holder[places[step]], path[len(step) + 1 :], value, whole)


def _places(holder: Any) -> Dict[str, Any]:
    """The keys of an object, or the positions of a list, by their text; none of anything else."""
    if isinstance(holder, (dict, list)):
        return {str(key): key for key in (holder if isinstance(holder, dict) else range(len(holder)))}
    return {}


def _environment() -> Dict[str, str]:
    """The variables that are valid Unicode, as Jsonnet needs them."""
    return {name: value for name, value in os.environ.items() if _is_unicode(name + value)}


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
