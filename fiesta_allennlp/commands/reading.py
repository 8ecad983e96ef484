"""The commands that run nothing: on a selection, on scores alone, and the one that tells AllenNLP of this package."""

import argparse
import csv
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict

from fiesta_allennlp.commands.command import (
    EXIT_INTERRUPTED,
    EXIT_NO_DECISION,
    FiestaCommand,
    ReadingCommand,
    check_output,
    say,
)
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.files import replacing

if TYPE_CHECKING:
    from rich.console import Console


class StatusCommand(ReadingCommand):
    help = "show the state of a selection that runs elsewhere"
    description = """Print the table of a selection or a search, running or not. The command locks and changes
nothing in its directory."""
    examples = """examples:
  %(prog)s runs/first
  %(prog)s runs/first --follow"""
    settings = "fiesta_allennlp.reports.settings.StatusSettings"
    given = (("directory", None),)

    def work(self, args: argparse.Namespace, console: "Console") -> int:
        settings = self.checked(args)
        from fiesta_allennlp.reports.status import status_of

        while True:
            found = status_of(settings.directory)
            console.print(found.table)
            say(found.sentences, console)
            if not settings.follow or not found.running:
                return 0
            time.sleep(settings.every)

    def interrupted(self, args: argparse.Namespace) -> str:
        return "The selection is not affected."


class ReportCommand(ReadingCommand):
    help = "write the report of a selection"
    description = """Write an HTML report, figures, LaTeX and Markdown tables and a CSV file of a finished or running
selection, or of a table of scores. The command locks and changes nothing in the selection."""
    examples = """examples:
  %(prog)s runs/first
  %(prog)s runs/first --compare cnn lstm"""
    settings = "fiesta_allennlp.reports.settings.ReportSettings"
    given = (("source", "?"),)

    def work(self, args: argparse.Namespace, console: "Console") -> int:
        settings = self.checked(args)
        from fiesta_allennlp.reports.report import default_output, report

        output = settings.output or default_output(settings.source, settings.compare)
        made = report(**{**vars(settings), "output": output})
        say([*made.decision, f"The report is {output / 'report.html'}, with more files next to it."], console)
        return 0


class Simulating(ReadingCommand):
    """A command that repeats simulated selections and can write the result to a file."""

    def add_files(self, groups: Dict[str, Any]) -> None:
        from fiesta_allennlp.selection.settings import RESOURCES

        parser = groups[RESOURCES]
        parser.add_argument("--output", type=Path, metavar="FILE.json", help="write the result to this file")

    def check_files(self, args: argparse.Namespace) -> None:
        check_output("output", args.output, (".json",))

    def interrupted(self, args: argparse.Namespace) -> str:
        return "Interrupted; no repetition has finished."


class PlanCommand(Simulating):
    help = "estimate how many runs a selection needs"
    description = """Simulate a selection to estimate how many runs and hours it needs and how often it is right. You
describe the problem by numbers, or by a pilot: the directory of a finished, interrupted or running
selection, or a table of scores. The command trains, locks and changes nothing."""
    examples = """examples:
  %(prog)s --gap 0.01 --sd 0.03 --candidates 4
  %(prog)s runs/first"""
    settings = "fiesta_allennlp.replays.settings.PlanSettings"
    given = (("source", "?"),)

    def work(self, args: argparse.Namespace, console: "Console") -> int:
        settings = self.checked(args)
        from fiesta_allennlp.listeners.progress import repetition_bar
        from fiesta_allennlp.replays.planning import FEWEST, forecast
        from fiesta_allennlp.reports.plan import outlook_table, plan_content, plan_in_words
        from fiesta_allennlp.selection.summary import write_json

        with repetition_bar(console, FEWEST) as told:
            found = forecast(settings, on_repetitions=told)
        console.print(outlook_table(found))
        say(plan_in_words(found), console)
        if args.output is not None:
            write_json(plan_content(found), args.output)
        return EXIT_INTERRUPTED if found.interrupted else 0


class ReplayCommand(Simulating):
    help = "simulate a selection over existing scores"
    description = """Simulate a selection over a table of existing scores, or over synthetic ones, and print how many
runs it takes and how often it finds the best candidate."""
    examples = """examples:
  %(prog)s scores.csv --confidence 0.9
  %(prog)s tdsa-8 --strategy ttts --belief student_t --splits independent"""
    settings = "fiesta_allennlp.replays.settings.ReplaySettings"
    given = (("scores", None),)

    def add_files(self, groups: Dict[str, Any]) -> None:
        from fiesta_allennlp.selection.settings import RESOURCES

        super().add_files(groups)
        parser = groups[RESOURCES]
        parser.add_argument("--figure", type=Path, metavar="FILE.png|pdf", help="draw a figure of the number of runs")

    def check_files(self, args: argparse.Namespace) -> None:
        super().check_files(args)
        if args.figure is not None:
            from fiesta_allennlp.reports.figures.drawing import FIGURE_ENDINGS

            check_output("figure", args.figure, tuple(FIGURE_ENDINGS))

    def work(self, args: argparse.Namespace, console: "Console") -> int:
        settings = self.checked(args)
        from fiesta_allennlp.listeners.progress import repetition_bar
        from fiesta_allennlp.replays.replay import replay, summarise_replay
        from fiesta_allennlp.reports.tables import replay_table
        from fiesta_allennlp.reports.words import replay_in_words
        from fiesta_allennlp.selection.summary import write_json

        with repetition_bar(console, settings.repetitions) as advance:
            result = replay(settings, on_repetitions=advance)
        if not result.repetitions:
            raise KeyboardInterrupt
        summary = summarise_replay(result)
        console.print(replay_table(summary))
        say(replay_in_words(summary), console)
        if args.output is not None:
            write_json(summary, args.output)
        if args.figure is not None:
            from fiesta_allennlp.reports.figures.drawing import draw_evaluations

            draw_evaluations([repetition.num_evaluations for repetition in result.repetitions], summary, args.figure)
        return EXIT_INTERRUPTED if result.interrupted else 0


class NextCommand(ReadingCommand):
    help = "name the next runs for a table of scores"
    description = """Read a table of scores and print who leads, with which probability, and the next runs; or that the
selection is decided. Make these runs yourself and add a row for each. The command stores nothing."""
    examples = """examples:
  %(prog)s scores.csv --workers 4
  %(prog)s scores.csv --candidates cnn,lstm,bert --format csv
  %(prog)s wandb.csv --columns candidate=model,score=test_f1,seed=seed"""
    settings = "fiesta_allennlp.replays.settings.NextSettings"
    given = (("scores", None),)

    def add_files(self, groups: Dict[str, Any]) -> None:
        from fiesta_allennlp.selection.settings import RESOURCES

        groups[RESOURCES].add_argument(
            "--format",
            choices=("text", "json", "csv"),
            default="text",
            help="text (default); json; or csv, a line candidate,split,seed for each run and nothing once the "
            "selection has ended",
        )

    def work(self, args: argparse.Namespace, console: "Console") -> int:
        """Return the status: 0, or 1 where too many runs failed."""
        settings = self.checked(args)
        from fiesta_allennlp.replays.next_runs import next_runs
        from fiesta_allennlp.reports.plan import next_content, next_in_words, next_table

        found = next_runs(settings)
        if args.format == "json":
            say([json.dumps(next_content(found), indent=2)], console)
        elif args.format == "csv":
            rows = ((run.candidate, run.split, run.seed) for run in found.runs)
            csv.writer(sys.stdout, lineterminator="\n").writerows(rows)
            if not found.runs:
                print(next_in_words(found)[-1], file=sys.stderr)
        else:
            console.print(next_table(found))
            say(next_in_words(found), console)
        return EXIT_NO_DECISION if found.decision.stopped_by == "failures" else 0


LINE = "fiesta_allennlp.plugin"
"""The module that AllenNLP imports."""


class PluginCommand(FiestaCommand):
    help = "make the fiesta- commands available in `allennlp`"
    description = """Add the line fiesta_allennlp.plugin to the file .allennlp_plugins of this directory, where AllenNLP
looks for plugins. A file that already has the line stays unchanged."""
    examples = """examples:
  %(prog)s
  %(prog)s --user"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--user", action="store_true", help="add it to ~/.allennlp/plugins, which works in every directory"
        )

    def work(self, args: argparse.Namespace, console: "Console") -> int:
        path = Path.home() / ".allennlp" / "plugins" if args.user else Path(".allennlp_plugins")
        try:
            is_new = add_plugin(path)
        except OSError as error:
            raise ConfigError(f"{path}: the line {LINE} cannot be written: {error.strerror}.") from error
        said = "now: `allennlp` finds the fiesta- commands" if is_new else "already. Nothing was changed"
        say([f"{path} has the line {LINE} {said}."], console)
        return 0


def add_plugin(path: Path) -> bool:
    """Add the line to the file, which may be missing. Returns whether it was not there yet."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if LINE in map(str.strip, lines):
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        part.write_text("\n".join([*lines, LINE]) + "\n", encoding="utf-8")
    return True
