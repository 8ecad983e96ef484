"""The base class of the commands, their parsers, and what runs one to its exit status. Importing this module takes the
standard library alone, so that help is fast."""

import argparse
import errno
import logging
import os
import signal
import sys
import traceback
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, ClassVar, Iterator, NoReturn, Optional, Sequence

from fiesta_allennlp.core.directory import refuse_place
from fiesta_allennlp.core.errors import ConfigError, FiestaError, did_you_mean, join_some, received_signals

if TYPE_CHECKING:
    from rich.console import Console

    from fiesta_allennlp.core.options import Option
    from fiesta_allennlp.selecting.results.result import Result
    from fiesta_allennlp.tables.run_table import RunTable

EXIT_NO_COMPARISON = 1
EXIT_USER_ERROR = 2
EXIT_OPEN = 3
EXIT_WORSE = 4
EXIT_INTERRUPTED = 130

REMEDIES = {
    (errno.EMFILE, errno.ENFILE): "Raise the limit, for example with `ulimit -n 1024`, and run the command again. "
    "Finished runs are safe: continue with --recover.",
    (errno.ELOOP, errno.EISDIR, errno.ENOTDIR): "A link, file or directory that this command did not create is in "
    "the way. Move or delete it.",
    (errno.ENOSPC, errno.EDQUOT, errno.EFBIG): "The disk is full. Free some space. Finished runs are safe: continue "
    "with --recover.",
    (errno.ENAMETOOLONG,): "Correct or shorten it.",
    (errno.EACCES, errno.EPERM, errno.EROFS): "Ask its owner for access, or use another directory.",
}
"""What to do about errors of the machine that can occur anywhere, by their numbers."""


class FiestaCommand:
    """A command.

    Attributes:
        help: the line about it in the list of commands.
        description, examples: the beginning of its own help.
        settings_class_path: the dotted path of the class of its settings, which is imported when it is used. Empty if
            it has none.
        rare_modes: arguments that are no settings and that only `--help-all` lists.
        starts_runs: whether it starts runs, which inherit the environment.
        positional_settings: the settings that are positional arguments, each with argparse's number of values.
        interrupt_message: the sentence to print after an interrupt.
    """

    help: ClassVar[str]
    description: ClassVar[str]
    examples: ClassVar[str]
    settings_class_path: ClassVar[str] = ""
    rare_modes: ClassVar[tuple[str, ...]] = ("debug",)
    starts_runs: ClassVar[bool] = False
    positional_settings: ClassVar[tuple[tuple[str, Optional[str]], ...]] = ()
    interrupt_message: ClassVar[str] = "Interrupted. Run the command again."

    def add_arguments(self, parser: argparse.ArgumentParser) -> "dict[str, Option]":
        """Add its arguments, and return the declarations of those that are settings. They have no default here, so that
        only what was typed is given."""
        from fiesta_allennlp.core.options import add_options, declared_options

        settings = import_dotted(self.settings_class_path)
        declared = dict(declared_options(settings))
        for name, nargs in self.positional_settings:
            kwargs: Any = {"type": declared[name].parse, "metavar": declared[name].metavar, "help": declared[name].help}
            parser.add_argument(name, nargs=nargs, default=argparse.SUPPRESS, **kwargs)
        self.add_mode_arguments(parser)
        add_options(parser, settings)
        return declared

    def add_mode_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add arguments that are no settings and stand before them."""

    def run(self, args: argparse.Namespace, console: "Console") -> int:
        """Run the command and return its exit status."""
        raise NotImplementedError

    def typed_settings(self, args: argparse.Namespace) -> dict[str, Any]:
        """Return the settings that were typed, and import the user's packages."""
        from fiesta_allennlp.core.options import typed_options
        from fiesta_allennlp.core.registry import import_package

        for package in getattr(args, "include_package", ()):
            import_package(package)
        return typed_options(args, import_dotted(self.settings_class_path))

    def build_settings(self, args: argparse.Namespace) -> Any:
        return import_dotted(self.settings_class_path)(**self.typed_settings(args))

    def interrupt_text(self, args: argparse.Namespace) -> str:
        """Return the sentence to print after an interrupt."""
        return self.interrupt_message


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
        self._declared = command.add_arguments(self)
        positionals = self._get_positional_actions()
        positional_texts = (f"[{action.metavar} ...]" if action.nargs else action.metavar for action in positionals)
        self.usage = " ".join(["%(prog)s", *filter(None, map(str, positional_texts)), "[options]"])
        self.add_argument("--debug", action="store_true", help="show the traceback of an error")
        rare_names = {*command.rare_modes, *(name for name, option in self._declared.items() if option.is_rare)}
        rare_options = [action for action in self._actions if action.dest in rare_names]
        if rare_options:
            self.add_argument(HELP_ALL, action="help", help=f"show all options ({len(rare_options)} more)")
        for action in [] if shows_all else rare_options:
            action.help = argparse.SUPPRESS

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[argparse.Namespace, list[str]]:  # type: ignore[override]
        self._words = sys.argv[1:] if args is None else list(args)
        parsed_args, unrecognized = super().parse_known_args(args, namespace)
        if unrecognized:
            typed_flag = unrecognized[0].partition("=")[0]
            remedies = (option.sought_as.get(typed_flag) for option in self._declared.values())
            remedy = next((f" Did you mean '{words}'?" for words in remedies if words), "")
            hint = remedy or did_you_mean(typed_flag, list(self._option_string_actions))
            self.error(f"unrecognized arguments: {join_some(unrecognized, ' ')}.{hint}")
        parsed_args.words = tuple(self._words)
        return parsed_args, unrecognized

    def error(self, message: str) -> NoReturn:
        if message.endswith("expected one argument"):
            message += ". For a value that begins with a minus, use an equals sign: --OPTION=-VALUE"
        if self._command.starts_runs:
            from fiesta_allennlp.candidates.programs.program import check_no_lone_placeholder

            try:  # argparse takes a command without quotes for several arguments
                check_no_lone_placeholder(self._words)
            except ConfigError as error:
                message = str(error)
        super().error(message)


def add_require_decision(parser: Any, *, decision: str = "a winner was named") -> None:
    """Add the mode in which a script sees the decision by the exit status."""
    help = f"exit with status {EXIT_OPEN} unless {decision}"
    parser.add_argument("--require-decision", action="store_true", help=help)


def decision_status(result: "Result", args: argparse.Namespace) -> int:
    """Return the exit status of a comparison that was not interrupted."""
    if result.stopped_by == "failures":
        return EXIT_NO_COMPARISON
    if result.gate is not None:
        return {"worse": EXIT_WORSE, "open": EXIT_OPEN}.get(result.verdict, 0)
    return EXIT_OPEN if args.require_decision and not result.decided else 0


def check_output(path: Optional[Path]) -> None:
    """Refuse a file in a directory that does not exist, a file of a selection, and what is no file, before the work."""
    if path is None:
        return
    if not path.parent.is_dir():
        raise ConfigError(f"--output {path}: the directory {path.parent} does not exist.")
    if path.exists() and not path.is_file():
        raise ConfigError(f"--output {path} is not a regular file. Choose another name.")
    refuse_place(path, "--output")


def print_read_back(*tables: "RunTable") -> None:
    """Print what was understood of tables of scores, on the standard error."""
    for table in tables:
        print(*table.lines, sep="\n", file=sys.stderr)


def import_dotted(dotted_path: str) -> Any:
    """Import a class or a function by its place, as late as it is used."""
    module, _, name = dotted_path.rpartition(".")
    return getattr(import_module(module), name)


def run_and_exit(function: Callable[["Console"], int], *, debug: bool, interrupt_text: Callable[[], str]) -> None:
    """Call `function` and end the process with the status it returns, or that of its error."""
    from fiesta_allennlp.core.console import PipeSafeConsole, pipe_safe_streams

    with _handling_signals(), pipe_safe_streams():
        logging.getLogger().setLevel(logging.WARNING)
        console = PipeSafeConsole()
        try:
            status = function(console)
        except (FiestaError, OSError) as error:
            message = str(error)
            if isinstance(error, OSError) and not isinstance(error, FiestaError):
                remedy = next((text for numbers, text in REMEDIES.items() if error.errno in numbers), None)
                if remedy is None:
                    raise
                file = f"{error.filename}: " if error.filename else ""
                message = f"{file}{error.strerror}. {remedy}"
            if debug:
                traceback.print_exc()
            PipeSafeConsole(stderr=True).print(f"error: {message}")
            status = EXIT_USER_ERROR
        except KeyboardInterrupt:
            PipeSafeConsole(stderr=True).print(interrupt_text())  # what reads the output expects JSON, CSV or a table
            status = EXIT_INTERRUPTED
        sys.exit(status)


@contextmanager
def _handling_signals() -> Iterator[None]:
    """Let the first ending signal end the command in order, and the second one quit at once.

    A signal that is ignored stays so, as in a shell's background. After the end, no signal changes the exit status."""

    def interrupt(signum: int, frame: Any) -> None:
        received_signals.append(signum)
        if len(received_signals) > 1:
            os._exit(EXIT_INTERRUPTED)  # a store is whole after every step, and workers end with their parent
        raise KeyboardInterrupt

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    handlers = {number: handler for number, handler in handlers.items() if handler != signal.SIG_IGN}
    for number in handlers:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, signal.SIG_IGN if received_signals else handler)
        received_signals.clear()
