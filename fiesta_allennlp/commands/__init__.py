"""One file for each command: its description and examples, `add_arguments`, `work` and what it says if `interrupted`.

Their parsers need no AllenNLP, so that help and usage errors come at once."""

import argparse
import re
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

from fiesta_allennlp.commands.detaching import detach
from fiesta_allennlp.commands.exit_handling import EXIT_USER_ERROR, run_and_exit
from fiesta_allennlp.errors import did_you_mean

HELP = {
    "select": "find the best of several models",
    "search": "screen many configs, then find the best of a few",
    "plan": "estimate how many runs a selection needs",
    "replay": "simulate a selection over existing scores",
    "next": "name the next runs for a table of scores",
    "status": "show how a selection stands that runs elsewhere",
    "report": "write the report of a selection",
    "documents": "find the best of several trained systems",
    "plugin": "make the fiesta- commands available in `allennlp`",
}


def add_command(commands: Any, name: str, *, called: str, program: str) -> argparse.ArgumentParser:
    """Add the parser of one command, `called` so below `program`. It refuses unknown arguments with a hint."""
    module = import_module(f"{__name__}.fiesta_{name}")
    parser = commands.add_parser(
        called,
        help=HELP[name],
        description=module.DESCRIPTION,
        epilog=module.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.allow_abbrev = False
    module.add_arguments(parser)
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    parser.set_defaults(func=partial(_run, module), program=f"{program} {called}")
    parse = parser.parse_known_args

    def parse_all(*given: Any, **more: Any) -> Any:
        args, unknown = parse(*given, **more)
        if unknown:
            hint = did_you_mean(unknown[0].partition("=")[0], re.findall(r"--[a-z-]+", parser.format_usage()))
            message = f"error: unrecognized arguments: {' '.join(unknown)}.{hint} See {args.program} --help.\n"
            parser.exit(EXIT_USER_ERROR, message)
        return args, unknown

    parser.parse_known_args = parse_all
    return parser


def _run(command: ModuleType, args: argparse.Namespace) -> None:
    """Do the work, or start it in the background, and end the process with its status."""
    if getattr(args, "detach", False):
        run_and_exit(
            lambda console: detach(args, console),
            debug=args.debug,
            interrupted=lambda: "Interrupted; nothing goes on in the background.",
        )
    run_and_exit(
        lambda console: command.work(args, console),
        debug=args.debug,
        interrupted=lambda: command.interrupted(args),
    )
