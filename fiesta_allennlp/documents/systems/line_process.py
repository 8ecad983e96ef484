import os
import select
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import List, Optional, Sequence

from fiesta_allennlp.core.files import not_through_links, shortened
from fiesta_allennlp.documents.systems.base import Died, OutOfTime, Unanswered
from fiesta_allennlp.isolation import process_tree

LONGEST_LINE = 2**26  # bytes
SECONDS_TO_END = 5.0
LAST_WORDS = 2000
"""The number of bytes at the end of the log in which to look for the last line of a process."""


class LineProcess:
    """Starts a program that reads one line and prints one line, again and again.

    The program dies with this process, however this process ends (`process_tree`). Only one thread may ask at a time;
    any thread may call `kill`. The program's standard error is appended to `log`.
    """

    def __init__(self, command: Sequence[str], *, directory: Optional[str], log: Path) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._unread = b""
        log.parent.mkdir(parents=True, exist_ok=True)
        reading, self._alive = os.pipe()
        guarded = [sys.executable, "-I", "-S", process_tree.__file__, str(reading), *command]
        try:
            with open(log, "ab", opener=not_through_links) as errors:
                self._process = subprocess.Popen(
                    guarded,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    bufsize=0,
                    cwd=directory,
                    pass_fds=[reading],
                    start_new_session=True,
                )
        finally:
            os.close(reading)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout

    @property
    def is_running(self) -> bool:
        """Whether the program runs and its output is open. Output that was read to find out is kept."""
        if self._alive >= 0 and not self._unread and select.select([self._output], [], [], 0)[0]:
            self._unread = self._read()
            return bool(self._unread)
        return self._alive >= 0

    def ask(self, line: str, *, time_limit: float) -> str:
        """Send a line, and return the next line of the program.

        Raise `OutOfTime` if no line came in time, after killing the program so that no later question gets the late
        answer; `Died` if the program ended; and `Unanswered` if it printed a line without a question.
        """
        end = time.monotonic() + time_limit
        timer = threading.Timer(time_limit, self.kill)
        timer.daemon = True
        timer.start()
        try:
            self._send(line)
            return self._receive()
        except (OSError, EOFError) as error:
            if time.monotonic() >= end:
                raise OutOfTime(f"no answer within {time_limit:g} seconds, so it was killed") from error
            raise Died(f"it exited without an answer{self._last_words()}") from error
        finally:
            timer.cancel()

    def kill(self) -> None:
        """End the program and its children. Its streams stay open, because another thread may be reading."""
        with self._lock:
            if self._alive < 0:
                return
            os.close(self._alive)  # the guard then ends the program with its children
            self._alive = -1
            try:
                self._process.wait(timeout=SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def close(self) -> None:
        """End the program and close its streams, once no thread asks any more."""
        self.kill()
        self._input.close()
        self._output.close()

    def _send(self, line: str) -> None:
        if not self.is_running:
            raise EOFError
        if self._unread:
            self.kill()
            raise Unanswered(
                f"it printed an unexpected line: {shortened(self._unread.decode(errors='replace').strip())}. "
                "It must answer each line with one line of JSON, and print anything else to standard error"
            )
        unsent = memoryview(line.encode("utf-8") + b"\n")
        while unsent:
            unsent = unsent[self._input.write(unsent) or 0 :]

    def _receive(self) -> str:
        pieces: List[bytes] = [self._unread]
        size = 0
        while b"\n" not in pieces[-1]:
            pieces.append(self._read())
            size += len(pieces[-1])
            if not pieces[-1]:
                raise EOFError
            if size > LONGEST_LINE:
                self.kill()
                raise Unanswered(f"its answer is longer than {LONGEST_LINE} bytes")
        line, _, self._unread = b"".join(pieces).partition(b"\n")
        return line.decode("utf-8", errors="replace")

    def _read(self) -> bytes:
        return os.read(self._output.fileno(), 2**16)

    def _last_words(self) -> str:
        with self._log.open("rb") as log:
            log.seek(max(0, self._log.stat().st_size - LAST_WORDS))
            lines = log.read().decode("utf-8", errors="replace").split("\n")
        texts = [line.strip() for line in lines if line.strip()]
        return f". The last line of {self._log} is: {shortened(texts[-1])}" if texts else f". See {self._log}"
