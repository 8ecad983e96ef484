"""How results show themselves. `show` has an implementation for each type of result, beside the words for it."""

from functools import singledispatch
from io import StringIO
from typing import Any, Sequence, Union

from fiesta_allennlp.core.console import PipeSafeConsole
from fiesta_allennlp.selecting.results.candidate_table import Table

TEXT_WIDTH = 100
"""Characters in a line of a result's text."""

TerminalLines = Sequence[Union[Table, str]]
"""Tables and sentences, in the order in which they are shown."""


@singledispatch
def show(result: Any) -> TerminalLines:
    """Return the table of a result and the sentences below it. A result that nobody put into words is its fields."""
    return [f"{type(result).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(result).items())})"]


class Printable:
    """A result that shows itself as text, on a terminal and in a notebook."""

    def __repr__(self) -> str:
        buffer = StringIO()
        console = PipeSafeConsole(file=buffer, width=TEXT_WIDTH, color_system=None, force_jupyter=False)
        console.print(*show(self))
        return buffer.getvalue().strip("\n")
