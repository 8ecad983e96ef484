"""The base classes of the commands, and what runs one to its exit status."""

import argparse
import logging
import os
import re
import shlex
import signal
import sys
import traceback
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Callable, ClassVar, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

from fiesta_allennlp.errors import FiestaError, command

if TYPE_CHECKING:
    from rich.console import Console

EXIT_NO_DECISION = 1
EXIT_USER_ERROR = 2
EXIT_INTERRUPTED = 130

FAILED_RUN = re.compile(r"(.+?-\d+) (\w+: .*)", re.DOTALL)
"""A failure in a `selection.json`: the run, the kind and the reason."""

LARGER = {"max_evaluations": "--max-evaluations N", "max_hours": "--max-hours HOURS"}
"""The option that makes room for more, by what ended a selection."""


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
            how: Any = {"type": declared[name].parse, "metavar": declared[name].metavar, "help": declared[name].help}
            parser.add_argument(name, nargs=nargs, default=argparse.SUPPRESS, **how)
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
        return "Interrupted. Run the command again."


class ReadingCommand(FiestaCommand):
    """A command that reads a selection or scores, which its first positional argument names."""

    def checked(self, args: argparse.Namespace) -> Any:
        """Return the settings that were typed, and import the user's packages if there is something to read."""
        from fiesta_allennlp.selection.options import typed_options

        settings = self.settings_class()
        made = settings(**typed_options(args, settings))
        packages = getattr(args, "include_package", ())
        if packages and _is_there(getattr(made, self.given[0][0])):
            from fiesta_allennlp.selection.strategy_building import import_packages

            import_packages(packages)
        return made


def _is_there(source: Any) -> bool:
    from fiesta_allennlp.replays.sources import PRESETS

    return not source or source in PRESETS or os.path.exists(source)


def run_and_exit(work: Callable[["Console"], int], *, debug: bool, interrupted: Callable[[], str]) -> None:
    """Call `work` and end the process with the status it returns, or that of its error."""
    from fiesta_allennlp.listeners.steady_console import steady_streams

    with _interruptible(), steady_streams():
        sys.exit(_status(work, debug=debug, interrupted=interrupted))


def _status(work: Callable[["Console"], int], *, debug: bool, interrupted: Callable[[], str]) -> int:
    from fiesta_allennlp.listeners.steady_console import SteadyConsole

    logging.getLogger().setLevel(logging.WARNING)
    console = SteadyConsole(highlight=False)
    try:
        return work(console)
    except FiestaError as error:
        if debug:
            traceback.print_exc()
        say([f"error: {error}"], SteadyConsole(stderr=True, highlight=False))
        return EXIT_USER_ERROR
    except KeyboardInterrupt:
        say([interrupted()], console)
        return EXIT_INTERRUPTED


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let the first ending signal end the command in order, and the second one quit at once.

    A signal that is ignored stays so, as in a shell's background. After the end, no signal changes the exit status."""
    came: List[int] = []

    def interrupt(signum: int, frame: Any) -> None:
        came.append(signum)
        if len(came) > 1:
            os._exit(EXIT_INTERRUPTED)  # a store is whole after every step, and workers end with their parent
        raise KeyboardInterrupt

    endings = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {ending: signal.getsignal(ending) for ending in endings if signal.getsignal(ending) != signal.SIG_IGN}
    for ending in before:
        signal.signal(ending, interrupt)
    try:
        yield
    finally:
        for ending, handler in before.items():
            signal.signal(ending, signal.SIG_IGN if came else handler)


def say(sentences: Iterable[str], console: "Console") -> None:
    """Print sentences, each on a line of its own, as they are."""
    for sentence in sentences:
        console.print(sentence, markup=False, soft_wrap=True)


# What is said at the end of a selection.


def say_failures(summary: Mapping[str, Any], args: argparse.Namespace, console: "Console") -> None:
    """Print every failure, by reason, and every candidate that takes no part. If no run reported the metric, print how
    to read another one from them."""
    lacks_metric = False
    for candidate in summary["candidates"]:
        runs: Dict[str, List[str]] = {}
        for failure in candidate.failure_reasons:
            found = FAILED_RUN.match(failure)
            run, reason = found.groups() if found else (failure, "")
            runs.setdefault(reason, []).append(run)
        for reason, failed in runs.items():
            lacks_metric |= reason.startswith("metric: ")
            say([f"failed: {', '.join(failed)} {reason}"], console)
        if candidate.withdrawn:
            what = "removed" if candidate.out == "removed" else "dropped out"
            say([f"{what}: {candidate.name}: {candidate.withdrawn_because}"], console)
    most = max((c.failures for c in summary["candidates"] if c.out == "failed"), default=0)
    if most:
        again = f"{recover_command(args)} --max-failures {2 * most}"
        say([f"After fixing the cause, retry the dropped candidates with: {again}"], console)
    if lacks_metric and not summary["num_evaluations"]:
        say([f"The runs are kept. To use another metric: {recover_command(args)} --metric NAME"], console)


def status_of(summary: Mapping[str, Any], args: argparse.Namespace, console: "Console") -> int:
    """Return the exit status that belongs to a `selection.json`. If the selection may go on, print how."""
    if summary["stopped_by"] == "interrupted":
        say([f"Continue with: {recover_command(args)}"], console)
        return EXIT_INTERRUPTED
    if summary["stopped_by"] in LARGER:
        say([f"To continue, raise the limit: {recover_command(args)} {LARGER[summary['stopped_by']]}"], console)
    return EXIT_NO_DECISION if summary["stopped_by"] == "failures" else 0


def how_to_go_on(args: argparse.Namespace, *, step: str, kept: str) -> str:
    """Return the sentence about an interruption; `kept` says what is not lost."""
    from fiesta_allennlp.directory import RunDirectory

    directory = None if args.dry_run else args.serialization_dir
    if directory is None or not any(path.exists() for path in RunDirectory(directory).stores):
        return f"Interrupted before the first {step}. Start over with the same command."
    return f"Interrupted; {kept}. Continue with: {recover_command(args)}"


def recover_command(args: argparse.Namespace) -> str:
    return f"{command(args.command)} -s {shlex.quote(str(args.serialization_dir))} --recover"
