"""Runs a program to its end: its output goes to the log, and how it ended is told in one line."""

import os
import re
import signal
import subprocess
import threading
from dataclasses import dataclass
from typing import IO, Mapping, Optional, Sequence

from fiesta_allennlp.errors import ProgramError, ProgramKilledError, visible
from fiesta_allennlp.isolation.process_tree import end_below

MOST_KEPT = 2**16
"""Limits the bytes that are kept of the end of the output."""
MOST_LINES, MOST_CHARACTERS = 3, 300
"""Limit the lines and characters that an error quotes of the output."""
SECONDS_TO_END = 10.0
"""Limits the wait for what still holds the output of a program that has ended, where it could not be killed."""


@dataclass(frozen=True)
class Output:
    """Holds the end of what a program wrote, without its last line feeds."""

    stdout: str
    stderr: str


def run_program(command: Sequence[str], *, environment: Mapping[str, str], directory: Optional[str]) -> Output:
    """Run a program, with nothing on its standard input, and end what it leaves running.

    Args:
        command: the program and its arguments.
        environment: variables above those of this process.
        directory: the current directory of the program; None for that of this process.

    Raises:
        FileNotFoundError: where there is no such program.
        ProgramError: where it cannot be started, or ends with another exit status than 0.
        ProgramKilledError: where a signal ends it.
    """
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
            cwd=directory,
        )
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ProgramError(f"the program {command[0]} cannot be run: {error.strerror or error}.") from error
    assert process.stdout is not None and process.stderr is not None
    echoes = [_Echo(process.stdout, to=1), _Echo(process.stderr, to=2)]
    for echo in echoes:
        echo.start()
    status = process.wait()
    end_below(os.getpid())
    for echo in echoes:
        echo.join(SECONDS_TO_END)
    output = Output(*(echo.end() for echo in echoes))
    if status != 0:
        raise _error_of(status, output)
    return output


class _Echo(threading.Thread):
    """Writes what a program writes to a file descriptor of this process, and keeps the end of it."""

    def __init__(self, stream: IO[bytes], *, to: int) -> None:
        super().__init__(daemon=True)
        self._stream, self._to = stream, to
        self._kept = b""
        self._failed: Optional[OSError] = None

    def run(self) -> None:
        while chunk := os.read(self._stream.fileno(), MOST_KEPT):
            self._kept = (self._kept + chunk)[-MOST_KEPT:]
            self._write(chunk)

    def end(self) -> str:
        """Return the end of the output.

        Raises:
            OSError: where the log could not take all of it.
        """
        if self._failed is not None:
            raise self._failed
        return self._kept.decode("utf-8", "replace").rstrip()

    def _write(self, chunk: bytes) -> None:
        try:
            while chunk and self._failed is None:
                chunk = chunk[os.write(self._to, chunk) :]
        except OSError as error:  # the program would wait for ever if nobody read on
            self._failed = error


def _error_of(status: int, output: Output) -> Exception:
    said = last_lines(output.stderr) or last_lines(output.stdout)
    end = f". The end of its output: {said}" if said else " and wrote nothing."
    if status > 0:
        return ProgramError(f"the program ended with exit status {status}{end}")
    try:
        name = f" ({signal.Signals(-status).name})"
    except ValueError:
        name = ""
    why = ", on Linux often for lack of memory" if -status == signal.SIGKILL else ""
    return ProgramKilledError(f"the program was killed by signal {-status}{name}{why}{end}")


def last_lines(text: str) -> str:
    """Return the last lines of an output that are not empty, in one line, cut where they are long. Control characters,
    which a terminal would obey, are written as escapes."""
    lines = [line.strip() for line in re.split(r"[\r\n]+", text) if line.strip()]
    said = visible(" / ".join(lines[-MOST_LINES:]), keep="\t")
    return said if len(said) <= MOST_CHARACTERS else f"... {said[-MOST_CHARACTERS:]}"
