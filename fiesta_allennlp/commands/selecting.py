"""The commands that run a selection: `select`, `search` and `documents`."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Dict, Mapping, Type

from fiesta_allennlp.commands.command import EXIT_NO_DECISION, FiestaCommand, how_to_go_on, say, say_failures, status_of
from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console


class Selecting(FiestaCommand):
    """A command that selects in a directory, or with `--dry-run` only checks and prints the plan. `step` is the word
    for one run, `kept` the end of a sentence about an interrupt; `force` and `dry_run` are help texts."""

    trains = True
    step: ClassVar[str] = "run"
    kept: ClassVar[str] = "no finished run is lost"
    force: ClassVar[str] = "delete the selection in the directory first"
    dry_run: ClassVar[str] = "check everything and print the plan, but run nothing"

    def add_ways(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "-s", "--serialization-dir", type=Path, help="directory of the selection; required unless --dry-run"
        )
        parser.add_argument("-r", "--recover", action="store_true", help="resume the selection in the directory")
        parser.add_argument("-f", "--force", action="store_true", help=self.force)
        parser.add_argument("--dry-run", action="store_true", help=self.dry_run)
        parser.add_argument(
            "--detach",
            action="store_true",
            help="continue in the background after the checks; the output goes to DIR/detached.log",
        )
        parser.add_argument(
            "--config",
            type=Path,
            help="a Jsonnet file with any of the options below; the command line takes precedence",
        )

    def work(self, args: argparse.Namespace, console: "Console") -> int:
        """Return the status: 0 decided or inconclusive, 1 no comparison was possible, 2 invalid input."""
        settings = self.settings_class()
        typed = typed_settings(args, settings)
        directory = None if args.dry_run else directory_of(args)
        if directory is None:
            self.plan(settings(**typed), args, console)
            return 0
        return status_of(self.select(typed, directory, args, console), args, console)

    def select(
        self, given: Dict[str, Any], directory: Path, args: argparse.Namespace, console: "Console"
    ) -> Mapping[str, Any]:
        """Select, print the result and return the content of `selection.json`."""
        raise NotImplementedError

    def plan(self, settings: Any, args: argparse.Namespace, console: "Console") -> None:
        """Check everything and print the plan."""
        raise NotImplementedError

    def interrupted(self, args: argparse.Namespace) -> str:
        return how_to_go_on(args, step=self.step, kept=self.kept)


def typed_settings(args: argparse.Namespace, of: Type[Any]) -> Dict[str, Any]:
    """Return the settings of the class `of` that were typed, above those of the `--config` file."""
    from fiesta_allennlp.selection.options import typed_options
    from fiesta_allennlp.selection.settings import overlay, settings_from_file

    given = settings_from_file(args.config, of) if args.config is not None else {}
    typed = overlay(given, typed_options(args, of), of=of)
    if not args.recover:  # else what was typed may go with what the store has
        of(**typed)
    return typed


def directory_of(args: argparse.Namespace) -> Path:
    if args.serialization_dir is None:
        raise ConfigError("-s is missing: pass the directory of the selection.")
    return args.serialization_dir


def planned_directory(args: argparse.Namespace) -> RunDirectory:
    """Return the directory that a dry run writes about, which may be missing."""
    return RunDirectory(args.serialization_dir or Path("DIR"))


class SelectCommand(Selecting):
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
  %(prog)s -s runs/first --recover"""
    settings = "fiesta_allennlp.trainings.settings.Settings"
    given = (("candidates", "*"),)

    def add_ways(self, parser: argparse.ArgumentParser) -> None:
        super().add_ways(parser)
        parser.add_argument(
            "--trial",
            action="store_true",
            help="make one short run of each candidate (200 records for a program, one epoch for a config), print its "
            "score, seconds and memory, and keep nothing",
        )
        parser.add_argument(
            "--allow-removed",
            action="store_true",
            help="with --recover: remove the candidates that are not listed again, and keep their runs",
        )

    def select(
        self, given: Dict[str, Any], directory: Path, args: argparse.Namespace, console: "Console"
    ) -> Mapping[str, Any]:
        from fiesta_allennlp.reports.tables import summary_table
        from fiesta_allennlp.reports.words import in_words, savings_in_words, scope_in_words
        from fiesta_allennlp.trainings.select import select

        ways = {"recover": args.recover, "force": args.force, "allow_removed": args.allow_removed}
        summary = select(given, directory, console=console, **ways)
        console.print(summary_table(summary))
        say_failures(summary, args, console)
        further = (summary["scored_on"], scope_in_words(summary), savings_in_words(summary))
        say(filter(None, (in_words(summary), *further)), console)
        return summary

    def work(self, args: argparse.Namespace, console: "Console") -> int:
        if not args.trial:
            return super().work(args, console)
        other = next((flag for flag in ("dry_run", "recover", "force", "detach") if getattr(args, flag)), None)
        if other is not None:
            raise ConfigError(f"--trial cannot be combined with --{other.replace('_', '-')}. Use one or the other.")
        return self._try(args, console)

    def _try(self, args: argparse.Namespace, console: "Console") -> int:
        """Make one short run of each candidate and print the outcomes. Return status 1 if a run failed."""
        from fiesta_allennlp.trainings.settings import Settings, merge

        settings = merge(typed_settings(args, Settings))
        from fiesta_allennlp.records import Failure
        from fiesta_allennlp.reports.tables import trial_table
        from fiesta_allennlp.trainings.select import trial

        outcomes = list(trial(settings, console))
        failed = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
        console.print(trial_table(outcomes, settings.scored_by.name))
        say((f"failed: {failure.request.candidate}: {failure.error}" for failure in failed), console)
        say(["These are scores of single short runs and say little. Nothing was kept."], console)
        return EXIT_NO_DECISION if failed else 0

    def plan(self, settings: Any, args: argparse.Namespace, console: "Console") -> None:
        from fiesta_allennlp.reports.tables import plan_table
        from fiesta_allennlp.trainings.select import plan

        plan_table(plan(settings, console, planned_directory(args)), console)


class SearchCommand(Selecting):
    help = "screen many configs, then find the best of a few"
    description = """Screen many configs with one run each, scored on the validation set, then select among the best few
with new runs. Both stages are kept in the directory passed with -s, and --recover resumes an
interrupted search."""
    examples = """examples:
  %(prog)s template.jsonnet space.json -s runs/search --configs 40 --dry-run
  %(prog)s template.jsonnet space.json -s runs/search --configs 40 --finalists 4
  %(prog)s template.jsonnet space.json -s runs/search --runs 240 --workers 2
  %(prog)s -s runs/search --recover"""
    settings = "fiesta_allennlp.searches.search_settings.SearchSettings"
    given = (("template", "?"), ("space", "?"))
    force = "delete the search or selection in the directory first"

    def select(
        self, given: Dict[str, Any], directory: Path, args: argparse.Namespace, console: "Console"
    ) -> Mapping[str, Any]:
        from fiesta_allennlp.reports.screening import search_in_words
        from fiesta_allennlp.reports.tables import summary_table
        from fiesta_allennlp.reports.words import in_words
        from fiesta_allennlp.searches.search import search

        found = search(given, directory, console=console, recover=args.recover, force=args.force)
        if found.selection is not None:
            console.print(summary_table(found.selection))
            say_failures(found.selection, args, console)
            say([in_words(found.selection), found.selection["scored_on"]], console)
        say(search_in_words(found), console)
        return found.last

    def plan(self, settings: Any, args: argparse.Namespace, console: "Console") -> None:
        from fiesta_allennlp.reports.screening import search_plan_in_words
        from fiesta_allennlp.searches.search import plan_search

        say(search_plan_in_words(plan_search(settings, console, planned_directory(args))), console)


class DocumentsCommand(Selecting):
    help = "find the best of several trained systems"
    description = """Query trained systems about documents in random order until one of them is the best with the
target confidence. Every answer is kept and reused, so you pay for it only once. --recover resumes an
interrupted selection with its original options."""
    examples = """examples:
  %(prog)s a=a.tar.gz b=b.tar.gz c=service.jsonnet --documents gold.jsonl -s runs/first
  %(prog)s -s runs/first --recover"""
    settings = "fiesta_allennlp.documents.settings.DocumentSettings"
    given = (("systems", "*"),)
    step = "query"
    kept = "no answer is lost"
    force = "delete the selection in the directory first; its answers are kept"
    dry_run = "check everything and open every system once, but query nothing"

    def select(
        self, given: Dict[str, Any], directory: Path, args: argparse.Namespace, console: "Console"
    ) -> Mapping[str, Any]:
        from fiesta_allennlp.documents.select import select_system
        from fiesta_allennlp.reports.tables import documents_table
        from fiesta_allennlp.reports.words import selection_in_words

        summary = select_system(given, directory, console=console, recover=args.recover, force=args.force)
        console.print(documents_table(summary))
        say_failures(summary, args, console)
        say(selection_in_words(summary), console)
        return summary

    def plan(self, settings: Any, args: argparse.Namespace, console: "Console") -> None:
        from fiesta_allennlp.documents.select import plan_documents
        from fiesta_allennlp.reports.tables import show_plan

        show_plan(plan_documents(settings, args.serialization_dir, console), console)
