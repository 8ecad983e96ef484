"""The base class of the commands: texts, arguments, settings and work."""

import argparse
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Dict, Optional, Tuple

from fiesta_allennlp.commands.parsing import add_given

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
        from fiesta_allennlp.selection.options import add_options

        settings = self.settings_class()
        for name, nargs in self.given:
            add_given(parser, settings, name, nargs=nargs, default=argparse.SUPPRESS)
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
