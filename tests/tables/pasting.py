"""Reads tables as a user does: types a command, and pastes the commands of the error until the table is read."""

import shlex
import sys
from pathlib import Path
from typing import List, NamedTuple, Optional
from unittest import mock

from fiesta_allennlp.__main__ import _parse
from fiesta_allennlp.commands import COMMANDS
from fiesta_allennlp.core.errors import TYPED_WORDS, FiestaError
from fiesta_allennlp.tables.run_table import RunTable
from fiesta_allennlp.tables.table_reader import read_run_table


class Pasted(NamedTuple):
    """The table, None if it cannot be read, after a number of pastes, and the last error."""

    table: Optional[RunTable]
    pastes: int
    error: str


def read_as_typed(command: str) -> RunTable:
    """Read the table of a command line such as `fiesta next a.csv --score f1`."""
    with mock.patch.object(sys, "argv", shlex.split(command)):
        args = _parse()
        settings = COMMANDS[args.command].build_settings(args)
        token = TYPED_WORDS.set((args.command, *args.words))
        try:
            return read_run_table(Path(getattr(settings, "scores", "") or settings.source), settings)
        finally:
            TYPED_WORDS.reset(token)


def commands_of(error: str) -> List[str]:
    """Return the complete commands of an error."""
    return [line.strip() for line in error.splitlines()[1:] if "fiesta " in line]


def paste(command: str, *choices: int) -> Pasted:
    """Type a command, then the first command of each error, or the one that `choices` number, at most three times."""
    error = ""
    for number in range(4):
        try:
            return Pasted(read_as_typed(command), number, error)
        except FiestaError as raised:
            error = str(raised)
        commands = commands_of(error)
        choice = choices[number] if number < len(choices) else 0
        if len(commands) <= choice or "--allow units" in commands[choice]:
            return Pasted(None, number, error)
        command = commands[choice]
    return Pasted(None, 9, error)
