"""What you type, and the same calls for Python.

The commands are a table. Their parsers need only the standard library, so that help is fast.
"""

import argparse
import os
import sys
from contextvars import copy_context
from functools import partial
from typing import Any, Dict, Optional

from fiesta_allennlp.commands import read_only_commands, selection_commands
from fiesta_allennlp.commands.command import HELP_ALL, CommandParser, FiestaCommand, run_and_exit
from fiesta_allennlp.core.errors import COMMAND_PREFIX, TYPED_WORDS

__all__ = ["COMMANDS", "add_command", "command", "library"]

COMMANDS: Dict[str, FiestaCommand] = {
    "select": selection_commands.SelectCommand(),
    "confirm": selection_commands.ConfirmCommand(),
    "plan": read_only_commands.PlanCommand(),
    "replay": read_only_commands.ReplayCommand(),
    "next": read_only_commands.NextCommand(),
    "status": read_only_commands.StatusCommand(),
    "report": read_only_commands.ReportCommand(),
    "documents": selection_commands.DocumentsCommand(),
    "docs": read_only_commands.DocsCommand(),
    "plugin": read_only_commands.PluginCommand(),
}
"""The commands by name. AllenNLP knows all but `plugin`, with the prefix `fiesta-`."""


def add_command(
    commands: Any, name: str, *, command_name: str, program: str, shows_all: Optional[bool] = None
) -> CommandParser:
    """Add the parser of one command, named `command_name` below `program`. Its help has all options with `shows_all`,
    or by default if `--help-all` was typed."""
    command = COMMANDS[name]
    commands.add_parser(command_name, help=command.help)
    shows_all = HELP_ALL in sys.argv if shows_all is None else shows_all
    parser = CommandParser(command, prog=f"{program} {command_name}", shows_all=shows_all)
    run = partial(_run_command, command, parser.prog.removesuffix(name))
    parser.set_defaults(func=partial(copy_context().run, run), command=name)
    commands.choices[command_name] = parser
    return parser


def _run_command(command: FiestaCommand, program_prefix: str, args: argparse.Namespace) -> None:
    """Do the work and end the process with its status. `program_prefix` is for messages."""
    COMMAND_PREFIX.set(program_prefix)
    TYPED_WORDS.set((args.command, *args.words))
    if not command.starts_runs:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the arrays are small, and the threads cost 0.15 s
    run_and_exit(partial(command.run, args), debug=args.debug, interrupt_text=partial(command.interrupt_text, args))
