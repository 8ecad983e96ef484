"""The base classes of the commands: texts, arguments, settings and work."""

import argparse
import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Dict, Optional, Sequence, Tuple

if TYPE_CHECKING:
    from rich.console import Console


class FiestaCommand:
    """A command.

    Attributes:
        help: the line about it in the list of commands.
        description: the beginning of its own help.
        examples: the end of its own help.
        settings: the place of the class of its settings, which is imported when it is used. Empty if it has none.
        trains: whether it starts runs, which inherit the environment.
        given: the settings that are positional arguments, each with argparse's number of values.
    """

    help: ClassVar[str]
    description: ClassVar[str]
    examples: ClassVar[str]
    settings: ClassVar[str] = ""
    trains: ClassVar[bool] = False
    given: ClassVar[Tuple[Tuple[str, Optional[str]], ...]] = ()

    def settings_class(self) -> Any:
        module, _, name = self.settings.rpartition(".")
        return getattr(import_module(module), name)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add its arguments. Those that are settings have no default here, so that only what was typed is given."""
        from fiesta_allennlp.selection.options import add_options, options_of

        settings = self.settings_class()
        declared = dict(options_of(settings))
        for name, nargs in self.given:
            option = declared[name]
            told: Dict[str, Any] = {"metavar": option.metavar, "help": option.help, "type": option.parse}
            parser.add_argument(name, nargs=nargs, default=argparse.SUPPRESS, **told)
        self.add_ways(parser)
        self.add_files(add_options(parser, settings))

    def add_ways(self, parser: argparse.ArgumentParser) -> None:
        """Add arguments that are no settings and stand before them."""

    def add_files(self, groups: Dict[str, Any]) -> None:
        """Add arguments that are no settings to groups of settings, by heading."""

    def work(self, args: argparse.Namespace, console: "Console") -> int:
        """Run the command and return its exit status."""
        raise NotImplementedError

    def interrupted(self, args: argparse.Namespace) -> str:
        """Return the sentence to print after an interrupt."""
        return "Interrupted; run it again."


class ReadingCommand(FiestaCommand):
    """A command that reads a selection or scores, which its first positional argument names."""

    def checked(self, args: argparse.Namespace) -> Any:
        """Return the settings that were typed, and import the user's packages, which may take seconds.

        Where there is nothing to read, no package is imported, so that the command says so at once.
        """
        from fiesta_allennlp.selection.options import typed_options

        settings = self.settings_class()
        made = settings(**typed_options(args, settings))
        self.check_files(args)
        packages = getattr(args, "include_package", ())
        if packages and _is_there(getattr(made, self.given[0][0])):
            from fiesta_allennlp.selection.strategy_building import import_packages

            import_packages(packages)
        return made

    def check_files(self, args: argparse.Namespace) -> None:
        """Refuse files that could not be written, before the work."""


def _is_there(source: Any) -> bool:
    from fiesta_allennlp.replays.sources import PRESETS

    return not source or source in PRESETS or os.path.exists(source)


def check_output(name: str, path: Optional[Path], endings: Sequence[str]) -> None:
    """Refuse a file that could not be written, before the work.

    Raises:
        ConfigError: with the option and the path.
    """
    from fiesta_allennlp.errors import ConfigError

    if path is not None and path.suffix not in endings:
        raise ConfigError(f"--{name} {path}: the file's name must end with {' or '.join(endings)}.")
    if path is not None and not path.parent.is_dir():
        raise ConfigError(f"--{name} {path}: there is no directory {path.parent}. Make it first.")
