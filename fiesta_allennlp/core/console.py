"""The output of a command to a terminal, a file or a pipe. Nothing fails if the reader has gone."""

import os
import re
import sys
import textwrap
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import partial
from typing import IO, Any, Callable, Iterator, Optional, cast

from rich.console import Console
from rich.text import Text

from fiesta_allennlp.core.errors import LAYOUT_CHARACTERS, escape_invisible

DUMB_TERMINALS = ("dumb", "unknown")
"""Values of the variable TERM."""

COMMAND_PATTERN = re.compile(r"(?<![\w(])(allennlp fiesta-|fiesta |pip install |python -m )")
"""The beginning of a command to be copied into a shell, unlike one that is named in brackets."""


class PipeSafeConsole(Console):
    """A console that falls silent when its output is gone: no selection ends because nobody reads.

    Every object is printed on lines of its own, and a text as it is, without markup. A character that the output cannot
    encode becomes a question mark, and invisible ones, which a terminal may obey, become escapes. On a terminal it
    breaks long texts at blanks, but leaves lines with a command whole. Elsewhere no line is broken, and none ends with
    blanks. A terminal that cannot move its cursor is no terminal here, so that progress is printed line by line."""

    def __init__(self, *, stderr: bool = False, file: Optional[IO[str]] = None, **options: Any) -> None:
        stream: Any = file or (sys.stderr if stderr else sys.stdout)
        stream = stream if isinstance(stream, _PipeSafeFile) else _PipeSafeFile(stream)
        dumb = {"force_terminal": False} if os.environ.get("TERM") in DUMB_TERMINALS else {}
        super().__init__(file=stream, stderr=stderr, **{**options, **dumb})
        self._force_terminal = self.is_terminal  # which Rich would find out again at every line

    def render_str(self, text: str, **kwargs: Any) -> Text:
        """Render any text, also the cells and titles of tables."""
        return super().render_str(escape_invisible(text, keep=LAYOUT_CHARACTERS), **kwargs)

    def print(self, *objects: Any, **kwargs: Any) -> None:
        for item in objects:
            if isinstance(item, str):
                text = _wrap_lines(item, self.width) if self.is_terminal else item
                self._print(text, **{"markup": False, "highlight": False, "soft_wrap": True, **kwargs})
            else:
                self._print(item, **kwargs)

    def _print(self, content: Any, **kwargs: Any) -> None:
        if self.is_terminal or self.is_jupyter or self.quiet:
            super().print(content, **kwargs)
            return
        with self.capture() as capture:
            super().print(content, **kwargs)
        self.file.write(re.sub(r"[ \t]+(?=\n)", "", capture.get()))
        self.file.flush()


class _PipeSafeFile:
    """A text file that can always be written to. Everything else is as with the `wrapped` file."""

    def __init__(self, wrapped: IO[str]) -> None:
        self.wrapped, self.rich_proxied_file = wrapped, self
        self.encoding = getattr(wrapped, "encoding", None) or "utf-8"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.wrapped, name)

    def write(self, text: str) -> int:
        with self._ignoring_closed_output():
            self.wrapped.write(text.encode(self.encoding, "replace").decode(self.encoding))
        return len(text)

    def flush(self) -> None:
        with self._ignoring_closed_output():
            self.wrapped.flush()

    @contextmanager
    def _ignoring_closed_output(self) -> Iterator[None]:
        """Send the rest to the null device once the file is gone, also what Python itself writes when it ends."""
        try:
            yield
        except OSError:
            with suppress(OSError), open(os.devnull, "w") as null_file:
                os.dup2(null_file.fileno(), self.wrapped.fileno())


@contextmanager
def pipe_safe_streams() -> Iterator[None]:
    """Let this process write to its standard streams even if nobody reads them."""
    output, errors = (cast(Any, _PipeSafeFile(stream)) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(output), redirect_stderr(errors):
        try:
            yield
        finally:
            output.flush()
            errors.flush()


def _wrap_lines(message: str, width: int) -> str:
    """Return a message with its lines broken at blanks; words that are wider than a line, such as paths, stay whole."""
    wrap = partial(textwrap.fill, width=width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(line if COMMAND_PATTERN.search(line) else wrap(line) for line in message.split("\n"))


@contextmanager
def repetition_bar(console: Console, total: int, *, label: str = "repetitions") -> Iterator[Callable[..., None]]:
    """Show the progress of the repetitions of a replay, or of `label`. Yield a function that takes the number of new
    ones, and optionally another total."""
    if not console.is_terminal:
        yield lambda number, total=None: None
        return
    from rich.progress import MofNCompleteColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (*Bar.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda number, total=None: bar.update(task, advance=number, total=total)


@contextmanager
def candidate_counter(console: Console, total: int) -> Iterator[Callable[[str], None]]:
    """Show the progress of checks: a bar on a terminal, elsewhere the name of each candidate."""
    with repetition_bar(console, total, label="candidates") as advance:
        if console.is_terminal:
            yield lambda name: advance(1)
        else:
            yield lambda name: console.print(f"  {name}")
