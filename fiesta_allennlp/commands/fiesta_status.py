"""
The `fiesta-status` subcommand shows how a selection stands that runs in another terminal of this machine:

    allennlp fiesta-status runs/first
"""

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fiesta_allennlp.commands.exit_handling import load

if TYPE_CHECKING:
    from rich.console import Console

DESCRIPTION = """Print the table of a selection or a search, running or not. The command locks and changes nothing in
its directory."""

EXAMPLES = """examples:
  %(prog)s runs/first
  %(prog)s runs/first --follow"""

SECONDS_BETWEEN = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, metavar="DIR", help="the directory of the selection or the search")
    parser.add_argument("--follow", action="store_true", help="print it again and again until the selection ends")
    parser.add_argument(
        "--every",
        type=float,
        default=SECONDS_BETWEEN,
        metavar="SECONDS",
        help=f"with --follow: the time between two tables (default {SECONDS_BETWEEN:g})",
    )


def interrupted(args: argparse.Namespace) -> str:
    return "The selection is not affected."


def work(args: argparse.Namespace, console: "Console") -> int:
    """Run the command. Returns its status, 0."""
    from fiesta_allennlp.errors import ConfigError

    if not args.every > 0:
        raise ConfigError(f"--every must be above 0 but got {args.every:g}.")
    load(args)
    from fiesta_allennlp.reports.status import status_of

    while True:
        found = status_of(args.directory)
        console.print(found.table)
        for sentence in found.sentences:
            console.print(sentence, markup=False, soft_wrap=True)
        if not args.follow or not found.running:
            return 0
        time.sleep(args.every)
