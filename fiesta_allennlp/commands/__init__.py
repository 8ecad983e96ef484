"""One file for each command. Their parsers need no AllenNLP, so that help and usage errors come at once."""

import argparse
import re
from importlib import import_module
from typing import Any

from fiesta_allennlp.commands.detaching import in_background
from fiesta_allennlp.commands.statuses import EXIT_USER_ERROR
from fiesta_allennlp.errors import did_you_mean

HELP = {
    "select": "find the best of several models",
    "search": "screen many configs, then find the best of a few",
    "plan": "estimate how many runs a selection needs",
    "replay": "simulate a selection over existing scores",
    "lookup": "measure how fast a searcher finds the best of many configs",
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
    module.add_arguments(parser)
    work = in_background(getattr(module, f"{name}_from_args"))
    parser.set_defaults(func=work, program=f"{program} {called}")
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
