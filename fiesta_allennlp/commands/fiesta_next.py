"""
The `fiesta-next` subcommand names the next runs for a table of scores to which others add their runs:

    allennlp fiesta-next scores.csv --workers 4
"""

import argparse
import csv
import json
import sys
from typing import TYPE_CHECKING, Any, Dict, Iterator

from fiesta_allennlp.commands.exit_handling import load
from fiesta_allennlp.commands.parsing import add_given

if TYPE_CHECKING:
    from rich.console import Console

    from fiesta_allennlp.replays.next_runs import NextRuns

DESCRIPTION = """Read a table of scores and print who leads, with which probability, and the next runs to make; or that
the selection is decided. You make the runs by your own means and add a row for each. The command stores nothing."""

EXAMPLES = """examples:
  %(prog)s scores.csv --workers 4
  %(prog)s scores.csv --candidates cnn,lstm,bert --format csv
  %(prog)s wandb.csv --columns candidate=model,score=test_f1,seed=seed"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Every option. Those that are settings have no default here, so that only what was typed is given."""
    from fiesta_allennlp.replays.next_settings import NextSettings
    from fiesta_allennlp.selection.options import add_options
    from fiesta_allennlp.selection.settings import RESOURCES

    add_given(parser, NextSettings, "scores")
    resources = add_options(parser, NextSettings)[RESOURCES]
    resources.add_argument(
        "--format",
        choices=("text", "json", "csv"),
        default="text",
        help="text (default); json; or csv, one line candidate,split,seed for each run and nothing once it has ended",
    )


def interrupted(args: argparse.Namespace) -> str:
    return "Interrupted; run it again."


def work(args: argparse.Namespace, console: "Console") -> int:
    """Run the command. Returns its status, 0."""
    from fiesta_allennlp.replays.next_settings import NextSettings
    from fiesta_allennlp.selection.options import typed_options

    settings = NextSettings(**{"scores": args.scores, **typed_options(args, NextSettings)})
    load(args)
    from fiesta_allennlp.replays.next_runs import next_runs

    found = next_runs(settings)
    if args.format == "json":
        console.print(json.dumps(as_json(found), indent=2), markup=False, soft_wrap=True)
    elif args.format == "csv":
        csv.writer(sys.stdout, lineterminator="\n").writerows(
            (run.candidate, run.split, run.seed) for run in found.runs
        )
    else:
        _show(found, console)
    return 0


def as_json(found: "NextRuns") -> Dict[str, Any]:
    """The answer as plain data; `stopped_by` is null while runs are needed."""
    decision, remaining = found.decision, found.remaining
    return {
        "leading": decision.best,
        "stopped_by": decision.stopped_by,
        "prob_best": dict(decision.prob_best),
        "num_runs": len(found.history.evaluations),
        "num_pending": len(found.history.pending),
        "splits": found.splits,
        "notes": list(found.notes),
        "remaining": None if remaining is None else {"low": remaining.low, "high": remaining.high},
        "next": [{"candidate": run.candidate, "split": run.split, "seed": run.seed} for run in found.runs],
    }


def _show(found: "NextRuns", console: "Console") -> None:
    from rich.markup import escape

    from fiesta_allennlp.listeners.progress import number_table
    from fiesta_allennlp.selection.summary import number_text, summarise_candidate

    table = number_table("candidate", ("runs", "pending", "failed", "mean", "sd", "P(best)"))
    for name in found.history.candidates:
        told = summarise_candidate(found.history, found.decision, name)
        counts = (told.num_evaluations, found.history.num_pending(name), told.failures)
        table.add_row(escape(name), *map(str, counts), number_text(told.mean), number_text(told.sd), told.standing)
    console.print(table)
    for sentence in sentences(found):
        console.print(sentence, markup=False, soft_wrap=True)


def sentences(found: "NextRuns") -> Iterator[str]:
    """The answer in words, a sentence or a run on each line."""
    from fiesta_allennlp.listeners.progress import remaining_text
    from fiesta_allennlp.selection.summary import probability_text

    decision, target = found.decision, found.confidence
    if decision.best is None:
        yield "P(best) is not available yet."
    else:
        aim = "" if target is None else f", target {target:g}"
        prob = decision.prob_best.get(decision.best)
        sure = "" if prob is None else f" (P(best) {probability_text(prob)}{aim})"
        verb = "is the best" if decision.stopped_by == "confidence" else "leads"
        yield f"{decision.best} {verb}{sure}{remaining_text(found.remaining)}."
    yield from found.notes
    if decision.stopped_by is not None:
        yield f"Stop: the selection ended by {decision.stopped_by}. No further run is needed."
    elif not found.runs:
        yield f"Wait: {len(found.history.pending)} runs have no score yet."
    else:
        yield "Run next:"
    for run in found.runs:
        yield f"  {run.candidate}" + (f", split {run.split}" if run.split else "") + f", seed {run.seed}"
