"""
The `fiesta-documents` subcommand finds the best of several systems that were trained already, with few queries:

    allennlp fiesta-documents a=a.tar.gz b=b.tar.gz c=service.jsonnet --documents gold.jsonl -s runs/first
"""

import argparse
import shlex
from pathlib import Path
from typing import Any, Dict

from allennlp.commands.subcommand import Subcommand
from rich.console import Console

from fiesta_allennlp.commands.options import add_option
from fiesta_allennlp.commands.running import EXIT_INTERRUPTED, EXIT_NO_DECISION, run_and_exit


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
    parser.add_argument("-s", "--serialization-dir", type=Path, help="directory for the run; needed unless --dry-run")
    parser.add_argument("-r", "--recover", action="store_true", help="go on with the selection in the directory")
    parser.add_argument(
        "-f", "--force", action="store_true", help="delete the selection in the directory first; its answers are kept"
    )
    parser.add_argument("--dry-run", action="store_true", help="check everything, open every system once, ask nothing")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    parser.add_argument("--config", type=Path, help="a Jsonnet file with any of the options below; flags win over it")
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
        "dirichlet_f_measure (default), or one of fiesta-select's; or a JSON object",
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


def given_settings(args: argparse.Namespace) -> Dict[str, Any]:
    """What the user gave: the file's values, and above them the flags that were typed."""
    from dataclasses import fields

    from fiesta_allennlp.document_settings import DocumentSettings
    from fiesta_allennlp.settings import overlay, settings_from_file

    given = settings_from_file(args.config, DocumentSettings) if args.config is not None else {}
    typed = {f.name: getattr(args, f.name) for f in fields(DocumentSettings) if hasattr(args, f.name)}
    return overlay(given, {name: value for name, value in typed.items() if value not in ([], ())}, of=DocumentSettings)


def documents_from_args(args: argparse.Namespace) -> None:
    """Run the command and end the process with its status: 0 decided or undecided as asked, 1 no comparison was
    possible, 2 something to mend, 130 interrupted."""
    run_and_exit(
        lambda console: _dry_run(args, console) if args.dry_run else _select(args, console),
        debug=args.debug,
        interrupted=lambda: _how_to_go_on(args),
    )


def _select(args: argparse.Namespace, console: Console) -> int:
    from fiesta_allennlp.document_run import select_system
    from fiesta_allennlp.errors import ConfigError
    from fiesta_allennlp.reports.documents import documents_in_words, documents_table

    if args.serialization_dir is None:
        raise ConfigError("-s is missing: give the directory in which the selection is to be kept.")
    summary = select_system(
        given_settings(args), args.serialization_dir, console=console, recover=args.recover, force=args.force
    )
    console.print(documents_table(summary))
    for candidate in summary["candidates"]:
        for reason in candidate["failure_reasons"]:
            console.print(f"failed: {reason}", markup=False, soft_wrap=True)
        if candidate["withdrawn"]:
            reason = f"{candidate['name']}: {candidate['withdrawn_because']}"
            console.print(f"withdrawn: {reason}", markup=False, soft_wrap=True)
    console.print(documents_in_words(summary), markup=False, soft_wrap=True)
    if summary["stopped_by"] == "interrupted":
        console.print(f"Go on with: {_recover(args)}", markup=False, soft_wrap=True)
        return EXIT_INTERRUPTED
    return EXIT_NO_DECISION if summary["stopped_by"] == "failures" else 0


def _dry_run(args: argparse.Namespace, console: Console) -> int:
    from fiesta_allennlp.document_preparing import plan_documents
    from fiesta_allennlp.document_settings import DocumentSettings
    from fiesta_allennlp.reports.documents import show_plan

    plan = plan_documents(DocumentSettings(**given_settings(args)), args.serialization_dir, console)
    show_plan(plan, console)
    return 0


def _how_to_go_on(args: argparse.Namespace) -> str:
    """What to say of an interruption before the first query, or after the last one."""
    from fiesta_allennlp.run_directory import RunDirectory

    if args.dry_run or args.serialization_dir is None or not RunDirectory(args.serialization_dir).store.exists():
        return "Interrupted before the first query. Start it again."
    return f"Interrupted; no answer is lost. Go on with: {_recover(args)}"


def _recover(args: argparse.Namespace) -> str:
    """The command that goes on with the selection."""
    return f"{args.program} -s {shlex.quote(str(args.serialization_dir))} --recover"
