"""Options as fields of a settings record: one declaration gives the check, the parser, the help and the command line.

@dataclass(frozen=True)
class MySettings:
    workers: int = option(1, "how many at once", group="how to work", least=1)
"""

import argparse
import inspect
import json
import re
import typing
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from functools import partial
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union

from fiesta_allennlp.core.errors import ConfigError, did_you_mean
from fiesta_allennlp.core.registry import convert_value

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Option:
    """The declaration of a setting: its help, its option and its check.

    Attributes:
        group: the heading in `--help`; empty for what is not typed as an option.
        metavar: the placeholder of its value in `--help`, by default its choices; several if it takes several values.
        short: its one-letter flag.
        choices: the values allowed; empty for all.
        least, above: the smallest number allowed, or the number that it must exceed.
        parse: makes the value from what is typed, if the field's type does not say how.
        can_be_undone: whether a switch has a `--no-` form.
        is_repeated: it is typed once for each of several values.
        is_added: its values are added to those of the layer below, instead of replacing them.
        is_fixed: it decides which scores are made, so a resumed selection keeps it.
        decides: it is an argument of the strategies for a target `confidence`, of those for a `budget`, or of `both`.
        is_rare: only `--help-all` lists it.
        sought_as: flags of other commands under which people look for it, each with what to write here instead.
    """

    help: str
    group: str = ""
    metavar: "str | Tuple[str, ...] | None" = None
    short: str = ""
    choices: Tuple[str, ...] = ()
    least: Optional[int] = None
    above: Optional[float] = None
    parse: Optional[Callable[[str], Any]] = None
    can_be_undone: bool = True
    is_repeated: bool = False
    is_added: bool = False
    is_fixed: bool = False
    decides: str = ""
    is_rare: bool = False
    sought_as: Mapping[str, str] = field(default_factory=dict)


def option(default: Any, help: str, *, factory: Optional[Callable[[], Any]] = None, **option_fields: Any) -> Any:
    """Declare a field of a settings record. Its help mentions the default, unless the text does so itself. `factory`
    makes a default that is not plain; `option_fields` are fields of `Option`."""
    metadata = {"option": Option(mention_default(help, default), **option_fields)}
    return field(default_factory=factory, metadata=metadata) if factory else field(default=default, metadata=metadata)


def restated_option(settings: type, name: str, **changes: Any) -> Any:
    """Declare an option of another record again, with these changes: `default`, or fields of `Option`."""
    declared = settings.__dataclass_fields__[name]  # type: ignore[attr-defined]
    default = changes.pop("default", declared.default)
    return field(default=default, metadata={"option": replace(declared.metadata["option"], **changes)})


SELECTION_GROUP = "Selection"
RESOURCES_GROUP = "Resources"
"""Headings of options that several commands have."""

selection_option, resource_option = partial(option, group=SELECTION_GROUP), partial(option, group=RESOURCES_GROUP)
rule_option = partial(selection_option, None, decides="confidence", is_rare=True)  # of the strategies


def mention_default(help: str, default: Any) -> str:
    """Mark a default where the help names it, or add it to the first part of the help. Only a text or a
    number other than 0 is one."""
    if not default or "(default" in help or not isinstance(default, (str, int, float)):
        return help
    if isinstance(default, str):
        return re.sub(rf"\b{default}\b", rf"{default} (default)", help, count=1)
    first_part, *further_parts = help.split(";", maxsplit=1)
    return ";".join([f"{first_part} (default {default:g})", *further_parts])


def declared_options(settings: Any) -> "Iterator[Tuple[str, Option]]":
    """Return the names and declarations of the fields of a record or its class, in order."""
    return ((f.name, f.metadata["option"]) for f in fields(settings))


def deciding_options(settings: Any, *kinds: str) -> List[str]:
    """Return the options that are arguments of strategies of these kinds, `confidence`, `budget` or `both`."""
    return [name for name, declaration in declared_options(settings) if declaration.decides in kinds]


def base_type(annotation: Any) -> Any:
    """Return a type without its arguments: `int` for `Optional[int]`, and `tuple` for `Tuple[str, ...]`."""
    choices = typing.get_args(annotation) if typing.get_origin(annotation) is Union else (annotation,)
    first_type = next(choice for choice in choices if choice is not type(None))
    return typing.get_origin(first_type) or first_type


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


# The check.


@dataclass(frozen=True)
class SettingsRecord:
    """A record of settings whose options are checked when it is made."""

    def __post_init__(self) -> None:
        check_values(vars(self), type(self))


def check_values(values: Mapping[str, Any], settings: type) -> None:
    """Refuse a value that the option of this settings class does not allow: of another kind, not a choice, or out of
    range. Each is checked alone, and defaults need no check."""
    annotations, defaults = typing.get_type_hints(settings), {f.name: f.default for f in fields(settings)}
    for name, declaration in declared_options(settings):
        if values.get(name, defaults[name]) is not defaults[name]:
            _check_value(flag(name), values[name], declaration, annotations[name])


def _check_value(name: str, value: Any, declaration: Option, annotation: Any) -> None:
    if not declaration.choices or value is None:
        convert_value(value, annotation, name)
    else:
        unknown = [item for item in (value if declaration.is_repeated else (value,)) if item not in declaration.choices]
        if unknown:
            raise ConfigError(f"{name} must be one of {', '.join(declaration.choices)} but got '{unknown[0]}'.")
    if value is None:
        return
    if declaration.least is not None and value < declaration.least:
        raise ConfigError(f"{name} must be at least {declaration.least} but got {value}.")
    if declaration.above is not None and not value > declaration.above:
        raise ConfigError(f"{name} must be above {declaration.above:g} but got {value:g}.")


def check_setting_names(names: Iterable[str], settings: Any) -> None:
    """Refuse a name that is not a field of the settings."""
    valid_names = [f.name for f in fields(settings)]
    for name in names:
        if name not in valid_names:
            hint = did_you_mean(name, valid_names) or f" Valid settings: {', '.join(valid_names)}."
            raise ConfigError(f"'{name}' is an unknown setting.{hint}")


# The signature of a call from Python.


def takes_options(settings: Any, headings: Sequence[str] = ()) -> Callable[[Function], Function]:
    """Return a decorator that shows the options of these settings, or only those below some headings, with their
    defaults in the signature of a call, instead of its last argument `**settings`."""

    def show_options(function: Function) -> Function:
        signature, annotations = inspect.signature(function), typing.get_type_hints(settings)
        shown = dict(list(signature.parameters.items())[:-1])
        for f in fields(settings):
            if not headings or f.metadata["option"].group in headings:
                default = f.default if f.default_factory is MISSING else f.default_factory()
                kind, annotation = inspect.Parameter.KEYWORD_ONLY, annotations[f.name]
                shown.setdefault(f.name, inspect.Parameter(f.name, kind, default=default, annotation=annotation))
        function.__signature__ = signature.replace(parameters=list(shown.values()))  # type: ignore[attr-defined]
        return function

    return show_options


# The parser.


def add_options(parser: argparse.ArgumentParser, settings: Any, headings: Sequence[str] = ()) -> Dict[str, Option]:
    """Add every option of a settings class below the headings of its `GROUPS`, or only those below these `headings`,
    and return their declarations. They have no defaults, so that the result has only what was typed."""
    groups = {title: parser.add_argument_group(title) for title in headings or settings.GROUPS}
    annotations = typing.get_type_hints(settings)
    declared = {name: declaration for name, declaration in declared_options(settings) if declaration.group in groups}
    for name, declaration in declared.items():
        arguments = _argparse_arguments(declaration, base_type(annotations[name]))
        flags = filter(None, (declaration.short, flag(name)))
        group = groups[declaration.group]
        group.add_argument(*flags, dest=name, default=argparse.SUPPRESS, help=declaration.help, **arguments)
    return declared


def _argparse_arguments(declaration: Option, value_type: Any) -> Dict[str, Any]:
    if value_type is bool:
        return {"action": argparse.BooleanOptionalAction if declaration.can_be_undone else "store_true"}
    if declaration.is_repeated:
        return {"action": "append", "metavar": declaration.metavar}
    metavar = declaration.metavar or "|".join(declaration.choices) or None
    parse = declaration.parse or (value_type if value_type in (float, int) else None)
    nargs = len(declaration.metavar) if isinstance(declaration.metavar, tuple) else None
    arguments = {"type": parse, "metavar": metavar, "nargs": nargs}
    return {key: value for key, value in arguments.items() if value is not None}


def typed_options(args: argparse.Namespace, settings: Any) -> Dict[str, Any]:
    """Return the settings that were typed, with tuples for argparse's lists."""
    values = {f.name: getattr(args, f.name) for f in fields(settings) if hasattr(args, f.name)}
    return {name: list_to_tuple(value) for name, value in values.items() if value != []}


def list_to_tuple(value: Any) -> Any:
    """Return a list of argparse or JSON as the tuple that a setting is, and anything else as it is."""
    return tuple(value) if isinstance(value, list) else value


# Back to what is typed, and to plain data.


def command_words(settings: Any, *, positional: str, **overriding: Any) -> List[str]:
    """Return a command line that gives these settings: `positional` first, then every option that is not its default.
    `overriding` replace the record's own values, and are always included."""
    words, defaults = list(getattr(settings, positional)), vars(type(settings)())
    for name, value in {**vars(settings), **overriding}.items():
        if name in overriding or (name != positional and value != defaults[name]):
            words += option_words(name, value)
    return words


def option_words(name: str, value: Any) -> List[str]:
    option = flag(name)
    if isinstance(value, bool):
        return [option if value else "--no-" + option[2:]]
    if isinstance(value, (list, tuple)) and all(isinstance(item, float) for item in value):
        return [option, ",".join(map(str, value))] if value else []
    if isinstance(value, (list, tuple)) and not any(isinstance(item, dict) for item in value):
        return [word for item in value for word in (option, str(item))]
    text = json.dumps(value) if isinstance(value, (dict, list, tuple)) else str(value)
    return [f"{option}={text}"] if text.startswith("-") else [option, text]  # else it would be taken for an option


def settings_to_json(settings: Any) -> Dict[str, Any]:
    """Return the settings as plain data, for a store."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(settings).items()}


def changed_options(old_settings: Mapping[str, Any], new_settings: Any) -> List[str]:
    """Describe the changes that a resumed selection makes but must not."""
    new_values = settings_to_json(new_settings)
    old_values = {**settings_to_json(type(new_settings)()), **old_settings}
    return [
        f"{flag(name)} was {json.dumps(old_values[name])} and is now {json.dumps(new_values[name])}"
        for name, declaration in declared_options(new_settings)
        if declaration.is_fixed and old_values[name] != new_values[name]
    ]
