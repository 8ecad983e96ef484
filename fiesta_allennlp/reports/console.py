import os
import sys
from typing import Any

from rich.console import Console


class SteadyConsole(Console):
    """A console that falls silent when its output is closed, as by `| head`: no selection ends because nobody reads."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def print(self, *objects: Any, **kwargs: Any) -> None:
        try:
            super().print(*objects, **kwargs)
        except BrokenPipeError:  # rich before 13.8 does not call on_broken_pipe
            self.on_broken_pipe()
