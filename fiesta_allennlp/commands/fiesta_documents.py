"""
The `fiesta-documents` subcommand finds the best of several systems that were trained already, with few queries:

    allennlp fiesta-documents a=a.tar.gz b=b.tar.gz c=service.jsonnet --documents gold.jsonl -s runs/first
"""

import argparse
from typing import TYPE_CHECKING

from fiesta_allennlp.commands.exit_handling import how_to_go_on, load, say_failures, status_of
from fiesta_allennlp.commands.parsing import add_directory, add_given, directory_of, typed_settings

if TYPE_CHECKING:
    from rich.console import Console

DESCRIPTION = """Query trained systems about documents in random order until one system is the best with the
target confidence. Every answer is kept and reused, so you pay for each only once. --recover resumes an
interrupted selection with the options of its start."""

EXAMPLES = """examples:
  %(prog)s a=a.tar.gz b=b.tar.gz c=service.jsonnet --documents gold.jsonl -s runs/first
  %(prog)s -s runs/first --recover"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Every option. Those that are settings have no default here, so that only what was typed is given."""
    from fiesta_allennlp.documents.settings import DocumentSettings
    from fiesta_allennlp.selection.options import add_options

    add_given(parser, DocumentSettings, "systems", nargs="*")
    add_directory(
        parser,
        force="delete the selection in the directory first; its answers are kept",
        dry_run="check everything, open every system once, query nothing",
    )
    add_options(parser, DocumentSettings)


def work(args: argparse.Namespace, console: "Console") -> int:
    """Run the command. Returns its status: 0 decided or inconclusive, 1 no comparison was possible, 2 invalid input."""
    return _dry_run(args, console) if args.dry_run else _select(args, console)


def interrupted(args: argparse.Namespace) -> str:
    return how_to_go_on(args, step="query", kept="no answer is lost")


def _select(args: argparse.Namespace, console: "Console") -> int:
    from fiesta_allennlp.documents.settings import DocumentSettings

    typed, directory = typed_settings(args, DocumentSettings), directory_of(args)
    load(args)
    from fiesta_allennlp.documents.select import select_system
    from fiesta_allennlp.reports.tables import documents_table
    from fiesta_allennlp.reports.words import selection_in_words

    summary = select_system(
        typed,
        directory,
        console=console,
        recover=args.recover,
        force=args.force,
    )
    console.print(documents_table(summary))
    say_failures(summary, console)
    console.print("\n".join(selection_in_words(summary)), markup=False, soft_wrap=True)
    return status_of(summary, args, console)


def _dry_run(args: argparse.Namespace, console: "Console") -> int:
    from fiesta_allennlp.documents.settings import DocumentSettings

    settings = DocumentSettings(**typed_settings(args, DocumentSettings))
    load(args)
    from fiesta_allennlp.documents.select import plan_documents
    from fiesta_allennlp.reports.tables import show_plan

    plan = plan_documents(settings, args.serialization_dir, console)
    show_plan(plan, console)
    return 0
