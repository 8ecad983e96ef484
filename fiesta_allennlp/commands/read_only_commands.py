"""The commands that run nothing: on a selection, on scores alone, the guides, and the registration as an AllenNLP
plugin."""

import argparse
import csv
import json
import sys
import time
import webbrowser
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict

from fiesta_allennlp.commands import command
from fiesta_allennlp.core.errors import ConfigError, did_you_mean
from fiesta_allennlp.core.files import atomic_replacement
from fiesta_allennlp.version import PLUGIN_MODULE

if TYPE_CHECKING:
    from rich.console import Console

    from fiesta_allennlp.core.options import Option


class StatusCommand(command.FiestaCommand):
    help = "show the progress of a selection, running or not"
    description = """Print the current table of a selection, running or not. The command locks nothing and
changes nothing in the directory."""
    examples = """examples:
  %(prog)s runs/first
  %(prog)s runs/first --follow
  %(prog)s runs/first --json"""
    settings_class_path = "fiesta_allennlp.reports.report_settings.StatusSettings"
    positional_settings = (("directory", None),)
    interrupt_message = "Interrupted. The selection is not affected."

    def run(self, args: argparse.Namespace, console: "Console") -> int:
        settings = self.build_settings(args)
        from fiesta_allennlp.reports.progress import is_starting, read_status

        if settings.follow and is_starting(settings.directory):
            print("Waiting for the first run ...", file=sys.stderr, flush=True)
        while settings.follow and is_starting(settings.directory):
            time.sleep(settings.every)
        while True:
            status = read_status(settings.directory)
            if settings.json:
                print(json.dumps(status.data, indent=None if settings.follow else 2, default=asdict), flush=True)
            else:
                console.print(status.table, *status.sentences)
            if not (settings.follow and status.is_running):
                return 0
            time.sleep(settings.every)


class ReportCommand(command.FiestaCommand):
    help = "write the report of a selection"
    description = """Write an HTML page, its pictures as PDF, LaTeX tables and CSV files of a finished or running
selection, or of a table of scores. The command locks nothing and changes nothing in the selection."""
    examples = """examples:
  %(prog)s runs/first
  %(prog)s runs/first --compare cnn lstm"""
    settings_class_path = "fiesta_allennlp.reports.report_settings.ReportSettings"
    positional_settings = (("source", "?"), ("files", "*"))

    def run(self, args: argparse.Namespace, console: "Console") -> int:
        from fiesta_allennlp.reports.report_files import default_output, report

        options = self.typed_settings(args)
        output = options.pop("output", None) or default_output(options.get("source"), options.get("compare"))
        report_record = report(**options, output=output)
        if report_record.read_back is not None:
            command.print_read_back(report_record.read_back)
        console.print(*report_record.decision)
        console.print(f"Report written to {output / 'report.html'}, with more files in the same directory.")
        return 0


class ChoiceCommand(command.FiestaCommand):
    """A command whose settings say how a selection chooses, so that they may come from a preset."""

    def build_settings(self, args: argparse.Namespace) -> Any:
        return command.import_dotted(self.settings_class_path).from_layers(self.typed_settings(args))


class SimulationCommand(ChoiceCommand):
    """A command that repeats simulated selections and can write the result to a file."""

    interrupt_message = "Interrupted before the first repetition finished."

    def add_mode_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--output", type=Path, metavar="FILE.json", help="write the result to this file")

    def run(self, args: argparse.Namespace, console: "Console") -> int:
        command.check_output(args.output)
        from fiesta_allennlp.reports.coming_runs import simulate
        from fiesta_allennlp.selecting.results.candidate_table import show

        result = simulate(self.build_settings(args), console)
        if (table := result.source.read_back) is not None:
            command.print_read_back(table)
            table.refuse_overwriting(*filter(None, [args.output]))
        console.print(*show(result))
        if args.output is not None:
            from fiesta_allennlp.core.files import write_json_file

            write_json_file(args.output, result.summary, indent=2, allow_nan=False)
        return command.EXIT_INTERRUPTED if result.interrupted else 0


class PlanCommand(SimulationCommand):
    help = "estimate how many runs a selection needs"
    description = """Simulate a selection to estimate how many runs and hours it needs and how often it picks the best.
Describe the problem with numbers or with a pilot: the directory of a finished, interrupted or running
selection, or a table of scores. The command trains nothing, locks nothing and changes nothing."""
    examples = """examples:
  %(prog)s --gap 0.01 --sd 0.03 --candidates 4
  %(prog)s runs/first"""
    settings_class_path = "fiesta_allennlp.tables.table_settings.PlanSettings"
    positional_settings = (("source", "?"), ("files", "*"))


class ReplayCommand(SimulationCommand):
    help = "simulate a selection over existing scores"
    description = """Simulate a selection over a table of existing or synthetic scores, and print how many runs it takes
and how often it finds the best candidate."""
    examples = """examples:
  %(prog)s scores.csv --confidence 0.9
  %(prog)s scores.csv --strategy ttts --belief student_t --splits independent"""
    settings_class_path = "fiesta_allennlp.tables.table_settings.ReplaySettings"
    positional_settings = (("scores", None), ("files", "*"))


class NextCommand(ChoiceCommand):
    help = "suggest the next runs for a table of scores"
    description = """Read a table of scores and print which candidate leads, P(best), and the runs to make next, or that
the selection is decided. Make these runs yourself and add a row for each. The command stores nothing."""
    examples = """examples:
  %(prog)s scores.csv --workers 4
  %(prog)s scores.csv --candidates cnn,lstm,bert --format csv
  %(prog)s wandb.csv --columns candidate=model+lr --score test_f1
  %(prog)s 'results/{candidate}/seed{seed}/all_results.json' --score eval_f1 --output runs.csv"""
    settings_class_path = "fiesta_allennlp.tables.table_settings.NextSettings"
    positional_settings = (("scores", None), ("files", "*"))

    def add_mode_arguments(self, parser: argparse.ArgumentParser) -> None:
        command.add_require_decision(parser)
        output_help = "write the runs of the table with our own columns, for fiesta select --scores"
        parser.add_argument("--output", type=Path, metavar="FILE.csv", help=output_help)
        format_help = (
            "text (default), json, or csv: one line candidate,split,seed per run (candidate,task,split,seed with "
            "several tasks), and no line once the selection has ended"
        )
        parser.add_argument("--format", choices=("text", "json", "csv"), default="text", help=format_help)

    def run(self, args: argparse.Namespace, console: "Console") -> int:
        """Return the status: 0, 1 if too many runs failed, or 3 without a decision with `--require-decision`."""
        settings = self.build_settings(args)
        if args.output is not None and (settings.scale or "none") != "none":
            raise ConfigError("--output writes the scores of the table, which --scale changes. Use one of them.")
        command.check_output(args.output)
        from fiesta_allennlp.reports.coming_runs import next_runs_data
        from fiesta_allennlp.selecting.results.candidate_table import show
        from fiesta_allennlp.tables.next_runs import next_runs

        answer = next_runs(settings)
        command.print_read_back(answer.table)
        if args.output is not None:
            answer.table.refuse_overwriting(args.output)
            answer.table.write(args.output)
        if args.format == "json":
            console.print(json.dumps(next_runs_data(answer), indent=2, default=asdict))
        elif args.format == "csv":
            tasks = len(answer.history.by_task) > 1
            rows = ((run.candidate, *[run.task] * tasks, run.split, run.seed) for run in answer.runs)
            csv.writer(sys.stdout, lineterminator="\n").writerows(rows)
            if not answer.runs:
                print(show(answer)[-1], file=sys.stderr)
        else:
            console.print(*show(answer))
        return command.decision_status(answer.result, args)


PACKAGE = Path(__file__).parent.parent
PAGES = (PACKAGE / "pages", PACKAGE.parent / "build" / "docs")
"""Where an install has the pages, and where a clone has them after `make docs`."""


class DocsCommand(command.FiestaCommand):
    help = "open the guides"
    description = """Print the path of a page of the guides that were installed with this version, and open it in a
browser if there is one."""
    examples = """examples:
  %(prog)s
  %(prog)s scripts"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> "Dict[str, Option]":
        parser.add_argument("page", nargs="?", default="index", help="name of a page, such as cost (default: index)")
        return {}

    def run(self, args: argparse.Namespace, console: "Console") -> int:
        directory = next(filter(Path.is_dir, PAGES), None)
        if directory is None:
            raise ConfigError("a clone has no pages before `make docs`. Read docs/index.md, or run it.")
        path = directory / f"{args.page}.html"
        if not path.is_file():
            names = sorted(page.stem for page in directory.glob("*.html"))
            hint = did_you_mean(args.page, names) or f" Pages: {', '.join(names)}."
            raise ConfigError(f"there is no page '{args.page}'.{hint}")
        print(path, flush=True)
        webbrowser.open(path.as_uri())
        return 0


class PluginCommand(command.FiestaCommand):
    help = "make the fiesta- commands available in `allennlp`"
    description = """Add the line fiesta_allennlp.plugin to the file .allennlp_plugins in the current directory, where
AllenNLP looks for plugins. A file that already contains the line is not changed."""
    examples = """examples:
  %(prog)s
  %(prog)s --user"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> "Dict[str, Option]":
        parser.add_argument("--user", action="store_true", help="add it to ~/.allennlp/plugins, for every directory")
        return {}

    def run(self, args: argparse.Namespace, console: "Console") -> int:
        path = Path.home() / ".allennlp" / "plugins" if args.user else Path(".allennlp_plugins")
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        is_new = PLUGIN_MODULE not in map(str.strip, lines)
        if is_new:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_replacement(path) as temporary_path:
                temporary_path.write_text("\n".join([*lines, PLUGIN_MODULE]) + "\n", encoding="utf-8")
        text = f"Added {PLUGIN_MODULE} to {path}" if is_new else f"{path} is unchanged"
        console.print(f"{text}. `allennlp` finds the fiesta- commands.")
        return 0
