"""The commands that read a selection: `fiesta-status` and `fiesta-report`."""

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fiesta_allennlp.commands.command import FiestaCommand
from fiesta_allennlp.commands.exit_handling import load, say
from fiesta_allennlp.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

SECONDS_BETWEEN = 10.0


class StatusCommand(FiestaCommand):
    help = "show how a selection stands that runs elsewhere"
    description = """Print the table of a selection or a search, running or not. The command locks and changes
nothing in its directory."""
    examples = """examples:
  %(prog)s runs/first
  %(prog)s runs/first --follow"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("directory", type=Path, metavar="DIR", help="the directory of the selection or the search")
        parser.add_argument("--follow", action="store_true", help="print it again and again until the selection ends")
        parser.add_argument(
            "--every",
            type=float,
            default=SECONDS_BETWEEN,
            metavar="SECONDS",
            help=f"with --follow: the time between two tables (default {SECONDS_BETWEEN:g})",
        )

    def work(self, args: argparse.Namespace, console: "Console") -> int:
        """Print the table, and again until the selection ends if asked to follow it."""
        if not args.every > 0:
            raise ConfigError(f"--every must be above 0 but got {args.every:g}.")
        load(args)
        from fiesta_allennlp.reports.status import status_of

        while True:
            found = status_of(args.directory)
            console.print(found.table)
            say(found.sentences, console)
            if not args.follow or not found.running:
                return 0
            time.sleep(args.every)

    def interrupted(self, args: argparse.Namespace) -> str:
        return "The selection is not affected."


class ReportCommand(FiestaCommand):
    help = "write the report of a selection"
    description = """Write an HTML report, figures, LaTeX and Markdown tables and a CSV file of a finished or running
selection, or of a table of scores. The command locks and changes nothing in the selection."""
    examples = """examples:
  %(prog)s runs/first
  %(prog)s runs/first --compare cnn lstm"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        from fiesta_allennlp.replays.settings import columns_of, separated

        parser.add_argument(
            "source",
            nargs="?",
            metavar="DIR|SCORES.json|SCORES.csv",
            help="the directory of a selection, or a table of scores",
        )
        parser.add_argument(
            "--output",
            type=Path,
            metavar="DIR",
            help="directory of the report (default: DIR/report, NAME-report next to a table, or compare-A-B)",
        )
        parser.add_argument(
            "--compare",
            nargs=2,
            metavar=("A", "B"),
            help="report on two candidates alone: give their names; or PATH:NAME for a candidate of another selection "
            "or table; or the PATH of a table with one candidate",
        )
        parser.add_argument(
            "--paired",
            action="store_true",
            help="with --compare of two tables: take splits of equal name as the same split",
        )
        parser.add_argument(
            "--evaluations-per-split",
            type=int,
            metavar="N",
            help="in a JSON file, this number of consecutive scores of each candidate shares a split (default 1)",
        )
        parser.add_argument(
            "--columns",
            type=columns_of,
            metavar="NAME=COLUMN,...",
            help="for a CSV file: columns that it names otherwise, such as candidate=model,score=test_f1,seed=seed. "
            "Without a column split, all runs share one official split",
        )
        parser.add_argument(
            "--done",
            type=separated,
            default=(),
            metavar="A,B,...",
            help="for a table of scores: candidates that get no further runs, such as a published model",
        )
        parser.add_argument(
            "--minimise",
            action="store_true",
            help="for a table of scores: lower is better; in a CSV file, -NAME in a column `metric` has the same "
            "effect",
        )
        parser.add_argument(
            "--long-table",
            action="store_true",
            help="write all columns and the differences into table.tex (default: n, mean, sd and P(best))",
        )
        parser.add_argument(
            "--belief", metavar="NAME|JSON", help="for a table of scores: model of the scores (default split_paired)"
        )

    def work(self, args: argparse.Namespace, console: "Console") -> int:
        """Write the report."""
        load(args)
        from fiesta_allennlp.reports.report import default_output, report

        output = args.output or default_output(args.source, args.compare)
        made = report(
            args.source,
            output=output,
            compare=args.compare,
            evaluations_per_split=args.evaluations_per_split,
            belief=args.belief,
            paired=args.paired,
            minimise=args.minimise,
            columns=args.columns,
            done=args.done,
            long_table=args.long_table,
        )
        say([*made.decision, f"The report is {output / 'report.html'}, with more files beside it."], console)
        return 0
