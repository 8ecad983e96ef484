"""Programs as systems: a process gets a line of JSON for each question."""

import json
import os
import select
import shutil
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.files import file_digest, last_line, shorten
from fiesta_allennlp.documents.system import STOP_REASON, OutOfTime, ProcessDied, System, Unanswered
from fiesta_allennlp.running import process_tree
from fiesta_allennlp.running.machine import with_interpreter

MAX_LINE_BYTES = 2**26  # bytes
KILL_TIMEOUT_SECONDS = 5.0


class LineProcess:
    """Starts a program that reads one line and prints one line, again and again.

    The program dies with this process, however this process ends (`process_tree`). Only one thread may ask at a time;
    any thread may call `kill`. The program's standard error is appended to `log`.
    """

    def __init__(self, command: Sequence[str], *, directory: Optional[str], log: Path) -> None:
        self.is_new = True  # until its first answer
        self._log, self._lock, self._unread = log, threading.Lock(), b""
        log.parent.mkdir(parents=True, exist_ok=True)
        read_end, self._guard_pipe = os.pipe()
        guarded_command = [sys.executable, process_tree.__file__, str(read_end), *command]
        try:
            with log.open("ab") as error_log:
                self._process = subprocess.Popen(
                    guarded_command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=error_log,
                    bufsize=0,
                    cwd=directory,
                    pass_fds=[read_end],
                    start_new_session=True,
                )
        finally:
            os.close(read_end)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout

    @property
    def is_running(self) -> bool:
        """Whether the program runs and its output is open. Output that was read to find out is kept."""
        if self._guard_pipe >= 0 and not self._unread and select.select([self._output], [], [], 0)[0]:
            self._unread = self._read_chunk()
            return bool(self._unread)
        return self._guard_pipe >= 0

    def ask(self, line: str, *, time_limit: float) -> str:
        """Send a line, and return the next line of the program.

        Raise `OutOfTime` if no line came in time, after killing the program so that no later question gets the late
        answer; `ProcessDied` if the program ended; and `Unanswered` if it printed a line without a question.
        """
        deadline = time.monotonic() + time_limit
        timer = threading.Timer(time_limit, self.kill)
        timer.daemon = True
        timer.start()
        try:
            if not self.is_running:
                raise EOFError
            if self._unread:
                self.kill()
                text = shorten(self._unread.decode(errors="replace").strip())
                raise Unanswered(f"it printed an unexpected line: {text}. It must print one line of JSON for each line")
            unsent = memoryview(line.encode("utf-8") + b"\n")
            while unsent:
                unsent = unsent[self._input.write(unsent) or 0 :]
            return self._read_line()
        except (OSError, EOFError) as error:
            if time.monotonic() >= deadline:
                raise OutOfTime(f"no answer within {time_limit:g} seconds, so it was killed") from error
            text = last_line(self._log)
            ending = f"The last line of {self._log} is: {shorten(text)}" if text else f"See {self._log}"
            raise ProcessDied(f"it exited without an answer. {ending}") from error
        finally:
            timer.cancel()

    def kill(self) -> None:
        """End the program and its children. Its streams stay open, because another thread may be reading."""
        with self._lock:
            if self._guard_pipe < 0:
                return
            os.close(self._guard_pipe)  # the guard then ends the program with its children
            self._guard_pipe = -1
            try:
                self._process.wait(timeout=KILL_TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def close(self) -> None:
        """End the program and close its streams, once no thread asks any more."""
        self.kill()
        self._input.close()
        self._output.close()

    def _read_line(self) -> str:
        received, chunk = bytearray(), b""
        while b"\n" not in chunk:
            chunk = self._read_chunk()
            if not chunk:
                raise EOFError
            received += chunk
            if len(received) > MAX_LINE_BYTES:
                self.kill()
                raise Unanswered(f"its answer is longer than {MAX_LINE_BYTES} bytes")
        line, _, self._unread = bytes(received).partition(b"\n")
        return line.decode("utf-8", errors="replace")

    def _read_chunk(self) -> bytes:
        return os.read(self._output.fileno(), 2**16)


@System.register("command")
@dataclass(kw_only=True, eq=False)
class Command(System):
    """Asks a program that reads each question as a line of JSON on its standard input and prints each answer as a line.

    The selection starts the program once and keeps it running. It starts the program again if the program died or was
    too slow. A log keeps the program's standard error. The program must send each answer at once: in Python,
    `print(..., flush=True)`.

    `System` documents the remaining arguments.

    Args:
        command: the program and its arguments, as a list; a plain `python` is this interpreter. The content of those
            that are files is part of the identity.
        directory: the working directory of the program (default: the current directory).
        start_time_limit: the extra seconds that the first answer after a start may take, beyond the time limit.
        tries: the total number of times that a question is asked if the process dies over it.
    """

    command: List[str] = field(kw_only=False)
    directory: Optional[str] = None
    start_time_limit: float = 60.0
    tries: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        command = with_interpreter(self.command)
        if self.directory is not None and not Path(self.directory).is_dir():
            raise ConfigError(f"'directory' {self.directory} does not exist.")
        if not command or (shutil.which(command[0]) is None and not self._argument_path(command[0]).is_file()):
            raise ConfigError(f"'command' must start with an executable file or a program but is {command}.")
        self._words, self._is_closed = command, False
        self._process: Optional[LineProcess] = None

    def identity(self) -> Dict[str, Any]:
        files = map(self._argument_path, self.command)
        return {
            **super().identity(),
            "type": "command",
            "command": self.command,
            "directory": self.directory,
            "files": {str(path): file_digest(path) for path in files if path.is_file()},
        }

    def _argument_path(self, argument: str) -> Path:
        return Path(self.directory or ".") / argument

    def open(self, log: Path, *, time_limit: float) -> None:
        self._log = log
        self._time_limit = time_limit if self.time_limit is None else self.time_limit
        self._start()

    def ask(self, question: Any) -> Any:
        line = json.dumps(question, ensure_ascii=False)
        for _ in range(self.tries - 1):
            with suppress(ProcessDied):
                return self._ask_once(line)
        return self._ask_once(line)

    def close(self) -> None:
        self._is_closed = True
        if self._process is not None:
            self._process.close()

    def _ask_once(self, line: str) -> Any:
        process = self._process
        if process is None or not process.is_running:
            process = self._start()
        start_seconds = self.start_time_limit if process.is_new else 0.0
        answer = process.ask(line, time_limit=self._time_limit + start_seconds)
        process.is_new = False
        try:
            return json.loads(answer)
        except (ValueError, RecursionError) as error:
            process.kill()  # what it prints next may still belong to this question
            raise Unanswered(f"its answer is not JSON: {shorten(answer)}") from error

    def _start(self) -> LineProcess:
        if self._is_closed:
            raise Unanswered(STOP_REASON)
        if self._process is not None:
            self._process.close()
        self._process = LineProcess(self._words, directory=self.directory, log=self._log)
        return self._process
