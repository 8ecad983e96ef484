"""
The `fiesta-replay` subcommand repeats a selection over released scores, many times and without a training:

    allennlp fiesta-replay scores.json --confidence 0.95
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from fiesta_allennlp.commands.exit_handling import EXIT_INTERRUPTED, load
from fiesta_allennlp.commands.parsing import add_given, check_output

if TYPE_CHECKING:
    from rich.console import Console

DESCRIPTION = """Simulate a selection over a table of existing scores, or over synthetic ones, and print how many
runs it takes and how often it finds the best candidate."""

EXAMPLES = """examples:
  %(prog)s scores.csv --confidence 0.9
  %(prog)s tdsa-8 --strategy ttts --belief student_t --splits independent"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Every option. Those that are settings have no default here, so that only what was typed is given."""
    from fiesta_allennlp.replays.settings import ReplaySettings
    from fiesta_allennlp.selection.options import add_options
    from fiesta_allennlp.selection.settings import RESOURCES

    add_given(parser, ReplaySettings, "scores")
    resources = add_options(parser, ReplaySettings)[RESOURCES]
    resources.add_argument("--output", type=Path, metavar="FILE.json", help="write the result to this file")
    resources.add_argument("--figure", type=Path, metavar="FILE.png|pdf", help="draw a figure of the number of runs")


def interrupted(args: argparse.Namespace) -> str:
    return "Interrupted; no repetition has finished."


def work(args: argparse.Namespace, console: "Console") -> int:
    """Run the command. Returns its status: 0 done, 130 interrupted."""
    from fiesta_allennlp.replays.settings import ReplaySettings
    from fiesta_allennlp.selection.options import typed_options

    settings = ReplaySettings(**typed_options(args, ReplaySettings))
    _check_files(args)
    load(args)
    from fiesta_allennlp.listeners.progress import repetition_bar
    from fiesta_allennlp.replays.replay import replay
    from fiesta_allennlp.replays.summary import summarise_replay
    from fiesta_allennlp.reports.tables import replay_table
    from fiesta_allennlp.reports.words import replay_in_words
    from fiesta_allennlp.selection.summary import write_json

    with repetition_bar(console, settings.repetitions) as advance:
        result = replay(settings, on_repetitions=advance)
    if not result.repetitions:
        raise KeyboardInterrupt
    summary = summarise_replay(result)
    console.print(replay_table(summary))
    console.print(replay_in_words(summary), markup=False, soft_wrap=True)
    if args.output is not None:
        write_json(summary, args.output)
    if args.figure is not None:
        from fiesta_allennlp.reports.figures.drawing import draw_evaluations

        draw_evaluations([repetition.num_evaluations for repetition in result.repetitions], summary, args.figure)
    return EXIT_INTERRUPTED if result.interrupted else 0


def _check_files(args: argparse.Namespace) -> None:
    """Refuse files that could not be written, before the work.

    Raises:
        ConfigError: with the option and the path.
    """
    check_output("output", args.output, (".json",))
    if args.figure is not None:
        from fiesta_allennlp.reports.figures.drawing import FIGURE_ENDINGS

        check_output("figure", args.figure, FIGURE_ENDINGS)
