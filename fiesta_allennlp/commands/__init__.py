"""The commands as a table, and their parsers, which need only the standard library, so that help is fast."""

import argparse
import os
import sys
from functools import partial
from typing import Any, Dict, List

from fiesta_allennlp.commands.command import EXIT_USER_ERROR, FiestaCommand, run_and_exit
from fiesta_allennlp.commands.read_only import (
    NextCommand,
    PlanCommand,
    PluginCommand,
    ReplayCommand,
    ReportCommand,
    StatusCommand,
)
from fiesta_allennlp.commands.selecting import (
    ConfirmCommand,
    DocumentsCommand,
    SelectCommand,
)
from fiesta_allennlp.core.errors import COMMAND_PREFIX, ConfigError, did_you_mean, join_some

COMMANDS: Dict[str, FiestaCommand] = {
    "select": SelectCommand(),
    "confirm": ConfirmCommand(),
    "plan": PlanCommand(),
    "replay": ReplayCommand(),
    "next": NextCommand(),
    "status": StatusCommand(),
    "report": ReportCommand(),
    "documents": DocumentsCommand(),
    "plugin": PluginCommand(),
}
"""The commands by name. AllenNLP knows all but `plugin`, with the prefix `fiesta-`."""


DOCS_HINT = "Guides: docs/index.md of the repository."
"""The end of every help."""


def add_command(commands: Any, name: str, *, command_name: str, program: str) -> argparse.ArgumentParser:
    """Add the parser of one command, named `command_name` below `program`. It refuses unknown arguments with a hint."""
    command = COMMANDS[name]
    parser = commands.add_parser(
        command_name,
        help=command.help,
        description=f"{command.description}\n\n{command.examples}",
        epilog=DOCS_HINT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.allow_abbrev = False
    program = f"{program} {command_name}"

    words: List[str] = []

    def refuse(message: str) -> None:
        if command.starts_runs:
            from fiesta_allennlp.trainings.programs.config import check_no_lone_placeholder

            try:
                check_no_lone_placeholder(words)
            except ConfigError as error:
                message = str(error)
        if message.endswith("expected one argument"):
            message += ". For a value that begins with a minus, use an equals sign: --OPTION=-VALUE"
        ending = "" if message.endswith((".", "?")) else "."
        parser.exit(EXIT_USER_ERROR, f"error: {message}{ending} See {program} --help.\n")

    parser.error = refuse
    command.add_arguments(parser)
    positionals = parser._get_positional_actions()
    positional_texts = (f"[{action.metavar} ...]" if action.nargs else action.metavar for action in positionals)
    parser.usage = " ".join(["%(prog)s", *filter(None, map(str, positional_texts)), "[options]"])
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    parser.set_defaults(func=partial(_run_command, program.removesuffix(name)), command=name)
    parse = parser.parse_known_args

    def parse_all(*args: Any, **kwargs: Any) -> Any:
        words[:] = next(iter(args), None) or sys.argv[1:]
        namespace, unrecognized = parse(*args, **kwargs)
        if unrecognized:
            typed_flag = unrecognized[0].partition("=")[0]
            hint = command.hint(typed_flag) or did_you_mean(typed_flag, list(parser._option_string_actions))
            refuse(f"unrecognized arguments: {join_some(unrecognized, ' ')}.{hint}")
        return namespace, unrecognized

    parser.parse_known_args = parse_all
    return parser


def _run_command(program_prefix: str, args: argparse.Namespace) -> None:
    """Do the work and end the process with its status. `program_prefix` is for messages."""
    command, prefix_token = COMMANDS[args.command], COMMAND_PREFIX.set(program_prefix)
    if not command.starts_runs:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the arrays are small, and the threads cost 0.15 s
    try:
        run_and_exit(partial(command.run, args), debug=args.debug, interrupt_text=partial(command.interrupt_text, args))
    finally:
        COMMAND_PREFIX.reset(prefix_token)
