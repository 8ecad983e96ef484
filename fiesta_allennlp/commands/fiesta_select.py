"""
The `fiesta-select` subcommand finds the best of several AllenNLP configs with as few trainings as it can:

    allennlp fiesta-select a.jsonnet b.jsonnet c.jsonnet -s runs/first
"""

import argparse
import logging
import os
import shlex
import signal
import sys
import traceback
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, Union

from allennlp.commands.subcommand import Subcommand
from rich.console import Console

from fiesta_allennlp.errors import FiestaError
from fiesta_allennlp.reports.console import SteadyConsole

EXIT_USER_ERROR = 2
EXIT_NO_DECISION = 1
EXIT_INTERRUPTED = 130


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
    parser.add_argument("-s", "--serialization-dir", type=Path, help="directory for the run; needed unless --dry-run")
    parser.add_argument("-r", "--recover", action="store_true", help="go on with the selection in the directory")
    parser.add_argument("-f", "--force", action="store_true", help="delete the selection in the directory first")
    parser.add_argument(
        "--dry-run", action="store_true", help="check everything, say what would be done, train nothing"
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    parser.add_argument("--config", type=Path, help="a Jsonnet file with any of the options below; flags win over it")
    _add_choosing(parser.add_argument_group("how to choose"))
    _add_scoring(parser.add_argument_group("what to train and score"))
    _add_working(parser.add_argument_group("how to work"))
    _add_cluster(parser.add_argument_group("with --executor ray"))


def _add_choosing(settings: Any) -> None:
    _add(
        settings,
        "--strategy",
        "ttts (default), bts, thompson, non_adaptive_fc; with --budget sequential_halving "
        "(default) or non_adaptive_fb; or a JSON object with a `type`",
        metavar="NAME|JSON",
    )
    _add(settings, "--belief", "student_t (default) or logit_student_t, or a JSON object", metavar="NAME|JSON")
    _add(settings, "--confidence", "stop when the best is known with this probability (default 0.95)", type=float)
    _add(settings, "--budget", "train so many times in all and name the best, in place of --confidence", type=int)
    _add(
        settings,
        "--margin",
        "be content with a candidate whose mean is within this of the best (default 0)",
        type=float,
    )
    _add(
        settings,
        "--max-evaluations",
        "give up undecided after so many in all (default 50 per candidate)",
        type=int,
    )


def _add_scoring(work: Any) -> None:
    _add(work, "--metric", "the test metric to compare, as the model names it (default macro_f1)")
    _add(
        work,
        "--splits",
        "shared (default): replicate k of every candidate is trained on split k; independent: each "
        "evaluation has a split of its own, as in the paper",
        metavar="shared|independent",
    )
    _add(
        work,
        "--group-by",
        "metadata key whose equal values stay on one side of a split; `none` for none; by default "
        "what the reader says, such as sentence_id",
    )
    _add(work, "--overrides", "a JSON(net) structure laid over every config", short="-o")
    _add(work, "--entropy", "the root of all seeds, to repeat a selection; by default fresh and recorded", type=int)


def _add_working(machine: Any) -> None:
    _add(
        machine,
        "--workers",
        "how many trainings at once (default 1), or auto for as many as there is room for",
        metavar="N|auto",
        type=_number_or_auto,
    )
    _add(
        machine,
        "--executor",
        "processes (default) on this machine, or ray for a cluster; or a JSON object with a `type`",
        metavar="NAME|JSON",
    )
    _add(machine, "--threads-per-worker", "torch threads of each training (default 1)", type=int)
    _add(machine, "--cuda-devices", "devices to hand out to the workers, such as 0,1")
    _add(machine, "--time-limit", "seconds after which a training is killed and counts as failed", type=float)
    _add(
        machine,
        "--max-hours",
        "stop undecided after so many hours in all, earlier sessions included",
        type=float,
    )
    _add(machine, "--max-failures", "withdraw a candidate after so many failed trainings (default 3)", type=int)
    _add(machine, "--keep", "trained models to keep: none (default), the best one, or all", metavar="none|best|all")


def _add_cluster(ray: Any) -> None:
    _add(
        ray,
        "--ray-address",
        "auto (default) for the cluster of this machine, local to start one on this machine alone, or HOST:PORT",
    )
    _add(ray, "--cpus-per-evaluation", "CPUs to set aside for each (default as --threads-per-worker)", type=float)
    _add(ray, "--gpus-per-evaluation", "GPUs likewise (default 0); 0.25 puts four on one card", type=float)
    _add(ray, "--memory-per-evaluation", "GiB of memory likewise (default none)", type=float)
    _add(
        ray,
        "--ship-data",
        "send the data files along, for machines that lack them",
        action=argparse.BooleanOptionalAction,
    )


def _number_or_auto(text: str) -> Union[int, str]:
    return "auto" if text == "auto" else int(text)


_number_or_auto.__name__ = "N or auto"  # argparse names it in its messages


def _add(group: Any, flag: str, text: str, *, short: str = "", **kwargs: Any) -> None:
    group.add_argument(*filter(None, (short, flag)), default=argparse.SUPPRESS, help=text, **kwargs)


def given_settings(args: argparse.Namespace) -> Dict[str, Any]:
    """The settings that were typed, above those of the `--config` file."""
    from dataclasses import fields

    from fiesta_allennlp.settings import Settings, overlay, settings_from_file

    given = settings_from_file(args.config) if args.config is not None else {}
    typed = {f.name: getattr(args, f.name) for f in fields(Settings) if hasattr(args, f.name)}
    return overlay(given, {name: value for name, value in typed.items() if value not in ([], ())})


def select_from_args(args: argparse.Namespace) -> None:
    """Run the command and end the process with its status: 0 decided or undecided as asked, 1 no comparison was
    possible, 2 something to mend, 130 interrupted."""
    with _interruptible():
        sys.exit(_status(args))


def _status(args: argparse.Namespace) -> int:
    logging.getLogger().setLevel(logging.WARNING)
    console = SteadyConsole(highlight=False)
    try:
        return _dry_run(args, console) if args.dry_run else _select(args, console)
    except FiestaError as error:
        if args.debug:
            traceback.print_exc()
        Console(stderr=True, highlight=False).print(f"error: {error}", markup=False, soft_wrap=True)
        return EXIT_USER_ERROR
    except KeyboardInterrupt:
        console.print("Interrupted; nothing that finished is lost. If trainings had begun, go on with --recover.")
        return EXIT_INTERRUPTED


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let the first ending signal end the selection in order, and the second one quit at once.

    A signal that is ignored stays so: shells start what runs in their background with SIGINT ignored.
    """

    def interrupt(signum: int, frame: Any) -> None:
        for ending in before:
            signal.signal(ending, quit_at_once)
        raise KeyboardInterrupt

    def quit_at_once(signum: int, frame: Any) -> None:
        os._exit(EXIT_INTERRUPTED)  # the store is whole after every step, and workers end with their parent

    endings = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {ending: signal.getsignal(ending) for ending in endings if signal.getsignal(ending) != signal.SIG_IGN}
    for ending in before:
        signal.signal(ending, interrupt)
    try:
        yield
    finally:
        for ending, handler in before.items():
            signal.signal(ending, handler)


def _select(args: argparse.Namespace, console: Console) -> int:
    from fiesta_allennlp.reports.summary import in_words, savings_in_words
    from fiesta_allennlp.reports.tables import summary_table
    from fiesta_allennlp.run import select

    directory = _directory(args)
    summary = select(given_settings(args), directory, console=console, recover=args.recover, force=args.force)
    console.print(summary_table(summary))
    for candidate in summary["candidates"]:
        for reason in candidate["failure_reasons"]:
            console.print(f"failed: {reason}", markup=False, soft_wrap=True)
    console.print(in_words(summary), markup=False, soft_wrap=True)
    savings = savings_in_words(summary)
    if savings:
        console.print(savings, markup=False, soft_wrap=True)
    go_on = f"{args.program} -s {shlex.quote(str(directory))} --recover"
    if summary["stopped_by"] == "max_hours":
        console.print(f"Go on with a larger total: {go_on} --max-hours HOURS", soft_wrap=True)
    if summary["stopped_by"] == "interrupted":
        console.print(f"Go on with: {go_on}", soft_wrap=True)
        return EXIT_INTERRUPTED
    return EXIT_NO_DECISION if summary["stopped_by"] == "failures" else 0


def _dry_run(args: argparse.Namespace, console: Console) -> int:
    from fiesta_allennlp.reports.tables import plan_table
    from fiesta_allennlp.run import plan
    from fiesta_allennlp.settings import merge

    found = plan(merge(given_settings(args)), console)
    plan_table(found, console)
    return 0


def _directory(args: argparse.Namespace) -> Path:
    from fiesta_allennlp.errors import ConfigError

    if args.serialization_dir is None:
        raise ConfigError("-s is missing: give the directory in which the selection is to be kept.")
    return args.serialization_dir
