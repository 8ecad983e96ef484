"""Runs a command to its exit status, with its errors and signals."""

import argparse
import logging
import os
import re
import shlex
import signal
import sys
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Mapping

from fiesta_allennlp.errors import FiestaError, command

if TYPE_CHECKING:
    from rich.console import Console

FAILED_RUN = re.compile(r"(.+?-\d+) (\w+: .*)", re.DOTALL)
"""A failure in a `selection.json`: the run, the kind and the reason."""

LARGER = {"max_evaluations": "--max-evaluations N", "max_hours": "--max-hours HOURS"}
"""The option that makes room for more, by what ended a selection."""


def run_and_exit(work: Callable[["Console"], int], *, debug: bool, interrupted: Callable[[], str]) -> None:
    """Call `work` and end the process with the status it returns, or that of its error.

    Args:
        debug: show the traceback of an error.
        interrupted: tells what to say where an interrupt comes through.
    """
    from fiesta_allennlp.listeners.steady_console import steady_streams

    with _interruptible(), steady_streams():
        sys.exit(_status(work, debug=debug, interrupted=interrupted))


def _status(work: Callable[["Console"], int], *, debug: bool, interrupted: Callable[[], str]) -> int:
    from fiesta_allennlp.listeners.steady_console import SteadyConsole

    logging.getLogger().setLevel(logging.WARNING)
    console = SteadyConsole(highlight=False)
    try:
        return work(console)
    except (FiestaError, ModuleNotFoundError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name != "allennlp":
            raise
        if debug:
            traceback.print_exc()
        SteadyConsole(stderr=True, highlight=False).print(f"error: {error}", markup=False, soft_wrap=True)
        return EXIT_USER_ERROR
    except KeyboardInterrupt:
        console.print(interrupted(), markup=False, soft_wrap=True)
        return EXIT_INTERRUPTED


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let the first ending signal end the command in order, and the second one quit at once.

    A signal that is ignored stays so: shells start what runs in their background with SIGINT ignored. Once the command
    has ended in order, no further signal changes its exit status while Python shuts down.
    """
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
    """Print every failure and every candidate that takes no part. Runs that failed for the same reason share a line.
    If no run reported the metric, print how to read another one from them."""
    lacks_metric = False
    for candidate in summary["candidates"]:
        runs: Dict[str, List[str]] = {}
        for told in candidate.failure_reasons:
            found = FAILED_RUN.match(told)
            run, reason = found.groups() if found else (told, "")
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
        say([f"Once you have fixed the cause, retry the dropped candidates with: {again}"], console)
    if lacks_metric and not summary["num_evaluations"]:
        say([f"The runs are kept. Read another metric from them: {recover_command(args)} --metric NAME"], console)


def status_of(summary: Mapping[str, Any], args: argparse.Namespace, console: "Console") -> int:
    """Return the exit status that belongs to a `selection.json`. If the selection may go on, print how."""
    if summary["stopped_by"] == "interrupted":
        say([f"Continue with: {recover_command(args)}"], console)
        return EXIT_INTERRUPTED
    if summary["stopped_by"] in LARGER:
        say([f"Continue with a larger total: {recover_command(args)} {LARGER[summary['stopped_by']]}"], console)
    return EXIT_NO_DECISION if summary["stopped_by"] == "failures" else 0


def how_to_go_on(args: argparse.Namespace, *, step: str, kept: str) -> str:
    """Return the sentence about an interruption before the first `step` or after the last one; `kept` says what is not
    lost."""
    from fiesta_allennlp.directory import RunDirectory

    directory = None if args.dry_run else args.serialization_dir
    if directory is None or not any(path.exists() for path in RunDirectory(directory).stores):
        return f"Interrupted before the first {step}. Start it again."
    return f"Interrupted; {kept}. Continue with: {recover_command(args)}"


def recover_command(args: argparse.Namespace) -> str:
    """Return the command that goes on with the selection."""
    return f"{command(args.command)} -s {shlex.quote(str(args.serialization_dir))} --recover"


EXIT_NO_DECISION = 1
EXIT_USER_ERROR = 2
EXIT_INTERRUPTED = 130
