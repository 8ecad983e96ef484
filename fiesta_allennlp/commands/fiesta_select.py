"""
The `fiesta-select` subcommand finds the best of several AllenNLP configs with as few trainings as it can:

    allennlp fiesta-select a.jsonnet b.jsonnet c.jsonnet -s runs/first
"""

import argparse

from rich.console import Console

from fiesta_allennlp.commands.options import add_directory, add_given, directory_of, explain_minus, typed_settings
from fiesta_allennlp.commands.running import how_to_go_on, load, recover_command, run_and_exit, say_failures, status_of

DESCRIPTION = """Train the candidates on fresh random splits with fresh seeds, as often as it takes to know
the best one, and stop. Everything is kept in the directory given with -s; a selection that was interrupted
goes on with --recover. Where an option is not given, its default holds, or, with --recover, what was given
at the start."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Every option. Those that are settings have no default here, so that only what was typed is given."""
    from fiesta_allennlp.selection.options import add_options
    from fiesta_allennlp.trainings.settings import Settings

    parser.allow_abbrev = False
    add_given(parser, Settings, "candidates", nargs="*")
    add_directory(
        parser,
        force="delete the selection in the directory first",
        dry_run="check everything, say what would be done, train nothing",
    )
    parser.add_argument(
        "--allow-removed",
        action="store_true",
        help="with --recover: withdraw the candidates that are not given any more, and keep their evaluations",
    )
    add_options(parser, Settings)
    explain_minus(parser, "--metric", "-perplexity")


def select_from_args(args: argparse.Namespace) -> None:
    """Run the command and end the process with its status: 0 decided or undecided as asked, 1 no comparison was
    possible, 2 something to mend, 130 interrupted."""
    run_and_exit(
        lambda console: _dry_run(args, console) if args.dry_run else _select(args, console),
        debug=args.debug,
        interrupted=lambda: how_to_go_on(args, step="training", kept="nothing that finished is lost"),
    )


def _select(args: argparse.Namespace, console: Console) -> int:
    from fiesta_allennlp.trainings.settings import Settings

    typed, directory = typed_settings(args, Settings), directory_of(args)
    load(args, plugin=True)
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
    for further in filter(None, (scope_in_words(summary), savings_in_words(summary))):
        console.print(further, markup=False, soft_wrap=True)
    if summary["stopped_by"] == "max_hours":
        larger = f"Go on with a larger total: {recover_command(args)} --max-hours HOURS"
        console.print(larger, markup=False, soft_wrap=True)
    return status_of(summary, args, console)


def _dry_run(args: argparse.Namespace, console: Console) -> int:
    from fiesta_allennlp.trainings.settings import Settings, merge

    settings = merge(typed_settings(args, Settings))
    load(args, plugin=True)
    from fiesta_allennlp.reports.tables import plan_table
    from fiesta_allennlp.trainings.select import plan

    found = plan(settings, console)
    plan_table(found, console)
    return 0
