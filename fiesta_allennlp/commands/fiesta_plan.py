"""
The `fiesta-plan` subcommand tells how many runs a selection will need, before they are paid for:

    allennlp fiesta-plan --gap 0.01 --sd 0.03 --candidates 4
    allennlp fiesta-plan runs/first
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from fiesta_allennlp.commands.exit_handling import EXIT_INTERRUPTED, load
from fiesta_allennlp.commands.parsing import add_given, check_output

if TYPE_CHECKING:
    from rich.console import Console

DESCRIPTION = """Simulate a selection to estimate how many runs and hours it needs and how often it is right. You
describe the problem by numbers, or by a pilot: the directory of a finished, interrupted or running
selection, or a table of scores. The command trains, locks and changes nothing."""

EXAMPLES = """examples:
  %(prog)s --gap 0.01 --sd 0.03 --candidates 4
  %(prog)s runs/first"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Every option. Those that are settings have no default here, so that only what was typed is given."""
    from fiesta_allennlp.replays.plan_settings import PlanSettings
    from fiesta_allennlp.selection.options import add_options
    from fiesta_allennlp.selection.settings import RESOURCES

    add_given(parser, PlanSettings, "source", nargs="?")
    resources = add_options(parser, PlanSettings)[RESOURCES]
    resources.add_argument("--output", type=Path, metavar="FILE.json", help="write the result to this file")


def interrupted(args: argparse.Namespace) -> str:
    return "Interrupted; no repetition has finished."


def work(args: argparse.Namespace, console: "Console") -> int:
    """Run the command. Returns its status: 0 done, 130 interrupted."""
    from fiesta_allennlp.replays.plan_settings import PlanSettings
    from fiesta_allennlp.selection.options import typed_options

    settings = PlanSettings(**typed_options(args, PlanSettings))
    check_output("output", args.output, (".json",))
    load(args)
    from fiesta_allennlp.listeners.progress import repetition_bar
    from fiesta_allennlp.replays.planning import FEWEST, forecast
    from fiesta_allennlp.reports.plan import outlook_table, plan_content, plan_in_words
    from fiesta_allennlp.selection.summary import write_json

    with repetition_bar(console, FEWEST) as told:
        found = forecast(settings, on_repetitions=told)
    console.print(outlook_table(found))
    for line in plan_in_words(found):
        console.print(line, markup=False, soft_wrap=True)
    if args.output is not None:
        write_json(plan_content(found), args.output)
    return EXIT_INTERRUPTED if found.interrupted else 0
