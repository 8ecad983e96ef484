"""
The `fiesta-documents` subcommand finds the best of several systems that were trained already, with few queries:

    allennlp fiesta-documents a=a.tar.gz b=b.tar.gz c=service.jsonnet --documents gold.jsonl -s runs/first
"""

import argparse
from typing import Any

from allennlp.commands.subcommand import Subcommand
from rich.console import Console

from fiesta_allennlp.commands.options import add_option
from fiesta_allennlp.commands.running import run_and_exit
from fiesta_allennlp.commands.selecting import (
    add_directory,
    directory_of,
    how_to_go_on,
    say_failures,
    status_of,
    typed_settings,
)


@Subcommand.register("fiesta-documents")
class FiestaDocuments(Subcommand):
    def add_subparser(self, parser: Any) -> argparse.ArgumentParser:
        description = """Put documents to systems that were trained already, one after the other in random order, and
        stop as soon as the best system is known. Every answer is kept, so that none is paid for twice. Where an option
        is not given, its default holds, or, with --recover, what was given at the start."""
        subparser = parser.add_parser(
            self.name, description=description, help="Find the best of several trained systems."
        )
        add_arguments(subparser)
        subparser.set_defaults(func=documents_from_args, program="allennlp fiesta-documents")
        return subparser


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Every option. Those that are settings have no default here, so that only what was typed is given."""
    parser.allow_abbrev = False
    parser.add_argument(
        "systems",
        nargs="*",
        metavar="SYSTEM",
        help="two or more of NAME=model.tar.gz, NAME=predictions.jsonl, NAME=http://host/path, NAME=system.jsonnet",
    )
    add_directory(
        parser,
        force="delete the selection in the directory first; its answers are kept",
        dry_run="check everything, open every system once, ask nothing",
    )
    _add_documents(parser.add_argument_group("which documents, and how to score"))
    _add_choosing(parser.add_argument_group("how to choose"))
    _add_working(parser.add_argument_group("how to work"))


def _add_documents(group: Any) -> None:
    add_option(group, "--documents", "JSONL: a document with its gold annotation in each line", metavar="FILE.jsonl")
    add_option(group, "--task", "classification (default) or spans", metavar="classification|spans")
    add_option(group, "--positive-label", "the label whose F-measure counts; without it, macro-F over all", metavar="L")
    add_option(group, "--metric", "accuracy, in place of the F-measure; for classification")
    add_option(group, "--fields", "what the file calls id, items, label, tags, spans, such as id=key,label=sentiment")
    add_option(
        group,
        "--documents-order",
        "shared (default): all systems get the documents in one random order; independent: each in its own, as in the "
        "paper",
        metavar="shared|independent",
    )
    add_option(group, "--batch-size", "documents of one evaluation (default 1)", type=int)


def _add_choosing(group: Any) -> None:
    add_option(
        group,
        "--strategy",
        "ttts (default), bts, thompson, non_adaptive_fc; with --budget sequential_halving (default) or "
        "non_adaptive_fb; or a JSON object with a `type`",
        metavar="NAME|JSON",
    )
    add_option(
        group,
        "--belief",
        "by default dirichlet_f_measure with a learned concentration; or a name alone, or a JSON object",
        metavar="NAME|JSON",
    )
    add_option(group, "--confidence", "stop when the best is known with this probability (default 0.95)", type=float)
    add_option(group, "--stop", "bayesian (default), or glr, which is strict; or a JSON object", metavar="NAME|JSON")
    add_option(
        group, "--budget", "make so many evaluations in all and name the best, in place of --confidence", type=int
    )
    add_option(group, "--margin", "be content with a system this near to the best (default 0)", type=float)
    add_option(
        group,
        "--max-evaluations",
        "give up undecided after so many in all (default: when the documents run out)",
        type=int,
    )


def _add_working(group: Any) -> None:
    add_option(
        group,
        "--answers",
        "where answers are kept, for later selections too (default: answers.sqlite in the directory)",
        metavar="FILE",
    )
    add_option(group, "--workers", "queries at once (default 1)", type=int)
    add_option(group, "--time-limit", "seconds that an answer may take (default 60)", type=float)
    add_option(group, "--max-failures", "withdraw a system after so many failed evaluations (default 3)", type=int)
    add_option(
        group, "--entropy", "the root of all chance, to repeat a selection; by default fresh and recorded", type=int
    )


def documents_from_args(args: argparse.Namespace) -> None:
    """Run the command and end the process with its status: 0 decided or undecided as asked, 1 no comparison was
    possible, 2 something to mend, 130 interrupted."""
    run_and_exit(
        lambda console: _dry_run(args, console) if args.dry_run else _select(args, console),
        debug=args.debug,
        interrupted=lambda: how_to_go_on(args, step="query", kept="no answer is lost"),
    )


def _select(args: argparse.Namespace, console: Console) -> int:
    from fiesta_allennlp.documents.select import select_system
    from fiesta_allennlp.documents.settings import DocumentSettings
    from fiesta_allennlp.reports.tables import documents_table
    from fiesta_allennlp.reports.words import selection_in_words

    summary = select_system(
        typed_settings(args, DocumentSettings),
        directory_of(args),
        console=console,
        recover=args.recover,
        force=args.force,
    )
    console.print(documents_table(summary))
    say_failures(summary, console)
    console.print("\n".join(selection_in_words(summary)), markup=False, soft_wrap=True)
    return status_of(summary, args, console)


def _dry_run(args: argparse.Namespace, console: Console) -> int:
    from fiesta_allennlp.documents.preparing import plan_documents
    from fiesta_allennlp.documents.settings import DocumentSettings
    from fiesta_allennlp.reports.tables import show_plan

    plan = plan_documents(DocumentSettings(**typed_settings(args, DocumentSettings)), args.serialization_dir, console)
    show_plan(plan, console)
    return 0
