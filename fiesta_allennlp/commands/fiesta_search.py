"""
The `fiesta-search` subcommand screens many configs once and selects among the best:

    allennlp fiesta-search template.jsonnet space.json -s runs/search --configs 40
"""

import argparse

from rich.console import Console

from fiesta_allennlp.commands.options import add_directory, add_given, directory_of, explain_minus, typed_settings
from fiesta_allennlp.commands.running import how_to_go_on, load, run_and_exit, say_failures, status_of

DESCRIPTION = """Screen many configs with one run each, scored on the validation set. Then select among the best few
with fresh runs, as fiesta-select does. The directory given with -s keeps both stages, and --recover resumes an
interrupted search in whichever stage it was."""

EXAMPLES = """examples:
  %(prog)s template.jsonnet space.json -s runs/search --configs 40 --dry-run
  %(prog)s template.jsonnet space.json -s runs/search --configs 40 --finalists 4
  %(prog)s template.jsonnet space.json -s runs/search --runs 240 --workers 2
  %(prog)s -s runs/search --recover"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Every option. Those that are settings have no default here, so that only what was typed is given."""
    from fiesta_allennlp.searches.search_settings import SearchSettings
    from fiesta_allennlp.selection.options import add_options

    parser.allow_abbrev = False
    add_given(parser, SearchSettings, "template", nargs="?", default=argparse.SUPPRESS)
    add_given(parser, SearchSettings, "space", nargs="?", default=argparse.SUPPRESS)
    add_directory(
        parser,
        force="delete the search or selection in the directory first",
        dry_run="check everything and print the plan, without a run",
    )
    add_options(parser, SearchSettings)
    explain_minus(parser, "--metric", "-perplexity")


def search_from_args(args: argparse.Namespace) -> None:
    """Run the command and end the process with its status: 0 decided or inconclusive, 1 no comparison was possible, 2
    invalid input, 130 interrupted."""
    run_and_exit(
        lambda console: _dry_run(args, console) if args.dry_run else _search(args, console),
        debug=args.debug,
        interrupted=lambda: how_to_go_on(args, step="run", kept="nothing that finished is lost"),
    )


def _search(args: argparse.Namespace, console: Console) -> int:
    from fiesta_allennlp.searches.search_settings import SearchSettings

    typed, directory = typed_settings(args, SearchSettings), directory_of(args)
    load(args, plugin=True)
    from fiesta_allennlp.reports.search import search_in_words
    from fiesta_allennlp.reports.tables import summary_table
    from fiesta_allennlp.reports.words import in_words
    from fiesta_allennlp.searches.search import search

    found = search(typed, directory, console=console, recover=args.recover, force=args.force)
    if found.selection is not None:
        console.print(summary_table(found.selection))
        say_failures(found.selection, console)
        console.print(in_words(found.selection), markup=False, soft_wrap=True)
    for sentence in search_in_words(found):
        console.print(sentence, markup=False, soft_wrap=True)
    return status_of(found.last, args, console)


def _dry_run(args: argparse.Namespace, console: Console) -> int:
    from fiesta_allennlp.searches.search_settings import SearchSettings
    from fiesta_allennlp.selection.settings import overlay

    settings = SearchSettings(**overlay(typed_settings(args, SearchSettings), of=SearchSettings))
    load(args, plugin=True)
    from fiesta_allennlp.reports.search import search_plan_in_words
    from fiesta_allennlp.searches.search import plan_search

    for sentence in search_plan_in_words(plan_search(settings, console)):
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)
    return 0
