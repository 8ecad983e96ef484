"""
The `fiesta-replay` subcommand repeats a selection over released scores, many times and without a training:

    allennlp fiesta-replay scores.json --confidence 0.95
"""

import argparse
from pathlib import Path

from rich.console import Console

from fiesta_allennlp.commands.options import add_debug, add_given, check_output
from fiesta_allennlp.commands.running import load, run_and_exit
from fiesta_allennlp.commands.statuses import EXIT_INTERRUPTED

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

    parser.allow_abbrev = False
    add_given(parser, ReplaySettings, "scores")
    work = add_options(parser, ReplaySettings)[RESOURCES]
    work.add_argument("--output", type=Path, metavar="FILE.json", help="write the result to this file")
    work.add_argument("--figure", type=Path, metavar="FILE.png|pdf", help="draw a figure of the number of runs")
    add_debug(work)


def replay_from_args(args: argparse.Namespace) -> None:
    """Run the command and end the process with its status: 0 done, 2 invalid input, 130 interrupted."""
    run_and_exit(
        lambda console: _replay(args, console),
        debug=args.debug,
        interrupted=lambda: "Interrupted; no repetition has finished.",
    )


def _replay(args: argparse.Namespace, console: Console) -> int:
    from fiesta_allennlp.replays.settings import ReplaySettings
    from fiesta_allennlp.selection.options import typed_options

    settings = ReplaySettings(**typed_options(args, ReplaySettings))
    _check_files(args)
    load(args, plugin=False)
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
    from fiesta_allennlp.reports.figures.drawing import FIGURE_ENDINGS

    check_output("output", args.output, (".json",))
    check_output("figure", args.figure, FIGURE_ENDINGS)
