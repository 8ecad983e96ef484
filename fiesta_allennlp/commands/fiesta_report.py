"""
The `fiesta-report` subcommand tells what a selection came to, or how it stands, for people and papers:

    allennlp fiesta-report runs/first
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from fiesta_allennlp.commands.exit_handling import load

if TYPE_CHECKING:
    from rich.console import Console

DESCRIPTION = """Write an HTML report, figures, LaTeX and Markdown tables and a CSV file of a finished or running
selection, or of a table of scores. The command locks and changes nothing in the selection."""

EXAMPLES = """examples:
  %(prog)s runs/first
  %(prog)s runs/first --compare cnn lstm"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from fiesta_allennlp.replays.settings import columns_of, separated

    parser.add_argument(
        "source",
        nargs="?",
        metavar="DIR|SCORES.json|SCORES.csv",
        help="the directory of a selection, or a table of scores in the form of fiesta-replay",
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
        help="report on two candidates alone: give their names; or PATH:NAME for a candidate of another selection or "
        "table; or the PATH of a table with one candidate",
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
        help="for a table of scores: lower is better; in a CSV file, -NAME in a column `metric` has the same effect",
    )
    parser.add_argument(
        "--belief", metavar="NAME|JSON", help="for a table of scores: model of the scores (default split_paired)"
    )


def interrupted(args: argparse.Namespace) -> str:
    return "Interrupted; run it again."


def work(args: argparse.Namespace, console: "Console") -> int:
    """Run the command. Returns its status, 0."""
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
    )
    for sentence in made.decision:
        console.print(sentence, markup=False, soft_wrap=True)
    console.print(f"The report is {output / 'report.html'}, with more files beside it.", markup=False, soft_wrap=True)
    return 0
