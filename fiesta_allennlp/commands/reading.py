"""The commands that read a selection: `fiesta-status` and `fiesta-report`."""

import argparse
import time
from typing import TYPE_CHECKING

from fiesta_allennlp.commands.command import ReadingCommand
from fiesta_allennlp.commands.exit_handling import say

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
        """Print the table, and again until the selection ends if asked to follow it."""
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
        """Write the report."""
        settings = self.checked(args)
        from fiesta_allennlp.reports.report import default_output, report

        output = settings.output or default_output(settings.source, settings.compare)
        made = report(**{**vars(settings), "output": output})
        say([*made.decision, f"The report is {output / 'report.html'}, with more files next to it."], console)
        return 0
