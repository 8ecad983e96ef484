import os
import select
import subprocess
import sys
import threading
from pathlib import Path
from typing import List, Optional, Sequence

from fiesta_allennlp.documents.systems.base import Died, OutOfTime, Unanswered
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.files import not_through_links, shortened
from fiesta_allennlp.isolation import process_tree

LONGEST_LINE = 2**26
SECONDS_TO_END = 5.0
LAST_WORDS = 2000
"""The number of bytes at the end of the log in which to look for the last line of a process."""


class LineProcess:
    """Keeps a program running that reads one line and prints one line.

    The program dies with this process, however this process ends (`process_tree`). Only one thread may ask at a time;
    any thread may call `kill`. The program's standard error is appended to `log`.
    """

    def __init__(self, command: Sequence[str], *, directory: Optional[Path], log: Path) -> None:
        self._command = list(command)
        self._directory = directory
        self._log = log
        self._process: Optional["subprocess.Popen[bytes]"] = None
        self._alive = -1
        self._lock = threading.Lock()
        self._unread = b""
        self._stopped = False

    @property
    def is_running(self) -> bool:
        return self._alive >= 0 and not self._at_end()

    def start(self) -> None:
        """Start the program, unless it is running."""
        with self._lock:
            if self._stopped:
                raise Unanswered("it was stopped")
            self._end()
            self._close_streams()
            self._log.parent.mkdir(parents=True, exist_ok=True)
            reading, self._alive = os.pipe()
            guarded = [sys.executable, "-I", "-S", process_tree.__file__, str(reading), *self._command]
            try:
                with open(self._log, "ab", opener=not_through_links) as log:
                    self._process = subprocess.Popen(
                        guarded,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=log,
                        bufsize=0,
                        cwd=self._directory,
                        pass_fds=[reading],
                        start_new_session=True,
                    )
            except OSError as error:
                os.close(self._alive)
                raise ConfigError(f"{self._command[0]} cannot be started: {error}.") from error
            finally:
                os.close(reading)
            self._unread = b""

    def ask(self, line: Optional[str], *, time_limit: float) -> str:
        """Send a line, or None if the program speaks first, and return the next line of the program.

        Raise `OutOfTime` if no line came in time, after killing the program so that no later question gets the late
        answer; `Died` if the program ended; and `Unanswered` if it printed a line without a question.
        """
        out_of_time = threading.Event()

        def give_up() -> None:
            out_of_time.set()
            self.kill()

        timer = threading.Timer(time_limit, give_up)
        timer.daemon = True
        timer.start()
        try:
            if line is not None:
                self._send(line)
            return self._receive()
        except (OSError, EOFError) as error:
            if out_of_time.is_set():
                raise OutOfTime(f"no answer came within {time_limit:g} seconds, so it was stopped") from error
            raise Died(f"it ended without an answer{self._last_words()}") from error
        finally:
            timer.cancel()

    def kill(self) -> None:
        """End the program and its children."""
        with self._lock:
            self._end()

    def close(self) -> None:
        """End the program for good, and close its streams. Call it when no thread asks any more."""
        self._stopped = True
        self.kill()
        self._close_streams()

    def _send(self, line: str) -> None:
        if self._unread or self._is_readable():
            more = self._unread or self._read()
            if more:
                self.kill()
                raise Unanswered(
                    f"it printed an unexpected line: {shortened(more.decode(errors='replace').strip())}. "
                    "It must answer each line with one line of JSON, and print anything else to standard error"
                )
        process = self._process
        if process is None or process.stdin is None:
            raise EOFError
        rest = memoryview(line.encode("utf-8") + b"\n")
        while rest:
            rest = rest[process.stdin.write(rest) or 0 :]

    def _receive(self) -> str:
        pieces: List[bytes] = [self._unread]
        size = len(self._unread)
        while b"\n" not in pieces[-1]:
            piece = self._read()
            if not piece:
                raise EOFError
            size += len(piece)
            if size > LONGEST_LINE:
                self.kill()
                raise Unanswered(f"its answer is longer than {LONGEST_LINE} bytes")
            pieces.append(piece)
        line, _, self._unread = b"".join(pieces).partition(b"\n")
        return line.decode("utf-8", errors="replace")

    def _read(self) -> bytes:
        process = self._process
        if process is None or process.stdout is None:
            return b""
        return os.read(process.stdout.fileno(), 2**16)

    def _is_readable(self) -> bool:
        process = self._process
        return (
            process is not None and process.stdout is not None and bool(select.select([process.stdout], [], [], 0)[0])
        )

    def _at_end(self) -> bool:
        """Return whether the output has ended. Keep anything that was read to find out."""
        if not self._unread and self._is_readable():
            self._unread = self._read()
            return not self._unread
        return False

    def _end(self) -> None:
        """End the program. Its streams stay open, because another thread may be reading: it finds their end."""
        if self._alive < 0 or self._process is None:
            return
        os.close(self._alive)  # the guard then ends the program with its children
        self._alive = -1
        try:
            self._process.wait(timeout=SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _close_streams(self) -> None:
        for stream in (self._process.stdin, self._process.stdout) if self._process is not None else ():
            if stream is not None:
                stream.close()
        self._process = None

    def _last_words(self) -> str:
        try:
            with self._log.open("rb") as log:
                log.seek(max(0, self._log.stat().st_size - LAST_WORDS))
                lines = log.read().decode("utf-8", errors="replace").split("\n")
        except OSError:
            return ""
        said = [line.strip() for line in lines if line.strip()]
        return f". The last line of {self._log} is: {shortened(said[-1])}" if said else f". See {self._log}"
