"""How a command runs and ends: its exit statuses, its errors, and what signals do."""

import _thread
import argparse
import logging
import os
import re
import shlex
import signal
import sys
import threading
import time
import traceback
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

from rich.console import Console

from fiesta_allennlp.commands.statuses import EXIT_INTERRUPTED, EXIT_NO_DECISION, EXIT_USER_ERROR
from fiesta_allennlp.errors import FiestaError
from fiesta_allennlp.listeners.steady_console import SteadyConsole

PLUGIN = "fiesta_allennlp.plugin"
"""What AllenNLP imports."""

FAILED_RUN = re.compile(r"(.+?-\d+) (\w+: .*)", re.DOTALL)
"""What a `selection.json` says of a failure: the run, and the kind and the reason."""

LARGER = {"max_evaluations": "--max-evaluations N", "max_hours": "--max-hours HOURS"}
"""The option that makes room for more, by what ended a selection."""

SECONDS_TO_COME_AGAIN = 0.01
"""Long enough for the destructor to be over in which an interrupt was lost."""


def run_and_exit(work: Callable[[Console], int], *, debug: bool, interrupted: Callable[[], str]) -> None:
    """Call `work` and end the process with the status it returns, or that of its error.

    Args:
        debug: show the traceback of an error.
        interrupted: tells what to say where an interrupt comes through.
    """
    with _interruptible():
        sys.exit(_status(work, debug=debug, interrupted=interrupted))


def _status(work: Callable[[Console], int], *, debug: bool, interrupted: Callable[[], str]) -> int:
    logging.getLogger().setLevel(logging.WARNING)
    console = SteadyConsole(highlight=False)
    try:
        return work(console)
    except FiestaError as error:
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
    has ended in order, no further signal changes its exit status while Python shuts down. An interrupt that came in a
    destructor, which Python cannot pass on, comes again: also where the destructor made another error of it, and where
    it came while an error of a destructor was being printed.
    """
    came: List[int] = []
    lost: List[object] = []
    main = threading.get_ident()  # signals come to the main thread alone, which runs the command

    def interrupt(signum: int, frame: Any) -> None:
        if not lost:
            came.append(signum)
            if len(came) > 1:
                os._exit(EXIT_INTERRUPTED)  # a store is whole after every step, and workers end with their parent
        if any(at.f_code is come_again.__code__ for at, _ in traceback.walk_stack(frame)):
            lose()  # Python cannot pass it on from there either
            return
        lost.clear()
        raise KeyboardInterrupt

    def come_again(unraisable: Any) -> None:
        if came and _has_lost_interrupt(unraisable.exc_value, handled=sys.exc_info()[1]):
            lose()
        else:
            print_unraisable(unraisable)

    def lose() -> None:
        if not lost:
            lost.append(object())
            _thread.start_new_thread(send_again, (lost[-1],))

    def send_again(loss: object) -> None:
        while loss in lost:
            time.sleep(SECONDS_TO_COME_AGAIN)
            if loss in lost:
                signal.pthread_kill(main, came[-1])

    print_unraisable, sys.unraisablehook = sys.unraisablehook, come_again
    endings = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {ending: signal.getsignal(ending) for ending in endings if signal.getsignal(ending) != signal.SIG_IGN}
    for ending in before:
        signal.signal(ending, interrupt)
    try:
        yield
    finally:
        sys.unraisablehook = print_unraisable
        for ending, handler in before.items():
            signal.signal(ending, signal.SIG_IGN if came else handler)


def _has_lost_interrupt(error: Optional[BaseException], *, handled: Optional[BaseException]) -> bool:
    """Whether an error is an interrupt or was raised over one, other than the one that is being handled outside."""
    if error is None or error is handled:
        return False
    if isinstance(error, KeyboardInterrupt):
        return True
    return any(_has_lost_interrupt(earlier, handled=handled) for earlier in (error.__cause__, error.__context__))


def load(args: argparse.Namespace, *, plugin: bool) -> None:
    """Import AllenNLP and the user's packages, which takes seconds: commands first check what was typed.

    Args:
        plugin: import all that this package registers too, for commands that train models or ask them.

    Raises:
        ConfigError: where a package cannot be imported.
    """
    from fiesta_allennlp.selection.strategy_building import import_packages

    if plugin:
        import_module(PLUGIN)
    import_packages(getattr(args, "include_package", ()))


# What is said at the end of a selection.


def say_failures(summary: Mapping[str, Any], console: Console) -> None:
    """Every failure and every candidate that takes no part. Runs that failed for the same reason share a line."""
    for candidate in summary["candidates"]:
        runs: Dict[str, List[str]] = {}
        for told in candidate.failure_reasons:
            found = FAILED_RUN.match(told)
            run, reason = found.groups() if found else (told, "")
            runs.setdefault(reason, []).append(run)
        for reason, failed in runs.items():
            console.print(f"failed: {', '.join(failed)} {reason}", markup=False, soft_wrap=True)
        if candidate.withdrawn:
            what = "removed" if candidate.out == "removed" else "dropped out"
            console.print(f"{what}: {candidate.name}: {candidate.withdrawn_because}", markup=False, soft_wrap=True)


def status_of(summary: Mapping[str, Any], args: argparse.Namespace, console: Console) -> int:
    """The exit status that belongs to a `selection.json`; of one that may go on it says how."""
    if summary["stopped_by"] == "interrupted":
        console.print(f"Go on with: {recover_command(args)}", markup=False, soft_wrap=True)
        return EXIT_INTERRUPTED
    if summary["stopped_by"] in LARGER:
        larger = f"Go on with a larger total: {recover_command(args)} {LARGER[summary['stopped_by']]}"
        console.print(larger, markup=False, soft_wrap=True)
    return EXIT_NO_DECISION if summary["stopped_by"] == "failures" else 0


def how_to_go_on(args: argparse.Namespace, *, step: str, kept: str) -> str:
    """What to say of an interruption before the first `step`, or after the last one; `kept` says what is not lost."""
    from fiesta_allennlp.directory import RunDirectory

    directory = None if args.dry_run else args.serialization_dir
    if directory is None or not any(path.exists() for path in RunDirectory(directory).stores):
        return f"Interrupted before the first {step}. Start it again."
    return f"Interrupted; {kept}. Go on with: {recover_command(args)}"


def recover_command(args: argparse.Namespace) -> str:
    """The command that goes on with the selection."""
    return f"{args.program} -s {shlex.quote(str(args.serialization_dir))} --recover"
