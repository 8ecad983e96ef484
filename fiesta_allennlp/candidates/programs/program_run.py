"""Runs a program on one split with given seeds, and returns the score that it reports.

A program reports a JSON object of numbers in `metrics.json` of its directory, or else as the last line that it prints.
Anything else is no metric, and one message shows what was found and what is expected."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from fiesta_allennlp.candidates.candidate import CandidateRun, ReportedMetrics
from fiesta_allennlp.candidates.config import absolute_paths
from fiesta_allennlp.candidates.programs.program_data import ProgramData
from fiesta_allennlp.core import files
from fiesta_allennlp.core.directory import DATA_DIRECTORY, MODEL_DIRECTORY, OUTPUT_DIRECTORY, RUN_FILE
from fiesta_allennlp.core.errors import MetricError, ProgramError, ProgramKilledError, escape_invisible, join_some
from fiesta_allennlp.core.records import Request
from fiesta_allennlp.running.machine import PYTHON, with_interpreter
from fiesta_allennlp.running.process_tree import end_below

CHUNK_BYTES, MAX_BYTES_KEPT = 2**16, 2**22  # bytes of the output: of one reading, and of its end
SHELL_STATUS_OFFSET = 128  # a shell adds it to the number of the signal that ended its program
MAX_LINES, MAX_CHARACTERS = 3, 300  # of the output in an error
MAX_LINE_CHARACTERS, MAX_FILES = 120, 5  # of the last printed line, and of the files that a run wrote, in a message
MAX_TRIAL_RECORDS = 200
OUTPUT_TIMEOUT_SECONDS = 10.0  # for the output of a program that has ended, where its children cannot be killed

COLOUR_PATTERN = re.compile(r"\x1b\[[0-9;]*m")
LINE_START_PATTERN = re.compile(r"[\r\n]|\x1b\[[0-9;?]*[A-Za-z]")
"""Where a terminal begins a line again: its end, or a sequence that moves the cursor or erases."""

PLACEHOLDER_PATTERN = re.compile(r"\{\{(\w+)\}\}|(?<!\$)\{(\w+)\}")
"""`{{name}}` stands for `{name}` itself, and `${name}` is a shell's."""


STDOUT = "stdout"  # the value of `metrics` if they are the last line of the standard output

DEFAULT_METRICS = "{directory}/metrics.json"
EXPECTED_TEXT = (
    f'Expected: a JSON object of numbers, such as {{"accuracy": 0.9}}, in {DEFAULT_METRICS} or as the last printed '
    "line (print(json.dumps(metrics)))."
)


def fill_placeholders(text: str, values: Mapping[str, str]) -> str:
    all_values = {**values, PYTHON: sys.executable}
    return PLACEHOLDER_PATTERN.sub(lambda match: f"{{{match[1]}}}" if match[1] else all_values[match[2]], text)


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
    tails: Tuple[bytearray, bytearray] = (bytearray(), bytearray())
    errors: List[OSError] = []
    copiers = [
        threading.Thread(target=_copy_output, args=(stream, descriptor, tail, errors), daemon=True)
        for stream, descriptor, tail in zip((process.stdout, process.stderr), (1, 2), tails, strict=True)
    ]
    for copier in copiers:
        copier.start()
    status = process.wait()
    end_below(os.getpid())
    for copier in copiers:
        copier.join(OUTPUT_TIMEOUT_SECONDS)
    if errors:  # the log could not take all of the output
        raise errors[0]
    stdout, stderr = (tail.decode("utf-8", "replace").rstrip() for tail in tails)
    if status != 0:
        raise _program_error(status, last_lines(stderr) or last_lines(stdout))
    return stdout


def _copy_output(stream: IO[bytes], descriptor: int, tail: bytearray, errors: List[OSError]) -> None:
    """Write what a program writes to a file descriptor of this process, and keep the end of it."""
    while chunk := os.read(stream.fileno(), CHUNK_BYTES):
        tail += chunk
        if len(tail) > 2 * MAX_BYTES_KEPT:
            del tail[:-MAX_BYTES_KEPT]
        try:
            while chunk and not errors:
                chunk = chunk[os.write(descriptor, chunk) :]
        except OSError as error:  # read on, because the program would wait forever
            errors.append(error)


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
    """Return the end of an output in one line, cut if long: the last lines, or of a traceback what stands below the
    last indented one. Control characters, which a terminal would obey, are written as escapes."""
    lines = [line for line in re.split(r"[\r\n]+", text) if line.strip()]
    first = len(lines)
    while first and lines[first - 1][0].isspace():  # which belong to the line above them
        first -= 1
    while first and not lines[first - 1][0].isspace():
        first -= 1
    block = [line.strip() for line in lines[first:]]
    shown = [block[0], *block[1:][1 - MAX_LINES :]] if first else block[-MAX_LINES:]
    end = escape_invisible(" / ".join(shown), keep="\t")
    return end if len(end) <= MAX_CHARACTERS else f"... {end[-MAX_CHARACTERS:]}"


# The metrics.


def read_reported(directory: Path, stdout: str, path: Optional[Path], name: str) -> ReportedMetrics:
    """Return what is in the file `path`, which has this name in messages, or else what the last printed line has.

    Messages do not name the directory, so that two runs with the same fault have the same one.

    Raises:
        MetricError: for anything but a JSON object. It names the files that the run wrote.
    """
    try:
        if path is None:
            return ReportedMetrics(parse_last_line(stdout))
        if not path.is_file() or not os.access(path, os.R_OK):  # a FIFO would block
            raise MetricError(f"{name} is not a readable file. {EXPECTED_TEXT}")
        return ReportedMetrics(_parse_object(path.read_bytes(), name), name)
    except MetricError as error:
        raise MetricError(f"{error}{_describe_written_files(directory)}") from error


def _describe_written_files(directory: Path) -> str:
    """Name files that a run left, those that can have its metrics first, and the ways to read one of them."""
    paths = [path.relative_to(directory) for path in directory.rglob("*") if path.is_file()]
    names = [path.as_posix() for path in sorted(paths, key=lambda path: (path.suffix != ".json", path))]
    found = f" In {{directory}}, the run wrote {join_some(names, limit=MAX_FILES)}." if names else ""
    file = next((name for name in names if name.endswith(".json")), "FILE.json")
    option = f'--force --overrides \'{{"metrics": "{{directory}}/{file}"}}\''
    extract = "sh -c 'train && extract', where extract prints such a line"
    return f"{found} To read another JSON file, begin again with {option}; otherwise use {extract}."


def parse_last_line(stdout: str) -> Dict[str, Any]:
    """Return the metrics in the last line as a terminal shows it: a JSON object."""
    pieces = LINE_START_PATTERN.split(COLOUR_PATTERN.sub("", stdout))
    line = next((piece.strip() for piece in reversed(pieces) if piece.strip()), "")
    if line.startswith("{"):
        return _parse_object(line, "the last printed line")
    shown_line = line if len(line) <= MAX_LINE_CHARACTERS else f"... {line[-MAX_LINE_CHARACTERS:]}"
    raise MetricError(f"the last printed line is {shown_line!r}. {EXPECTED_TEXT}")


def _parse_object(content: Union[str, bytes], place: str) -> Dict[str, Any]:
    """Read a JSON object with distinct names. Bytes may be UTF-8, UTF-16 or UTF-32."""
    try:
        mapping = json.loads(content, object_pairs_hook=files.refuse_repeated_keys)
        if isinstance(mapping, dict):
            return files.refuse_repeated_keys(list(files.flatten(mapping)))
        problem = f"is not a JSON object but {files.shorten(mapping)}"
    except UnicodeDecodeError as error:
        problem = f"is not {error.encoding} ({error.reason})"
    except (ValueError, RecursionError) as error:
        problem = f"is not valid JSON ({error})"
    raise MetricError(f"{place} {problem}. {EXPECTED_TEXT}")


# The run.


@CandidateRun.register("program")
@dataclass(frozen=True)
class ProgramRun(CandidateRun):
    """Writes the sets of a run into files, runs the program of a candidate over them, and reads its metrics.

    A run leaves `outcome.json` with its command, and the program's own `output`, which is empty when the program starts
    and deleted if it stays so. Until it has finished, `run.json` has the command. `keep_models` keeps the directory
    `model` that the program made. A trial has few records in all sets together.
    """

    def make_run(self, request: Request, directory: Path) -> ReportedMetrics:
        directory = directory.resolve()
        output = directory / OUTPUT_DIRECTORY
        files.delete(output)
        output.mkdir(mode=files.OWN_DIRECTORY_MODE)
        try:
            placeholder_values = {
                **self._set_paths(request, directory / DATA_DIRECTORY),
                "seed": str(request.random_seed),
                "split_seed": str(request.split_seed),
                "directory": str(output),
            }
            stdout = self._run_command(request, placeholder_values, directory)
            name = self.config.get("metrics", DEFAULT_METRICS)
            path = Path(fill_placeholders(name, placeholder_values))
            is_printed = name == STDOUT or (name == DEFAULT_METRICS and not os.path.lexists(path))
            reported = read_reported(output, stdout, None if is_printed else path, name)
        finally:
            files.delete(directory / DATA_DIRECTORY)
        if not self.keep_models:
            files.delete(directory / MODEL_DIRECTORY)
        with suppress(OSError):
            output.rmdir()  # if it is empty
        return reported

    def _set_paths(self, request: Request, directory: Path) -> Dict[str, str]:
        """Return the files of the sets by part: new ones, or the official ones as they are."""
        data, division = self.config.get("data"), self.division
        if data is None or (division.is_official and not self.is_trial):
            return absolute_paths(data or {})
        limit = MAX_TRIAL_RECORDS if self.is_trial else None
        program_data = ProgramData.read(data, division, self.group_by)
        return program_data.write_sets(directory, split_seed=request.split_seed, division=division, max_records=limit)

    def _run_command(self, request: Request, placeholder_values: Mapping[str, str], directory: Path) -> str:
        command = with_interpreter([fill_placeholders(word, placeholder_values) for word in self.config["command"]])
        files.write_json_file(directory / RUN_FILE, {**self.describe(request), "command": command}, indent=2)
        texts = self.config.get("environment", {}).items()
        environment = {name: fill_placeholders(text, placeholder_values) for name, text in texts}
        working_directory = self.working_directory if Path(self.working_directory).is_dir() else None
        return run_program(command, environment=environment, directory=working_directory)
