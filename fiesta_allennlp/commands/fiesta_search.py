"""
The `fiesta-search` subcommand screens many configs once and selects among the best:

    allennlp fiesta-search template.jsonnet space.json -s runs/search --configs 40
"""

import argparse
from typing import TYPE_CHECKING

from fiesta_allennlp.commands.exit_handling import how_to_go_on, load, say_failures, status_of
from fiesta_allennlp.commands.parsing import add_directory, add_given, directory_of, explain_minus, typed_settings

if TYPE_CHECKING:
    from rich.console import Console

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

    add_given(parser, SearchSettings, "template", nargs="?", default=argparse.SUPPRESS)
    add_given(parser, SearchSettings, "space", nargs="?", default=argparse.SUPPRESS)
    add_directory(
        parser,
        force="delete the search or selection in the directory first",
        dry_run="check everything and print the plan, without a run",
    )
    add_options(parser, SearchSettings)
    explain_minus(parser, "--metric", "-perplexity")


def work(args: argparse.Namespace, console: "Console") -> int:
    """Run the command. Returns its status: 0 decided or inconclusive, 1 no comparison was possible, 2 invalid input."""
    return _dry_run(args, console) if args.dry_run else _search(args, console)


def interrupted(args: argparse.Namespace) -> str:
    return how_to_go_on(args, step="run", kept="nothing that finished is lost")


def _search(args: argparse.Namespace, console: "Console") -> int:
    from fiesta_allennlp.searches.search_settings import SearchSettings

    typed, directory = typed_settings(args, SearchSettings), directory_of(args)
    load(args)
    from fiesta_allennlp.reports.search import search_in_words
    from fiesta_allennlp.reports.tables import summary_table
    from fiesta_allennlp.reports.words import in_words
    from fiesta_allennlp.searches.search import search

    found = search(typed, directory, console=console, recover=args.recover, force=args.force)
    if found.selection is not None:
        console.print(summary_table(found.selection))
        say_failures(found.selection, console)
        console.print(in_words(found.selection), markup=False, soft_wrap=True)
        console.print(found.selection["scored_on"], markup=False, soft_wrap=True)
    for sentence in search_in_words(found):
        console.print(sentence, markup=False, soft_wrap=True)
    return status_of(found.last, args, console)


def _dry_run(args: argparse.Namespace, console: "Console") -> int:
    from fiesta_allennlp.searches.search_settings import SearchSettings
    from fiesta_allennlp.selection.settings import overlay

    settings = SearchSettings(**overlay(typed_settings(args, SearchSettings), of=SearchSettings))
    load(args)
    from fiesta_allennlp.reports.search import search_plan_in_words
    from fiesta_allennlp.searches.search import plan_search

    for sentence in search_plan_in_words(plan_search(settings, console)):
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)
    return 0
