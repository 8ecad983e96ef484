"""
The `fiesta-select` subcommand finds the best of several AllenNLP configs with as few trainings as it can:

    allennlp fiesta-select a.jsonnet b.jsonnet c.jsonnet -s runs/first
"""

import argparse
from typing import Any, Union

from allennlp.commands.subcommand import Subcommand
from rich.console import Console

from fiesta_allennlp.commands.options import add_choosing, add_option, add_splits
from fiesta_allennlp.commands.running import run_and_exit
from fiesta_allennlp.commands.selecting import (
    add_directory,
    directory_of,
    how_to_go_on,
    recover_command,
    say_failures,
    status_of,
    typed_settings,
)


@Subcommand.register("fiesta-select")
class FiestaSelect(Subcommand):
    def add_subparser(self, parser: Any) -> argparse.ArgumentParser:
        description = """Train the candidates on fresh random splits with fresh seeds, as often as it takes to know
        the best one, and stop. Everything is kept in the directory given with -s; a selection that was interrupted
        goes on with --recover. Where an option is not given, its default holds, or, with --recover, what was given
        at the start."""
        subparser = parser.add_parser(self.name, description=description, help="Find the best of several models.")
        add_arguments(subparser)
        subparser.set_defaults(func=select_from_args, program="allennlp fiesta-select")
        return subparser


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Every option. Those that are settings have no default here, so that only what was typed is given."""
    parser.allow_abbrev = False
    parser.add_argument(
        "candidates",
        nargs="*",
        metavar="CANDIDATE.jsonnet",
        help="two or more configs for `allennlp train`; the file's name without its ending names the candidate, "
        "or write NAME=PATH",
    )
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
    add_choosing(parser.add_argument_group("how to choose"))
    _add_scoring(parser.add_argument_group("what to train and score"))
    _add_working(parser.add_argument_group("how to work"))
    _add_cluster(parser.add_argument_group("with --executor ray"))


def _add_scoring(work: Any) -> None:
    add_option(work, "--metric", "the test metric to compare, as the model names it (default macro_f1)")
    add_splits(work)
    add_option(
        work,
        "--group-by",
        "metadata key whose equal values stay on one side of a split; `none` for none; by default "
        "what the reader says, such as sentence_id",
    )
    add_option(work, "--overrides", "a JSON(net) structure laid over every config", short="-o")
    add_option(
        work, "--entropy", "the root of all seeds, to repeat a selection; by default fresh and recorded", type=int
    )


def _add_working(machine: Any) -> None:
    add_option(
        machine,
        "--workers",
        "how many trainings at once (default 1), or auto for as many as there is room for",
        metavar="N|auto",
        type=_number_or_auto,
    )
    add_option(
        machine,
        "--executor",
        "processes (default) on this machine, or ray for a cluster; or a JSON object with a `type`",
        metavar="NAME|JSON",
    )
    add_option(machine, "--threads-per-worker", "torch threads of each training (default 1)", type=int)
    add_option(machine, "--cuda-devices", "devices to hand out to the workers, such as 0,1")
    add_option(machine, "--time-limit", "seconds after which a training is killed and counts as failed", type=float)
    add_option(
        machine,
        "--max-hours",
        "stop undecided after so many hours in all, earlier sessions included",
        type=float,
    )
    add_option(machine, "--max-failures", "withdraw a candidate after so many failed trainings (default 3)", type=int)
    add_option(
        machine, "--keep", "trained models to keep: none (default), the best one, or all", metavar="none|best|all"
    )
    add_option(
        machine,
        "--tensorboard",
        "write how it goes for TensorBoard, into the directory's `tensorboard`",
        action=argparse.BooleanOptionalAction,
    )


def _add_cluster(ray: Any) -> None:
    add_option(
        ray,
        "--ray-address",
        "auto (default) for the cluster of this machine, local to start one on this machine alone, or HOST:PORT",
    )
    add_option(ray, "--cpus-per-evaluation", "CPUs to set aside for each (default as --threads-per-worker)", type=float)
    add_option(ray, "--gpus-per-evaluation", "GPUs likewise (default 0); 0.25 puts four on one card", type=float)
    add_option(ray, "--memory-per-evaluation", "GiB of memory likewise (default none)", type=float)
    add_option(
        ray,
        "--ship-data",
        "send the data files along, for machines that lack them",
        action=argparse.BooleanOptionalAction,
    )


def _number_or_auto(text: str) -> Union[int, str]:
    try:
        return "auto" if text == "auto" else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number or auto but got '{text}'") from None


def select_from_args(args: argparse.Namespace) -> None:
    """Run the command and end the process with its status: 0 decided or undecided as asked, 1 no comparison was
    possible, 2 something to mend, 130 interrupted."""
    run_and_exit(
        lambda console: _dry_run(args, console) if args.dry_run else _select(args, console),
        debug=args.debug,
        interrupted=lambda: how_to_go_on(args, step="training", kept="nothing that finished is lost"),
    )


def _select(args: argparse.Namespace, console: Console) -> int:
    from fiesta_allennlp.reports.tables import summary_table
    from fiesta_allennlp.reports.words import in_words, savings_in_words
    from fiesta_allennlp.trainings.select import select
    from fiesta_allennlp.trainings.settings import Settings

    summary = select(
        typed_settings(args, Settings),
        directory_of(args),
        console=console,
        recover=args.recover,
        force=args.force,
        allow_removed=args.allow_removed,
    )
    console.print(summary_table(summary))
    say_failures(summary, console)
    console.print(in_words(summary), markup=False, soft_wrap=True)
    savings = savings_in_words(summary)
    if savings:
        console.print(savings, markup=False, soft_wrap=True)
    if summary["stopped_by"] == "max_hours":
        larger = f"Go on with a larger total: {recover_command(args)} --max-hours HOURS"
        console.print(larger, markup=False, soft_wrap=True)
    return status_of(summary, args, console)


def _dry_run(args: argparse.Namespace, console: Console) -> int:
    from fiesta_allennlp.reports.tables import plan_table
    from fiesta_allennlp.trainings.select import plan
    from fiesta_allennlp.trainings.settings import Settings, merge

    found = plan(merge(typed_settings(args, Settings)), console)
    plan_table(found, console)
    return 0
