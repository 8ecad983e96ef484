"""
The `fiesta-select` subcommand finds the best of several AllenNLP configs with as few trainings as it can:

    allennlp fiesta-select a.jsonnet b.jsonnet c.jsonnet -s runs/first
"""

import argparse
from typing import TYPE_CHECKING

from fiesta_allennlp.commands.exit_handling import EXIT_NO_DECISION, how_to_go_on, load, say_failures, status_of
from fiesta_allennlp.commands.parsing import add_directory, add_given, directory_of, explain_minus, typed_settings

if TYPE_CHECKING:
    from rich.console import Console

DESCRIPTION = """Train the candidates on fresh random splits with fresh seeds until one of them is the best with
the target confidence. The directory given with -s keeps everything, and --recover resumes an interrupted
selection with the options of its start."""

EXAMPLES = """examples:
  %(prog)s cnn.jsonnet lstm.jsonnet -s runs/first --metric accuracy --dry-run
  %(prog)s cnn.jsonnet lstm.jsonnet --metric accuracy --trial
  %(prog)s cnn.jsonnet lstm.jsonnet -s runs/first --metric accuracy --workers 2
  %(prog)s 'a=python train.py --arch a {train} {test} {seed}' 'b=python train.py --arch b {train} {test} {seed}' \\
      --data train.jsonl --data test.jsonl --metric f1 -s runs/programs
  %(prog)s -s runs/first --recover"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Every option. Those that are settings have no default here, so that only what was typed is given."""
    from fiesta_allennlp.selection.options import add_options
    from fiesta_allennlp.trainings.settings import Settings

    add_given(parser, Settings, "candidates", nargs="*")
    add_directory(
        parser,
        force="delete the selection in the directory first",
        dry_run="check everything and print the plan, without a run",
    )
    parser.add_argument(
        "--trial",
        action="store_true",
        help="make one short run of each candidate (200 records of a program, one epoch of a config), print its score, "
        "seconds and memory, and keep nothing",
    )
    parser.add_argument(
        "--allow-removed",
        action="store_true",
        help="with --recover: remove the candidates that are no longer given, and keep their runs",
    )
    add_options(parser, Settings)
    explain_minus(parser, "--metric", "-perplexity")


def work(args: argparse.Namespace, console: "Console") -> int:
    """Run the command. Returns its status: 0 decided or inconclusive, 1 no comparison was possible, 2 invalid input."""
    if args.trial:
        return _trial(args, console)
    return _dry_run(args, console) if args.dry_run else _select(args, console)


def interrupted(args: argparse.Namespace) -> str:
    return how_to_go_on(args, step="run", kept="nothing that finished is lost")


def _select(args: argparse.Namespace, console: "Console") -> int:
    from fiesta_allennlp.trainings.settings import Settings

    typed, directory = typed_settings(args, Settings), directory_of(args)
    load(args)
    from fiesta_allennlp.reports.tables import summary_table
    from fiesta_allennlp.reports.words import in_words, savings_in_words, scope_in_words
    from fiesta_allennlp.trainings.select import select

    summary = select(
        typed,
        directory,
        console=console,
        recover=args.recover,
        force=args.force,
        allow_removed=args.allow_removed,
    )
    console.print(summary_table(summary))
    say_failures(summary, console)
    console.print(in_words(summary), markup=False, soft_wrap=True)
    for further in filter(None, (summary["scored_on"], scope_in_words(summary), savings_in_words(summary))):
        console.print(further, markup=False, soft_wrap=True)
    return status_of(summary, args, console)


def _dry_run(args: argparse.Namespace, console: "Console") -> int:
    from fiesta_allennlp.trainings.settings import Settings, merge

    settings = merge(typed_settings(args, Settings))
    load(args)
    from fiesta_allennlp.reports.tables import plan_table
    from fiesta_allennlp.trainings.dry_run import plan

    found = plan(settings, console)
    plan_table(found, console, planner=args.program.replace("select", "plan"))
    return 0


def _trial(args: argparse.Namespace, console: "Console") -> int:
    from fiesta_allennlp.trainings.settings import Settings, merge

    settings = merge(typed_settings(args, Settings))
    load(args)
    from rich.markup import escape

    from fiesta_allennlp.listeners.progress import number_table
    from fiesta_allennlp.records import Failure
    from fiesta_allennlp.selection.summary import number_text
    from fiesta_allennlp.trainings.dry_run import PEAK_MEMORY, trial

    outcomes = list(trial(settings, console))
    failed = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    table = number_table("candidate", (settings.scored_by.name, "seconds", "memory (GiB)"))
    for outcome in outcomes:
        name, seconds = escape(outcome.request.candidate), number_text(outcome.seconds, 1)
        if isinstance(outcome, Failure):
            table.add_row(name, "failed", seconds, "-")
        else:
            table.add_row(name, number_text(outcome.score), seconds, number_text(outcome.metrics[PEAK_MEMORY], 2))
    console.print(table)
    for failure in failed:
        console.print(f"failed: {failure.request.candidate}: {failure.error}", markup=False, soft_wrap=True)
    console.print("Each made one short run, so its score says little. Nothing was kept.", soft_wrap=True)
    return EXIT_NO_DECISION if failed else 0
