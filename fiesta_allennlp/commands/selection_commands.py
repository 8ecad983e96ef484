"""The commands that make runs: `select`, `documents` and `confirm`."""

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Dict

from fiesta_allennlp.commands import command
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import ConfigError, full_command, join_some

if TYPE_CHECKING:
    from rich.console import Console

    from fiesta_allennlp.core.options import Option
    from fiesta_allennlp.selecting.results.result import Result

LIMIT_OPTIONS = {"max_evaluations": "--max-evaluations N", "max_hours": "--max-hours HOURS"}
"""The option that makes room for more, by what ended a selection."""


class SelectionCommand(command.FiestaCommand):
    """A command that selects in a directory, or with `--dry-run` only checks and prints the plan.

    Attributes:
        family_path, plan_view_path: the dotted paths of its family of selections, and of the function that shows what a
            dry run prepared. They are imported when they are used.
        run_noun: the word for one run.
        interrupt_note: the end of a sentence about an interrupt.
        force_help, dry_run_help: help texts.
    """

    starts_runs = True
    rare_modes = ("debug", "require_decision", "config")
    family_path: ClassVar[str]
    plan_view_path: ClassVar[str]
    run_noun: ClassVar[str] = "run"
    interrupt_note: ClassVar[str] = "no finished run is lost"
    force_help: ClassVar[str] = "delete the selection in the directory first"
    dry_run_help: ClassVar[str] = "check candidates, options and data and print the plan, but run nothing"

    def add_mode_arguments(self, parser: argparse.ArgumentParser) -> None:
        help = "directory of the selection"
        parser.add_argument("-s", "--serialization-dir", dest="directory", type=Path, metavar="DIR", help=help)
        parser.set_defaults(directory_flag="-s ")
        parser.add_argument("-r", "--recover", action="store_true", help="resume the selection in the directory")
        parser.add_argument("-f", "--force", action="store_true", help=self.force_help)
        parser.add_argument("--dry-run", action="store_true", help=self.dry_run_help)
        command.add_require_decision(parser)
        parser.add_argument("--config", type=Path, help="a Jsonnet file with options, which the command line overrides")

    def run(self, args: argparse.Namespace, console: "Console") -> int:
        """Return the status: 0 decided or open, 1 no comparison was possible, 2 invalid input, 3 open
        with `--require-decision`."""
        settings = self.typed_settings(args)
        inputs = self.inputs(args, settings)
        from fiesta_allennlp.selecting.session import dry_run, run_selection

        family = command.import_dotted(self.family_path)
        if args.dry_run:
            with dry_run(family, family.settings_class(**settings), console, **inputs) as prepared:
                console.print(*command.import_dotted(self.plan_view_path)(prepared))
            return 0
        if args.directory is None:
            raise ConfigError("-s is missing: pass the directory of the selection.")
        from fiesta_allennlp.reports.progress import LiveTable
        from fiesta_allennlp.reports.words import selection_in_words
        from fiesta_allennlp.selecting.results.candidate_table import candidate_table

        inputs.update(recover=args.recover, force=args.force)
        result = run_selection(family, settings, args.directory, console=console, display=LiveTable, **inputs)
        console.print(candidate_table(result, title=result.metric_text))
        print_failures(result, args, console)
        console.print(*selection_in_words(result))
        if result.stopped_by == "interrupted":
            console.print(f"Continue with: {recover_command(args)}")
            return command.EXIT_INTERRUPTED
        if result.stopped_by in LIMIT_OPTIONS:
            console.print(f"To continue, raise the limit: {recover_command(args)} {LIMIT_OPTIONS[result.stopped_by]}")
        return command.decision_status(result, args)

    def typed_settings(self, args: argparse.Namespace) -> Dict[str, Any]:
        """Return the settings that were typed, above those of the `--config` file."""
        from fiesta_allennlp.core.choice_settings import merge_settings, settings_from_file
        from fiesta_allennlp.core.options import typed_options

        settings_class = command.import_dotted(self.settings_class_path)
        file_settings = settings_from_file(args.config, settings_class) if args.config is not None else {}
        return merge_settings(file_settings, typed_options(args, settings_class), settings_class=settings_class)

    def inputs(self, args: argparse.Namespace, settings: Dict[str, Any]) -> Dict[str, Any]:
        """Return what the selection begins with besides its settings, by the name of the argument."""
        return {}

    def interrupt_text(self, args: argparse.Namespace) -> str:
        directory = None if args.dry_run else args.directory
        if directory is None or not RunDirectory(directory).store.exists():
            return f"Interrupted before the first {self.run_noun}. Start over with the same command."
        return f"Interrupted; {self.interrupt_note}. Continue with: {recover_command(args)}"


def print_failures(result: "Result", args: argparse.Namespace, console: "Console") -> None:
    """Print every failure, by reason, every candidate that takes no part, and how to retry it."""
    from fiesta_allennlp.reports.words import failures_in_words

    console.print(*failures_in_words(result))
    failed = [candidate for candidate in result.candidates if candidate.state == "failed"]
    if result.questions and args.command == "select":
        console.print(f"Questions about the scores are below. To answer one: {recover_command(args)} --allow NAME")
    wrong_names = [c.name for c in failed if not c.num_own and not c.num_missed]
    if wrong_names and args.command == "select":
        correction = f"pass all candidates again, with the corrected command or config of {join_some(wrong_names)}"
        console.print(f"To correct a candidate, {correction}: {recover_command(args)} CANDIDATES")
    retried = [candidate for candidate in failed if candidate.failed_because in ("max_failures", "min_score")]
    if retried:
        most_failures = max(3, *(candidate.failures for candidate in retried))
        retry_command = f"{recover_command(args)} --max-failures {2 * most_failures}"
        console.print(f"If you corrected the script itself, or the cause was outside, retry with: {retry_command}")


def recover_command(args: argparse.Namespace) -> str:
    return f"{full_command(args.command)} {args.directory_flag}{shlex.quote(str(args.directory))} --recover"


class SelectCommand(SelectionCommand):
    help = "find the best of several models"
    description = """Train the candidates on new random splits with new seeds until one of them is the best with the
target confidence. Everything is kept in the directory passed with -s, and --recover resumes an interrupted
selection with its original options."""
    examples = """examples:
  %(prog)s cnn.jsonnet lstm.jsonnet -s runs/first --metric accuracy --dry-run
  %(prog)s cnn.jsonnet lstm.jsonnet --metric accuracy --trial
  %(prog)s cnn.jsonnet lstm.jsonnet -s runs/first --metric accuracy --workers 2
  %(prog)s 'a=python train.py --arch a {train} {test} {seed}' 'b=python train.py --arch b {train} {test} {seed}' \\
      --data train.jsonl --data test.jsonl --metric f1 -s runs/programs
  %(prog)s cnn.jsonnet lstm.jsonnet --scores runs.csv -s runs/more \\
      --metric f1 --splits official
  %(prog)s -s runs/first --recover"""
    settings_class_path = "fiesta_allennlp.candidates.select_settings.Settings"
    family_path = "fiesta_allennlp.candidates.training_selection.TrainingSelection"
    plan_view_path = "fiesta_allennlp.reports.coming_runs.show_training_plan"
    positional_settings = (("candidates", "*"),)

    def add_arguments(self, parser: argparse.ArgumentParser) -> "Dict[str, Option]":
        from fiesta_allennlp.core.options import add_options
        from fiesta_allennlp.tables.table_settings import BroughtSettings

        return {**super().add_arguments(parser), **add_options(parser, BroughtSettings)}

    def inputs(self, args: argparse.Namespace, settings: Dict[str, Any]) -> Dict[str, Any]:
        if not hasattr(args, "scores"):
            return {}
        from fiesta_allennlp.core.options import typed_options
        from fiesta_allennlp.selecting.session import StoredState
        from fiesta_allennlp.tables.table_reader import read_brought_runs
        from fiesta_allennlp.tables.table_settings import BroughtSettings

        runs, table = read_brought_runs(BroughtSettings(**typed_options(args, BroughtSettings)), settings)
        command.print_read_back(table)
        return {"beginning": StoredState(brought=runs)}

    def add_mode_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_mode_arguments(parser)
        help = (
            "make one short run of each candidate (200 records of a program's data files, one epoch of a config), "
            "print its score and seconds, and keep nothing. A program without data files makes a whole run"
        )
        parser.add_argument("--trial", action="store_true", help=help)

    def run(self, args: argparse.Namespace, console: "Console") -> int:
        """Select, or with `--trial` make one short run of each candidate; the status is 1 if one of these failed."""
        if not args.trial:
            return super().run(args, console)
        mode = next((flag for flag in ("dry_run", "recover", "force") if getattr(args, flag)), None)
        if mode is not None:
            raise ConfigError(f"--trial cannot be combined with --{mode.replace('_', '-')}. Use one or the other.")
        settings = self.build_settings(args)
        from fiesta_allennlp.candidates.training_selection import trial
        from fiesta_allennlp.core.records import Evaluation, Failure
        from fiesta_allennlp.reports.coming_runs import trial_table
        from fiesta_allennlp.selecting.results.facts import describe_other_metrics, find_other_metrics

        outcomes = list(trial(settings, console))
        failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
        reasons = [f"failed: {failure.request.candidate}: {failure.error}" for failure in failures]
        finished = [run for run in outcomes if isinstance(run, Evaluation)]
        metric = finished[0].metric if finished else settings.scored_by.name
        notes = describe_other_metrics(metric, find_other_metrics(finished))
        console.print(trial_table(outcomes, metric), *reasons, *notes)
        console.print("A single run says little about a candidate. Nothing was kept.")
        return command.EXIT_NO_COMPARISON if failures else 0


class DocumentsCommand(SelectionCommand):
    help = "find the best of several trained systems by querying them"
    description = """Query trained systems about documents in random order until one of them is the best with the
target confidence. Nothing is trained. Every answer is kept and reused, so you pay for it only once. --recover
resumes an interrupted selection with its original options."""
    examples = """examples:
  %(prog)s a=a.tar.gz b=b.tar.gz c=service.jsonnet --documents gold.jsonl -s runs/first
  %(prog)s -s runs/first --recover"""
    settings_class_path = "fiesta_allennlp.documents.document_settings.DocumentSettings"
    family_path = "fiesta_allennlp.documents.document_selection.DocumentSelection"
    plan_view_path = "fiesta_allennlp.reports.coming_runs.show_documents_plan"
    positional_settings = (("systems", "*"),)
    run_noun = "query"
    interrupt_note = "no answer is lost"
    force_help = "delete the selection in the directory first; its answers are kept"
    dry_run_help = "check documents and options and open every system once, but query nothing"


class ConfirmCommand(command.FiestaCommand):
    help = "confirm the winner of a selection with fresh runs"
    description = """Make fresh runs of the winner of a selection and of its runner-up, or of the rivals of --against,
on new splits and seeds. Their number is fixed beforehand and they choose nothing, so the usual t-test and interval
hold for them. They are a selection of their own in DIR/confirmation, with the settings of the selection, except
the resources that you change. --recover continues them after an interruption."""
    examples = """examples:
  %(prog)s runs/first --dry-run
  %(prog)s runs/first --runs 20 --workers 2
  %(prog)s runs/first --against bert,roberta
  %(prog)s runs/first --recover"""
    settings_class_path = "fiesta_allennlp.confirming.confirm_settings.ConfirmSettings"
    starts_runs = True
    positional_settings = (("directory", None),)

    def add_mode_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.set_defaults(directory_flag="")
        parser.add_argument("-r", "--recover", action="store_true", help="continue the latest confirmation")
        parser.add_argument("--dry-run", action="store_true", help="print what these runs can show")
        command.add_require_decision(parser, decision="the winner was confirmed against every rival")

    def add_arguments(self, parser: argparse.ArgumentParser) -> "Dict[str, Option]":
        from fiesta_allennlp.candidates.select_settings import Settings
        from fiesta_allennlp.core.options import RESOURCES_GROUP, add_options

        return {**super().add_arguments(parser), **add_options(parser, Settings, (RESOURCES_GROUP,))}

    def run(self, args: argparse.Namespace, console: "Console") -> int:
        """Return the status: 0 if all fresh runs have ended, whatever their verdict; 2 invalid input; 3 with
        `--require-decision` unless each verdict is `confirmed`; 130 interrupted or limited by --max-hours."""
        settings = self.build_settings(args)
        from fiesta_allennlp.candidates.select_settings import Settings
        from fiesta_allennlp.core.options import typed_options
        from fiesta_allennlp.reports.confirmation_report import confirm, plan_confirmation
        from fiesta_allennlp.reports.progress import LiveTable
        from fiesta_allennlp.selecting.results.candidate_table import show

        resources = {name: value for name, value in typed_options(args, Settings).items() if name != "seed"}
        if args.dry_run:
            console.print(*show(plan_confirmation(settings, resources)))
            return 0
        result = confirm(settings, resources, console, display=LiveTable, recover=args.recover)
        console.print(*show(result))
        if result.is_over:
            return command.EXIT_OPEN if args.require_decision and result.verdict != "confirmed" else 0
        console.print(f"Continue with: {recover_command(args)}")
        return command.EXIT_INTERRUPTED

    def interrupt_text(self, args: argparse.Namespace) -> str:
        return f"Interrupted; no finished run is lost. Continue with: {recover_command(args)}"
