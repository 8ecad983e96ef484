"""
The `fiesta-lookup` subcommand tells how quickly a searcher finds the best of many configs, on runs that have finished:

    allennlp fiesta-lookup runs.csv --inputs lr:log,layers,optimizer --objective f1
"""

import argparse
from pathlib import Path

from rich.console import Console

from fiesta_allennlp.commands.options import add_debug, add_given, check_output, explain_minus
from fiesta_allennlp.commands.running import load, run_and_exit
from fiesta_allennlp.commands.statuses import EXIT_INTERRUPTED

DESCRIPTION = """Search a table of finished runs many times, without training, and print how many runs a searcher
needs to find the best one, compared with random search."""

EXAMPLES = """examples:
  %(prog)s runs.csv --inputs lr:log,layers,optimizer --objective f1
  %(prog)s hpo_nmt/zh-en --searcher random"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Every option. Those that are settings have no default here, so that only what was typed is given."""
    from fiesta_allennlp.searches.lookup_settings import LookupSettings
    from fiesta_allennlp.selection.options import add_options
    from fiesta_allennlp.selection.settings import RESOURCES

    parser.allow_abbrev = False
    explain_minus(parser, "--objective", "-loss")
    add_given(parser, LookupSettings, "table")
    work = add_options(parser, LookupSettings)[RESOURCES]
    work.add_argument("--output", type=Path, metavar="FILE.json", help="write the result to this file")
    add_debug(work)


def lookup_from_args(args: argparse.Namespace) -> None:
    """Run the command and end the process with its status: 0 done, 2 invalid input, 130 interrupted."""
    run_and_exit(
        lambda console: _look_up(args, console),
        debug=args.debug,
        interrupted=lambda: "Interrupted; no table is done.",
    )


def _look_up(args: argparse.Namespace, console: Console) -> int:
    from fiesta_allennlp.searches.lookup_settings import LookupSettings
    from fiesta_allennlp.selection.options import typed_options

    settings = LookupSettings(**typed_options(args, LookupSettings))
    check_output("output", args.output, (".json",))
    load(args, plugin=False)
    import fiesta_allennlp.searches.searchers  # noqa: F401
    from fiesta_allennlp.listeners.progress import repetition_bar
    from fiesta_allennlp.reports.lookup import lookup_content, lookup_in_words, lookup_table
    from fiesta_allennlp.searches.lookup import look_up
    from fiesta_allennlp.selection.summary import write_json

    with repetition_bar(console, settings.trials) as advance:
        result = look_up(settings, on_trials=advance)
    if not result.measured:
        raise KeyboardInterrupt
    console.print(lookup_table(result))
    for line in lookup_in_words(result):
        console.print(line, markup=False, soft_wrap=True)
    if args.output is not None:
        write_json(lookup_content(result), args.output)
    return EXIT_INTERRUPTED if result.interrupted else 0
