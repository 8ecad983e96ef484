"""Jsonnet as plain data, with overrides and variables as AllenNLP has them."""

import copy
import itertools
import json
import os
import re
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Optional, Sequence, Tuple, Union

from fiesta_allennlp.core.errors import ConfigError, did_you_mean

SURROGATE = re.compile("[\ud800-\udfff]")

Source = Union[Path, str]
"""A Jsonnet file, or a Jsonnet text."""

Variables = Mapping[str, str]
"""Texts for `std.extVar`."""

_KNOWN: Dict[Tuple[Source, str], str] = {}
"""The results of sources at variables, inside of `evaluating_together`."""

AT_ONCE = 500
"""The points of one evaluation of `evaluating_together`."""

DEFAULTS = {
    "FIESTA_DATA": "data/semeval14",
    "FIESTA_TAGGING": "data/conll2003/eng.train,data/conll2003/eng.testa,data/conll2003/eng.testb",
    "FIESTA_VECTORS": "data/vectors/glove.6B.%dd.txt",
}
"""The places where shipped configs look for data and word vectors, relative to the current directory, unless the
environment says otherwise. In `FIESTA_TAGGING`, commas separate training, validation and test set; `%d` is the number
of dimensions."""


def set_defaults() -> None:
    """Set each default whose variable is not in the environment, for AllenNLP's own commands."""
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)


def read_jsonnet(source: Source, *, overrides: str = "", variables: Optional[Variables] = None, where: str) -> Any:
    """Return the content of a Jsonnet file or text as plain data. `overrides` is Jsonnet for `with_overrides`;
    `variables` win over those of the environment. Raise a `ConfigError` that calls the file `where`."""
    try:
        content = json.loads(_evaluated(source, variables or {}))
        given = json.loads(_evaluated(overrides, variables or {})) if overrides else {}
        if isinstance(given, dict) and "+" in overrides:
            given = json.loads(_evaluated(f"{_extended(content, given)} + ({overrides})", variables or {}))
    except (RuntimeError, ValueError) as error:
        raise ConfigError(f"{where} is not valid Jsonnet: {str(error).strip()}") from error
    if not isinstance(given, dict):
        raise ConfigError(f'{where}: overrides must be an object such as {{"trainer.num_epochs": 5}}.')
    try:
        return with_overrides(content, given)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error


def _evaluated(source: Source, variables: Variables) -> str:
    from _jsonnet import evaluate_file, evaluate_snippet

    key = source, _identity(variables)
    if key in _KNOWN:
        return _KNOWN[key]
    given = {**DEFAULTS, **_environment(), **variables}
    is_text = isinstance(source, str)
    return evaluate_snippet("", source, ext_vars=given) if is_text else evaluate_file(str(source), ext_vars=given)


@contextmanager
def evaluating_together(sources: Sequence[Source], points: Sequence[Variables]) -> Iterator[None]:
    """Let `read_jsonnet` know these sources at these points beforehand. No file may change meanwhile.

    One evaluation of Jsonnet takes 25 ms, nearly all of it for Jsonnet's own library, so hundreds of points share one.
    If that fails, as for a wrong point, or an imported file that reads a variable, each is evaluated alone.
    """
    distinct = list({_identity(point): point for point in points}.values())
    try:
        for source, start in itertools.product([each for each in sources if each], range(0, len(distinct), AT_ONCE)):
            some = distinct[start : start + AT_ONCE]
            with suppress(RuntimeError, OSError, UnicodeDecodeError):
                _KNOWN.update({(source, _identity(point)): text for point, text in _at_all(source, some)})
        yield
    finally:
        _KNOWN.clear()


def _identity(variables: Variables) -> str:
    return json.dumps(variables, sort_keys=True)


def _at_all(source: Source, points: Sequence[Variables]) -> Iterator[Tuple[Variables, str]]:
    """Evaluate a source at several points, with a `std.extVar` that looks into the point first. Raise a `RuntimeError`
    if one of them fails."""
    from _jsonnet import evaluate_snippet

    text, name = (source, "") if isinstance(source, str) else (source.read_text(encoding="utf-8"), str(source))
    together = f"""local _outer = std; [
        local std = _outer {{
            extVar(name):: if _outer.objectHas(_point, name) then _point[name] else _outer.extVar(name)
        }};
        {text}
        for _point in {json.dumps(points, ensure_ascii=False)}
    ]"""
    of_points = {key for point in points for key in point}
    known = {key: value for key, value in {**DEFAULTS, **_environment()}.items() if key not in of_points}
    contents = json.loads(evaluate_snippet(name, together, ext_vars=known))
    return zip(points, map(json.dumps, contents), strict=True)


def with_overrides(content: Any, overrides: Mapping[str, Any]) -> Any:
    """Return a copy of a config with other values. A key with dots is a path into it, with positions for lists. Only
    the last step of a path may be a new key; raise a `ValueError` if an earlier one does not exist."""
    result = copy.deepcopy(content)
    for path, value in overrides.items():
        _put(result, path, copy.deepcopy(value), path)
    return result


def _extended(content: Any, overrides: Mapping[str, Any]) -> str:
    """Return the objects and lists of a config that overrides name, by their paths, so that `+:` adds to them."""
    found = {path: _at(content, path) for path in overrides}
    return json.dumps({path: value for path, value in found.items() if isinstance(value, (dict, list))})


def _at(holder: Any, path: str) -> Any:
    """Return the value at a path; None if it does not exist."""
    places = _places(holder)
    if path in places:
        return holder[places[path]]
    step = next((name for name in places if path.startswith(f"{name}.")), None)
    return None if step is None else _at(holder[places[step]], path[len(step) + 1 :])


def _put(holder: Any, path: str, value: Any, whole: str) -> None:
    places = _places(holder)
    if path in places or (isinstance(holder, dict) and "." not in path):
        holder[places.get(path, path)] = value
        return
    step = next((name for name in places if path.startswith(f"{name}.")), None)
    if not isinstance(holder, (dict, list)):
        above = whole[: -len(path) - 1]
        kept = {"type": holder} if isinstance(holder, str) else {}
        raise ValueError(
            f"cannot apply the override '{whole}', because '{above}' is {json.dumps(holder)}, not an object. Override "
            f"'{above}' as a whole, with {json.dumps({**kept, path: value})}."
        )
    if step is None:
        missing = path.partition(".")[0]
        hint = did_you_mean(missing, places)
        raise ValueError(f"cannot apply the override '{whole}', because the config has no key '{missing}'.{hint}")
    _put(holder[places[step]], path[len(step) + 1 :], value, whole)


def _places(holder: Any) -> Dict[str, Any]:
    """Return the keys of an object, or the positions of a list, by their text; empty for anything else."""
    if isinstance(holder, (dict, list)):
        return {str(key): key for key in (holder if isinstance(holder, dict) else range(len(holder)))}
    return {}


def _environment() -> Dict[str, str]:
    """Return the variables without halves of surrogate pairs, which Jsonnet cannot read."""
    return {name: value for name, value in os.environ.items() if not SURROGATE.search(name + value)}
