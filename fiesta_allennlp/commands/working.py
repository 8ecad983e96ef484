"""The command that makes runs of a selection which another process directs."""

import argparse
from functools import partial
from typing import TYPE_CHECKING

from fiesta_allennlp.commands.command import FiestaCommand

if TYPE_CHECKING:
    from rich.console import Console


class WorkerCommand(FiestaCommand):
    help = "make runs of a selection with --executor workers"
    description = """Take runs from a selection with --executor workers, one after the other, until it ends. Start
workers on any machines that share the directory of the selection, under the same path. They may join and
leave at any time."""
    examples = """examples:
  %(prog)s runs/first
  %(prog)s runs/first --cuda-device 1 --idle 5"""
    settings_class_path = "fiesta_allennlp.trainings.queue_worker.QueueWorkerSettings"
    trains = True
    positional = (("directory", None),)
    interrupt_message = "Interrupted. Another worker starts the run again."

    def work(self, args: argparse.Namespace, console: "Console") -> int:
        """Return the status: 0, or 2 if no selection in the directory waits for this worker."""
        settings = self.checked(args)
        from fiesta_allennlp.trainings.queue_worker import work_for

        work_for(settings, partial(console.print, markup=False))
        return 0
