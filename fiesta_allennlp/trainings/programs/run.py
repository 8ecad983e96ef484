"""Runs a program on one split with given seeds, and returns the score that it reports."""

import os
import re
import signal
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Dict, List, Mapping, Optional, Sequence

from fiesta_allennlp.core.directory import DATA_DIRECTORY, MODEL_DIRECTORY, OUTPUT_DIRECTORY
from fiesta_allennlp.core.errors import ProgramError, ProgramKilledError, escape_invisible
from fiesta_allennlp.core.files import delete
from fiesta_allennlp.core.records import Request
from fiesta_allennlp.isolation.process_tree import end_below
from fiesta_allennlp.trainings.candidate_run import (
    CandidateRun,
    metrics_in_directory,
    metrics_in_file,
    metrics_in_line,
)
from fiesta_allennlp.trainings.config import Config, moved
from fiesta_allennlp.trainings.programs.config import (
    STDOUT,
    code_of,
    filled,
    filled_command,
    placeholders_of,
    program_paths,
)
from fiesta_allennlp.trainings.programs.pool import read_data, write_sets

CHUNK, MOST_KEPT = 2**16, 2**22  # bytes of the output: of one reading, and of its end
SHELL = 128  # a shell adds it to the number of the signal that ended its program
MOST_LINES, MOST_CHARACTERS = 3, 300  # of the output in an error
SECONDS_TO_END = 10.0  # for the output of a program that has ended, where its children cannot be killed


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
    echoes = [_Echo(process.stdout, to=1), _Echo(process.stderr, to=2)]
    for echo in echoes:
        echo.start()
    status = process.wait()
    end_below(os.getpid())
    for echo in echoes:
        echo.join(SECONDS_TO_END)
    stdout, stderr = (echo.end() for echo in echoes)
    if status != 0:
        raise _error_of(status, last_lines(stderr) or last_lines(stdout))
    return stdout


class _Echo(threading.Thread):
    """Writes what a program writes to a file descriptor of this process, and keeps the end of it."""

    def __init__(self, stream: IO[bytes], *, to: int) -> None:
        super().__init__(daemon=True)
        self._stream, self._to = stream, to
        self._tail = bytearray()
        self._start = ""  # the text that takes the place of a beginning that was not kept
        self._failed: Optional[OSError] = None

    def run(self) -> None:
        while chunk := os.read(self._stream.fileno(), CHUNK):
            self._tail += chunk
            if len(self._tail) > 2 * MOST_KEPT:
                del self._tail[:-MOST_KEPT]
                self._start = "... "
            try:
                while chunk and self._failed is None:
                    chunk = chunk[os.write(self._to, chunk) :]
            except OSError as error:  # read on, because the program would wait forever
                self._failed = error

    def end(self) -> str:
        """Return the end of the output. Raise an `OSError` if the log could not take all of it."""
        if self._failed is not None:
            raise self._failed
        return self._start + self._tail.decode("utf-8", "replace").rstrip()


def _error_of(status: int, output: str) -> Exception:
    end = f". Last output: {output}" if output else " and printed nothing."
    number = -status if status < 0 else status - SHELL
    if number not in signal.valid_signals():
        return ProgramError(f"the program exited with status {status}{end}")
    why = ", often for lack of memory" if number == signal.SIGKILL else ""
    shell = f"; its shell exited with status {status}" if status > 0 else ""
    return ProgramKilledError(
        f"the program was killed by signal {number} ({signal.strsignal(number)}{why}){shell}{end}"
    )


def last_lines(text: str) -> str:
    """Return the last lines of an output that are not empty, in one line, cut if long. Control characters, which a
    terminal would obey, are written as escapes."""
    lines = [line.strip() for line in re.split(r"[\r\n]+", text) if line.strip()]
    end = escape_invisible(" / ".join(lines[-MOST_LINES:]), keep="\t")
    return end if len(end) <= MOST_CHARACTERS else f"... {end[-MOST_CHARACTERS:]}"


@dataclass(frozen=True)
class ProgramRun(CandidateRun):
    """Writes the sets of a run into files, runs the program of a candidate over them, and reads its metrics.

    A run leaves `program.json`, `outcome.json` and the program's own `output`, which is empty when the program starts.
    `keep_models` keeps the directory `model` that the program made. `most_records` limits all sets together, for a
    trial.
    """

    description = "program.json"

    keep_models: bool = False
    most_records: Optional[int] = None

    def metrics_of(self, request: Request, directory: Path) -> Mapping[str, Any]:
        directory = directory.resolve()
        output = directory / OUTPUT_DIRECTORY
        delete(output)
        output.mkdir()
        config = moved(self.config, self.places)
        try:
            values = {
                **self._sets(config, request, directory / DATA_DIRECTORY),
                "seed": str(request.random_seed),
                "split_seed": str(request.split_seed),
                "directory": str(output),
            }
            metrics = _metrics(config, self._run(config, request, values, directory), values)
        finally:
            delete(directory / DATA_DIRECTORY)
        if not self.keep_models:
            delete(directory / MODEL_DIRECTORY)
        return metrics

    def note_on_metric(self, reported: str) -> str:
        if not reported.startswith("eval_") or not {"validation", "test"} <= placeholders_of(self.config):
            return ""
        return (
            " Hugging Face's Trainer uses eval_ for its validation file, so this may not be the test score. Make "
            "the program predict on {test}, or pass {test} as the validation file."
        )

    def files(self, request: Request) -> List[str]:
        """Return the data files, and the files that the command names."""
        paths = self.division.used_paths(program_paths(self.config))
        return [*paths.values(), *map(self._absolute, code_of(self.config))]

    def _sets(self, config: Config, request: Request, directory: Path) -> Dict[str, str]:
        """Return the files of the sets by part: new ones, or the official ones as they are."""
        paths = self.division.used_paths(program_paths(config))
        if not paths or (self.division.is_official and self.most_records is None):
            return paths
        data = read_data(config["data"], paths, self.group_by)
        seed, division, most = request.split_seed, self.division, self.most_records
        written = write_sets(data, directory, split_seed=seed, division=division, most=most)
        return {part: str(path) for part, path in written.items()}

    def _run(self, config: Config, request: Request, values: Mapping[str, str], directory: Path) -> str:
        command = [self.places.get(self._absolute(part), part) for part in filled_command(config, values)]
        self.describe(request, directory, command=command)
        return run_program(
            command,
            environment={name: filled(text, values) for name, text in config.get("environment", {}).items()},
            directory=self.working_directory if Path(self.working_directory).is_dir() else None,
        )

    def _absolute(self, part: str) -> str:
        return os.path.abspath(os.path.join(self.working_directory, part))


def _metrics(config: Config, stdout: str, values: Mapping[str, str]) -> Dict[str, Any]:
    path = config.get("metrics")
    if path is None:
        return metrics_in_directory(Path(values["directory"]), stdout)
    return metrics_in_line(stdout) if path == STDOUT else metrics_in_file(Path(filled(path, values)))
