"""The request to a system: a template filled with the fields of a document."""

import json
import re
from typing import Any, Mapping

from fiesta_allennlp.errors import DataError, did_you_mean

PLACE = re.compile(r"\$\{(\w+)\}")


def render(body: Any, fields: Mapping[str, Any]) -> Any:
    """Replace every `${name}` in the body by the field's value. Without a body, return all fields.

    Raises:
        DataError: if a field is missing. The message gives its name and the near ones.
    """
    if body is None:
        return dict(fields)
    if isinstance(body, dict):
        return {key: render(value, fields) if value is not None else None for key, value in body.items()}
    if isinstance(body, list):
        return [render(value, fields) if value is not None else None for value in body]
    if not isinstance(body, str):
        return body
    whole = PLACE.fullmatch(body)
    if whole:
        return _field(whole[1], fields)
    return PLACE.sub(lambda place: _as_text(_field(place[1], fields)), body)


def _field(name: str, fields: Mapping[str, Any]) -> Any:
    if name not in fields:
        hint = did_you_mean(name, fields)
        raise DataError(f"there is no field '{name}' for 'body'; the fields are {', '.join(fields)}.{hint}")
    return fields[name]


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
