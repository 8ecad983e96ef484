"""Classes that can be chosen by name, and objects built from plain data.

Only registered names can be built. A text from somebody else's file therefore cannot name other code to run.
"""

import dataclasses
import importlib
import importlib.metadata
import inspect
import os
import pkgutil
import sys
import types
import typing
from abc import ABC
from collections import abc, defaultdict
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Callable, ClassVar, Iterator, Mapping, Optional, Sequence, TypeVar, Union

from fiesta_allennlp.core import errors, files
from fiesta_allennlp.core.errors import ConfigError

Registered = TypeVar("Registered", bound="Registrable")
RegisteredClass = TypeVar("RegisteredClass", bound=type)
Record = TypeVar("Record")
Built = TypeVar("Built")
_cached_type_hints: Callable[[Any], dict[str, Any]] = cache(typing.get_type_hints)

SIMPLE_TYPE_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}
"""The words of a message for each simple type."""


PLUGIN_GROUP = "fiesta_allennlp.plugins"
"""The group of the entry points with which an installed package names its modules of registered classes."""


class Registrable(ABC):  # noqa: B024, each base names its own
    """Base class of everything that users choose by name, such as strategies.

    Register a class with its base: ``@Strategy.register("mine")``. Modules that installed packages name by an entry
    point of `PLUGIN_GROUP` are imported once a name is looked up that is not registered yet. `default` is the name that
    `build` takes if the mapping has no `type`.
    """

    default: ClassVar[Optional[str]] = None
    _registered: ClassVar[dict[type, dict[str, type]]] = defaultdict(dict)

    @classmethod
    def register(cls, name: str) -> Callable[[RegisteredClass], RegisteredClass]:
        """Return a decorator that registers a class as `name`. Refuse a name that another class has already; a cell of
        a notebook that runs again replaces its own class. Refuse a class without the base or its methods."""
        base = next(owner for owner in reversed(cls.__mro__) if issubclass(owner, Registrable) and owner != Registrable)

        def add(registered_class: RegisteredClass) -> RegisteredClass:
            earlier_class = Registrable._registered[base].get(name, registered_class)
            owner, own_path = (f"{c.__module__}.{c.__qualname__}" for c in (earlier_class, registered_class))
            if owner != own_path:
                raise ConfigError(f"'{name}' is already registered, by {owner}. Choose another name.")
            if not issubclass(registered_class, base):
                raise ConfigError(f"'{name}': {registered_class.__name__} must be a subclass of {base.__name__}.")
            if missing := ", ".join(sorted(getattr(registered_class, "__abstractmethods__", ()))):
                raise ConfigError(f"'{name}': {registered_class.__name__} must define {missing}.")
            Registrable._registered[base][name] = registered_class
            return registered_class

        return add

    @classmethod
    def by_name(cls: type[Registered], name: str) -> type[Registered]:
        """Return the class that is registered as `name`. Raise a `ConfigError` with the near names if there is none."""
        registered_class = cls.find(name)
        if registered_class is None:
            text, names = files.shorten(name), cls.available()
            choices = errors.join_some(names, limit=errors.MAX_CHOICES)
            hint = errors.did_you_mean(text, names) or f" Valid names: {choices}."
            reason = f"'type' is '{text}', not a registered name.{hint}"
            raise ConfigError(f"{reason} Classes of your own need --include-package.")
        return registered_class

    @classmethod
    def find(cls: type[Registered], name: Any) -> Optional[type[Registered]]:
        """Return the class that is registered as `name`, or None. Raise a `PackageError` if a plugin is broken."""
        if not isinstance(name, str):
            return None
        if name not in Registrable._registered[cls]:
            import_plugins()
        return Registrable._registered[cls].get(name)

    @classmethod
    def classes(cls: type[Registered]) -> dict[str, type[Registered]]:
        """Return all registered classes by name, in the order of their registration."""
        import_plugins()
        return dict(Registrable._registered[cls])

    @classmethod
    def available(cls) -> list[str]:
        return sorted(cls.classes())

    @classmethod
    def registered_name(cls) -> str:
        """Return the name of this class. Raise a `ConfigError` if it was never registered."""
        names = {member: name for members in Registrable._registered.values() for name, member in members.items()}
        if cls not in names:
            raise ConfigError(f"{cls.__name__} is not registered, so no other process can build it. Give it a name.")
        return names[cls]


def to_plain_data(value: Any) -> Any:
    """Return an object as data for JSON, a registered one with its `type`. `build` and `build_record` make it again.
    Raise a `ConfigError` if its class is not registered, or a `TypeError` if a registered class is not a dataclass."""
    if isinstance(value, Registrable) or dataclasses.is_dataclass(value):
        own_type = {"type": value.registered_name()} if isinstance(value, Registrable) else {}
        names = [field.name for field in dataclasses.fields(value)]  # type: ignore[arg-type]
        return {**own_type, **{name: to_plain_data(getattr(value, name)) for name in names}}
    if isinstance(value, Mapping):
        return {key: to_plain_data(item) for key, item in value.items()}
    return [to_plain_data(item) for item in value] if isinstance(value, (list, tuple)) else value


def build(base: type[Registered], mapping: Mapping[str, Any], **ready_arguments: Any) -> Registered:
    """Build the registered object that a mapping describes: its `type` and the arguments of its constructor.

    An argument whose annotation is a `Registrable` class is built from a mapping, or a name, as well. `ready_arguments`
    are finished arguments; those that the constructor does not take are left out. Raise a `ConfigError` if a name is
    not registered, a key is unknown or missing, or a value has the wrong type.
    """
    values = dict(mapping)
    built_class = base.by_name(values.pop("type", base.default))
    parameters, has_kwargs = constructor_parameters(built_class)
    if unknown := [] if has_kwargs else [key for key in values if key not in parameters]:
        valid_keys = [name for name in parameters if name not in ready_arguments]
        errors.check_known_keys(unknown, built_class.__name__, valid_keys)
    hints = {key: parameter.annotation for key, parameter in parameters.items()}
    arguments = {key: convert_value(value, hints.get(key, Any), key) for key, value in values.items()}
    arguments.update({key: value for key, value in ready_arguments.items() if has_kwargs or key in parameters})
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and name not in arguments:
            raise ConfigError(f"{built_class.__name__} requires '{name}'.")
    return built_class(**arguments)


def import_package(name: str) -> None:
    """Import a module, or a package with all its modules, so that it can register its classes. It may lie in the
    current directory. Raise a `PackageError` if it cannot be imported."""
    importlib.invalidate_caches()
    sys.path.append("")
    try:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(getattr(package, "__path__", []), f"{name}."):
            importlib.import_module(module.name)
    except Exception as error:  # of the package's own code
        reason = _import_failure_reason(name, error)
        raise errors.PackageError(f"--include-package {name} cannot be imported: {reason}") from error
    finally:
        sys.path.remove("")


@cache
def import_plugins() -> None:
    """Import the modules that installed packages name as plugins, but none of the current directory, which may be
    somebody else's. Raise a `PackageError` if one cannot be imported."""
    paths = [path for path in sys.path if path not in ("", os.getcwd())]
    for distribution in importlib.metadata.distributions(path=paths):
        for plugin in distribution.entry_points.select(group=PLUGIN_GROUP):
            try:
                plugin.load()
            except Exception as error:  # of the plugin's own code
                subject = f"the plugin {plugin.name} of the package {distribution.metadata['Name']}"
                reason = _import_failure_reason(plugin.value, error)
                raise errors.PackageError(f"{subject} fails: {reason}") from error


def _import_failure_reason(name: str, error: Exception) -> str:
    """Return the reason why a package cannot be imported, and the remedy."""
    missing_module = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    if missing_module and f"{name}.".startswith(f"{missing_module}."):
        return f"{error}. Run the command from the directory that contains it, or add that directory to PYTHONPATH."
    reason = f"{errors.describe(error).rstrip('.')}{errors.code_line_of(error)}."
    package = missing_module.partition(".")[0]
    is_dependency = package not in ("", name.partition(".")[0])
    return f"{reason} Install it, for example with `pip install {package}`." if is_dependency else reason


def constructor_parameters(built_class: type) -> tuple[dict[str, inspect.Parameter], bool]:
    """Return the parameters of a constructor, and of those above it that get its `**kwargs`; and whether the last one
    takes even more keys."""
    parameters: dict[str, inspect.Parameter] = {}
    has_kwargs = False
    for owner in built_class.__mro__:
        if "__init__" not in vars(owner) or owner is object:
            continue
        constructor = vars(owner)["__init__"]
        own_parameters, hints = inspect.signature(constructor).parameters, {}
        with suppress(NameError):  # of an annotation for a type checker alone: then the values are not checked
            hints = typing.get_type_hints(constructor)
        for name, parameter in list(own_parameters.items())[1:]:
            if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                parameters.setdefault(name, parameter.replace(annotation=hints.get(name, Any)))
        has_kwargs = any(parameter.kind is parameter.VAR_KEYWORD for parameter in own_parameters.values())
        if not has_kwargs:
            break
    return parameters, has_kwargs


def convert_value(value: Any, annotation: Any, key: str) -> Any:
    """Return a plain value as its annotation describes it, with registered parts built. Raise a `ConfigError` that
    begins with `key` if it has another type. A choice between several types is not checked."""
    if annotation in (str, int) and type(value) is annotation:  # most values of a large store
        return value
    origin, type_arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (Union, types.UnionType):
        accepted_types = [kind for kind in type_arguments if kind is not type(None)]
        is_unchecked = len(accepted_types) > 1 or (value is None and len(accepted_types) < len(type_arguments))
        return value if is_unchecked else convert_value(value, accepted_types[0], key)
    if inspect.isclass(annotation) and issubclass(annotation, Registrable):
        if isinstance(value, annotation):
            return value
        return build(annotation, value if isinstance(value, Mapping) else {"type": value})
    if dataclasses.is_dataclass(annotation) and not isinstance(value, annotation):  # type: ignore[arg-type]
        return build_record(annotation, _check_type(value, Mapping, "an object", key))  # type: ignore[arg-type]
    if annotation in SIMPLE_TYPE_NAMES:
        expected_type = (int, float) if annotation is float else annotation
        return _check_type(value, expected_type, SIMPLE_TYPE_NAMES[annotation], key)
    if inspect.isclass(origin) and issubclass(origin, abc.Mapping):
        items = _check_type(value, Mapping, "an object", key).items()
        return {name: convert_value(item, type_arguments[1], f"{key}.{name}") for name, item in items}
    if inspect.isclass(origin) and issubclass(origin, abc.Iterable):
        items = [convert_value(item, type_arguments[0], key) for item in _check_type(value, Sequence, "a list", key)]
        return tuple(items) if origin is tuple else items
    return value


def build_record(record_class: type[Record], values: Mapping[str, Any]) -> Record:
    """Return a dataclass from plain data, each value as its annotation describes it, without the keys that it does not
    have. Raise a `ConfigError` if a value has another type, or a `TypeError` if one is missing."""
    known = {name: hint for name, hint in _cached_type_hints(record_class).items() if name in values}
    return record_class(**{name: convert_value(values[name], hint, name) for name, hint in known.items()})


def _check_type(value: Any, expected_type: Any, type_name: str, key: str) -> Any:
    is_lookalike = any(isinstance(value, kind) and expected_type is not kind for kind in (bool, str))
    is_number = isinstance(value, (int, float)) and expected_type == (int, float)
    if is_lookalike or not isinstance(value, expected_type) or (is_number and not abs(value) <= sys.float_info.max):
        raise ConfigError(f"{key} must be {type_name} but got {files.shown_value(value)}.")
    return value


def build_with_packages(packages: Sequence[str], build: Callable[[], Built]) -> Built:
    """Call `build`; if it fails, import these packages and call it again."""
    try:
        return build()
    except ConfigError:
        if not packages:
            raise
    for package in packages:
        import_package(package)
    return build()


@contextmanager
def packages_named_in_errors(packages: Sequence[str]) -> Iterator[None]:
    """Name the packages of a stored selection where an error may come from not importing them: whoever reads it did not
    write it."""
    try:
        yield
    except ConfigError as error:
        if not packages:
            raise
        options = " ".join(f"--include-package {package}" for package in packages)
        raise ConfigError(f"{error} The selection uses code of its author: if you trust it, add {options}.") from error
