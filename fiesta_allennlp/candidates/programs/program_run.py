"""Runs a program on one split with given seeds, and returns the score that it reports."""

import os
import re
import signal
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Dict, Mapping, Optional, Sequence

from fiesta_allennlp.candidates.candidate_run import CandidateRun, ReportedMetrics, parse_last_line, read_reported
from fiesta_allennlp.candidates.config import Config
from fiesta_allennlp.candidates.programs.program import (
    STDOUT,
    fill_command,
    fill_placeholders,
    program_paths,
)
from fiesta_allennlp.candidates.programs.program_pool import read_data, write_sets
from fiesta_allennlp.core.directory import DATA_DIRECTORY, LOG_FILE, MODEL_DIRECTORY, OUTPUT_DIRECTORY, RUN_FILE
from fiesta_allennlp.core.errors import MetricError, ProgramError, ProgramKilledError, escape_invisible
from fiesta_allennlp.core.files import OWN_DIRECTORY_MODE, delete, write_json_file
from fiesta_allennlp.core.records import Request
from fiesta_allennlp.running.process_tree import end_below

CHUNK_BYTES, MAX_BYTES_KEPT = 2**16, 2**22  # bytes of the output: of one reading, and of its end
SHELL_STATUS_OFFSET = 128  # a shell adds it to the number of the signal that ended its program
MAX_LINES, MAX_CHARACTERS = 3, 300  # of the output in an error
MAX_ERROR_LINES = 10  # of a program, with what follows it
OUTPUT_TIMEOUT_SECONDS = 10.0  # for the output of a program that has ended, where its children cannot be killed


def run_program(command: Sequence[str], *, environment: Mapping[str, str], directory: Optional[str]) -> str:
    """Run a program, with nothing on its standard input, end what it leaves running, and return the end of its standard
    output. `environment` adds to that of this process; without a `directory`, the program starts in the current one.

    Raise a `FileNotFoundError` if there is no such program, a `ProgramError` if it cannot be started or ends with
    another status than 0, and a `ProgramKilledError` if a signal ends it.
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
        raise ProgramError(f"the program {command[0]} cannot be started: {error.strerror or error}.") from error
    assert process.stdout is not None and process.stderr is not None
    copiers = [_OutputCopier(process.stdout, target_descriptor=1), _OutputCopier(process.stderr, target_descriptor=2)]
    for copier in copiers:
        copier.start()
    status = process.wait()
    end_below(os.getpid())
    for copier in copiers:
        copier.join(OUTPUT_TIMEOUT_SECONDS)
    stdout, stderr = (copier.output_end() for copier in copiers)
    if status != 0:
        raise _program_error(status, last_lines(stderr) or last_lines(stdout))
    return stdout


class _OutputCopier(threading.Thread):
    """Writes what a program writes to a file descriptor of this process, and keeps the end of it."""

    def __init__(self, stream: IO[bytes], *, target_descriptor: int) -> None:
        super().__init__(daemon=True)
        self._stream, self._target_descriptor = stream, target_descriptor
        self._tail = bytearray()
        self._prefix = ""  # the text that takes the place of a beginning that was not kept
        self._write_error: Optional[OSError] = None

    def run(self) -> None:
        while chunk := os.read(self._stream.fileno(), CHUNK_BYTES):
            self._tail += chunk
            if len(self._tail) > 2 * MAX_BYTES_KEPT:
                del self._tail[:-MAX_BYTES_KEPT]
                self._prefix = "... "
            try:
                while chunk and self._write_error is None:
                    chunk = chunk[os.write(self._target_descriptor, chunk) :]
            except OSError as error:  # read on, because the program would wait forever
                self._write_error = error

    def output_end(self) -> str:
        """Return the end of the output. Raise an `OSError` if the log could not take all of it."""
        if self._write_error is not None:
            raise self._write_error
        return self._prefix + self._tail.decode("utf-8", "replace").rstrip()


def _program_error(status: int, output: str) -> Exception:
    ending = f". Last output: {output}" if output else " and printed nothing."
    number = -status if status < 0 else status - SHELL_STATUS_OFFSET
    if number not in signal.valid_signals():
        return ProgramError(f"the program exited with status {status}{ending}")
    cause = ", often for lack of memory" if number == signal.SIGKILL else ""
    shell = f"; its shell exited with status {status}" if status > 0 else ""
    name = f"signal {number} ({signal.strsignal(number)}{cause})"
    return ProgramKilledError(f"the program was killed by {name}{shell}{ending}")


def last_lines(text: str) -> str:
    """Return the end of an output in one line, cut if long: of its last lines, those below the last indented one, which
    belongs to the line above it, as in a traceback. Control characters, which a terminal would obey, are written as
    escapes."""
    lines = [line for line in re.split(r"[\r\n]+", text) if line.strip()]
    is_indented = [line[0].isspace() for line in lines]
    first = len(lines) - next((n for n, indented in enumerate(reversed(is_indented)) if not indented), len(lines)) - 1
    while first > 0 and not is_indented[first - 1]:
        first -= 1
    block = [line.strip() for line in lines[max(first, 0) :]]
    begin = (
        block[:1] if first > 0 and MAX_LINES < len(block) <= MAX_ERROR_LINES else []
    )  # the error, above what follows it
    end = escape_invisible(" / ".join([*begin, *block[len(begin) :][-MAX_LINES + len(begin) :]]), keep="\t")
    return end if len(end) <= MAX_CHARACTERS else f"... {end[-MAX_CHARACTERS:]}"


@CandidateRun.register("program")
@dataclass(frozen=True)
class ProgramRun(CandidateRun):
    """Writes the sets of a run into files, runs the program of a candidate over them, and reads its metrics.

    A run leaves `outcome.json` with its command, and the program's own `output`, which is empty when the program starts
    and deleted if it stays so. Until it has finished, `run.json` has the command. `keep_models` keeps the directory
    `model` that the program made. `max_records` limits all sets together, for a trial.
    """

    keep_models: bool = False
    max_records: Optional[int] = None

    def make_run(self, request: Request, directory: Path) -> ReportedMetrics:
        directory = directory.resolve()
        output = directory / OUTPUT_DIRECTORY
        delete(output)
        output.mkdir(mode=OWN_DIRECTORY_MODE)
        try:
            placeholder_values = {
                **self._set_paths(request, directory / DATA_DIRECTORY),
                "seed": str(request.random_seed),
                "split_seed": str(request.split_seed),
                "directory": str(output),
            }
            stdout = self._run_command(request, placeholder_values, directory)
            reported = _read_metrics(self.config, stdout, placeholder_values)
        finally:
            delete(directory / DATA_DIRECTORY)
        if not self.keep_models:
            delete(directory / MODEL_DIRECTORY)
        with suppress(OSError):
            output.rmdir()  # if it is empty
        _empty_needless_log(directory / LOG_FILE, stdout, reported)
        return reported

    def _set_paths(self, request: Request, directory: Path) -> Dict[str, str]:
        """Return the files of the sets by part: new ones, or the official ones as they are."""
        paths = self.division.used_paths(program_paths(self.config))
        if not paths or (self.division.is_official and self.max_records is None):
            return paths
        data = read_data(self.config["data"], paths, self.group_by)
        split_seed, division, max_records = request.split_seed, self.division, self.max_records
        path_by_set = write_sets(data, directory, split_seed=split_seed, division=division, max_records=max_records)
        return {set_name: str(path) for set_name, path in path_by_set.items()}

    def _run_command(self, request: Request, placeholder_values: Mapping[str, str], directory: Path) -> str:
        command = fill_command(self.config, placeholder_values)
        write_json_file(directory / RUN_FILE, {**self.describe(request), "command": command}, indent=2)
        texts = self.config.get("environment", {}).items()
        environment = {name: fill_placeholders(text, placeholder_values) for name, text in texts}
        working_directory = self.working_directory if Path(self.working_directory).is_dir() else None
        return run_program(command, environment=environment, directory=working_directory)


def _empty_needless_log(log: Path, stdout: str, reported: ReportedMetrics) -> None:
    """Empty the log of a run that printed nothing but the line of its metrics, which `outcome.json` has."""
    with suppress(OSError, MetricError):
        is_one_line = log.stat().st_size <= MAX_CHARACTERS and "\n" not in stdout
        if (
            is_one_line
            and log.read_text(errors="replace").strip() == stdout
            and parse_last_line(stdout) == reported.values
        ):
            os.truncate(log, 0)


def _read_metrics(config: Config, stdout: str, placeholder_values: Mapping[str, str]) -> ReportedMetrics:
    path = config.get("metrics")
    files = None
    if path is not None:
        files = {} if path == STDOUT else {path: Path(fill_placeholders(path, placeholder_values))}
    return read_reported(Path(placeholder_values["directory"]), stdout, files)
