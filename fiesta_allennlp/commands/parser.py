"""The parsers of the commands, which need only the standard library, so that help is fast."""

import argparse
import sys
from typing import Any, List, NoReturn, Optional, Sequence, Tuple

from fiesta_allennlp.commands.command import EXIT_USER_ERROR, FiestaCommand
from fiesta_allennlp.core.errors import ConfigError, did_you_mean, join_some

DOCS_HINT = "Guides: fiesta docs"
"""The end of every help."""

HELP_ALL = "--help-all"


class Parser(argparse.ArgumentParser):
    """A parser that answers an error with one sentence and the way to the help."""

    def error(self, message: str) -> NoReturn:
        ending = "" if message.endswith((".", "?")) else "."
        self.exit(EXIT_USER_ERROR, f"error: {message}{ending} See {self.prog} --help.\n")


class CommandParser(Parser):
    """The parser of one command, which refuses unknown arguments with a hint. Its help leaves out the rare options,
    unless `shows_all`."""

    def __init__(self, command: FiestaCommand, *, prog: str, shows_all: bool) -> None:
        super().__init__(
            prog=prog,
            description=f"{command.description}\n\n{command.examples}",
            epilog=DOCS_HINT,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self._command = command
        self._words: Sequence[str] = ()
        command.add_arguments(self)
        positionals = self._get_positional_actions()
        positional_texts = (f"[{action.metavar} ...]" if action.nargs else action.metavar for action in positionals)
        self.usage = " ".join(["%(prog)s", *filter(None, map(str, positional_texts)), "[options]"])
        self.add_argument("--debug", action="store_true", help="show the traceback of an error")
        rare_names = command.rare_options()
        rare_options = [action for action in self._actions if action.dest in rare_names]
        if rare_options:
            help = f"show this and the other {len(rare_options)} options"
            self.add_argument(HELP_ALL, action="help", help=help)
        for action in [] if shows_all else rare_options:
            action.help = argparse.SUPPRESS

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Tuple[argparse.Namespace, List[str]]:  # type: ignore[override]
        self._words = sys.argv[1:] if args is None else list(args)
        parsed_args, unrecognized = super().parse_known_args(args, namespace)
        if unrecognized:
            typed_flag = unrecognized[0].partition("=")[0]
            hint = self._command.hint(typed_flag) or did_you_mean(typed_flag, list(self._option_string_actions))
            self.error(f"unrecognized arguments: {join_some(unrecognized, ' ')}.{hint}")
        parsed_args.words = tuple(self._words)
        return parsed_args, unrecognized

    def error(self, message: str) -> NoReturn:
        if message.endswith("expected one argument"):
            message += ". For a value that begins with a minus, use an equals sign: --OPTION=-VALUE"
        super().error(self._lone_placeholder_error() or message)

    def _lone_placeholder_error(self) -> Optional[str]:
        """Return the message about a command without quotes, which argparse takes for several arguments."""
        if self._command.starts_runs:
            from fiesta_allennlp.candidates.programs.program import check_no_lone_placeholder

            try:
                check_no_lone_placeholder(self._words)
            except ConfigError as error:
                return str(error)
        return None
