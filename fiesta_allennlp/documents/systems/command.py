"""Systems in a separate process, which gets a line of JSON for each question: programs, and archives of AllenNLP."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from fiesta_allennlp.documents.systems.base import Died, System, Unanswered, Workplace, check_number
from fiesta_allennlp.documents.systems.line_process import LineProcess
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.files import digest_of, shortened


class ProcessSystem(System):
    """Asks a system in a separate process, which reads one line of JSON for each question and prints one line for each
    answer.

    `System` documents the remaining arguments.

    Args:
        start_time_limit: the extra seconds that the first answer after a start may take, beyond the time limit.
        tries: the total number of times that a question is asked if the process dies over it.
    """

    speaks_first = False
    """True if the program prints a line when it is ready: `{}`, or `{"error": ...}` if it cannot start."""

    def __init__(self, *, start_time_limit: float = 60.0, tries: int = 2, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if self.parallel != 1:
            raise ConfigError("'parallel' must be 1: a process is asked one question at a time.")
        if isinstance(tries, bool) or not isinstance(tries, int) or tries < 1:
            raise ConfigError(f"'tries' must be a whole number of at least 1 but is {shortened(tries)}.")
        check_number("start_time_limit", start_time_limit)
        self._start_time_limit = float(start_time_limit)
        self._tries = tries
        self._process: Optional[LineProcess] = None
        self._limit = 0.0
        self._is_new = True

    def command(self, workplace: Workplace) -> List[str]:
        raise NotImplementedError

    @property
    def directory(self) -> Optional[Path]:
        """The working directory of the program; None for the current directory."""
        return None

    def open(self, workplace: Workplace) -> None:
        self._limit = workplace.time_limit if self.time_limit is None else self.time_limit
        self._process = LineProcess(self.command(workplace), directory=self.directory, log=workplace.log)
        self._start()

    def ask(self, question: Any) -> Any:
        line = json.dumps(question, ensure_ascii=False)
        for left in reversed(range(self._tries)):
            try:
                return self._parsed(self._once(line))
            except Died:
                if not left:
                    raise
        raise AssertionError("there is at least one try")

    def close(self) -> None:
        if self._process is not None:
            self._process.close()

    def _once(self, line: str) -> str:
        if self._process is None:
            raise Unanswered("it is not open")
        if not self._process.is_running:
            self._start()
        extra = self._start_time_limit if self._is_new else 0.0
        answer = self._process.ask(line, time_limit=self._limit + extra)
        self._is_new = False
        return answer

    def _start(self) -> None:
        if self._process is None:
            return
        self._process.start()
        self._is_new = not self.speaks_first
        if self.speaks_first:
            said = self._parsed(self._process.ask(None, time_limit=self._limit + self._start_time_limit))
            if "error" in said:
                raise ConfigError(str(said["error"]))

    def _parsed(self, line: str) -> Any:
        try:
            return json.loads(line)
        except (ValueError, RecursionError) as error:
            if self._process is not None:
                self._process.kill()  # what it prints next may belong to this question still
            raise Unanswered(f"it answered with a line that is not JSON: {shortened(line)}") from error


@System.register("command")
class Command(ProcessSystem):
    """Asks a program that reads each question as a line of JSON on its standard input and prints each answer as a line.

    The selection starts the program once and keeps it running. It starts the program again if the program died or was
    too slow. A log keeps the program's standard error. The program must send each answer at once: in Python,
    `print(..., flush=True)`.

    `System` and `ProcessSystem` document the remaining arguments.

    Args:
        command: the program and its arguments, as a list. The content of those that are files is part of the identity.
        directory: the working directory of the program (default: the current directory).
    """

    def __init__(self, command: List[str], *, directory: Optional[str] = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(command, list) or not command or not all(isinstance(part, str) for part in command):
            raise ConfigError(
                f"'command' must be a list of strings such as ['python', 'system.py'] but is {shortened(command)}."
            )
        self._command = command
        self._directory = directory
        if directory is not None and not Path(directory).is_dir():
            raise ConfigError(f"'directory' is {directory}, but there is no such directory.")
        if shutil.which(command[0]) is None and not (Path(directory or ".") / command[0]).is_file():
            raise ConfigError(
                f"'command' begins with '{command[0]}', which is neither on the PATH nor an executable file. "
                "Correct it, or give its whole path."
            )

    @property
    def directory(self) -> Optional[Path]:
        return None if self._directory is None else Path(self._directory)

    def command(self, workplace: Workplace) -> List[str]:
        return self._command

    def identity(self) -> Dict[str, Any]:
        files = [Path(self._directory or ".") / part for part in self._command]
        contents = {str(path): digest_of(path) for path in files if path.is_file()}
        return {
            **super().identity(),
            "type": "command",
            "command": self._command,
            "directory": self._directory,
            "files": contents,
        }


@System.register("archive")
class Archive(ProcessSystem):
    """A model from `allennlp train` with its predictor, in a separate process. Each item is one question.

    `System` and `ProcessSystem` document the remaining arguments. An archive does not use `each` and `body`.

    Args:
        path: `model.tar.gz`, or an unpacked serialization directory.
        predictor: a registered name. Give it if the model has no default predictor, or if you want another one.
        inputs: the predictor's input fields, with the document's fields as values, such as `{"sentence": "text"}`. By
            default, all fields go in under their own names. `text` also goes in as `sentence` if there is no such
            field.
        overrides: a JSON text that overrides parts of the archive's config.
        cuda_device: the number of a GPU, or -1 for the CPU.
        num_threads: the number of torch threads.
    """

    speaks_first = True

    def __init__(
        self,
        path: str,
        *,
        predictor: Optional[str] = None,
        inputs: Optional[Dict[str, str]] = None,
        overrides: str = "",
        cuda_device: int = -1,
        num_threads: int = 1,
        start_time_limit: float = 300.0,
        **kwargs: Any,
    ) -> None:
        for key in ("each", "body"):
            if key in kwargs:
                raise ConfigError(f"'{key}' cannot be set for an archive, whose predictor gets one item at a time.")
        body = None if inputs is None else {name: f"${{{field}}}" for name, field in inputs.items()}
        super().__init__(start_time_limit=start_time_limit, each="item", body=body, **kwargs)
        self._path = Path(path)
        if not self._path.exists():
            raise ConfigError(f"{path}: no such archive. Correct the path of its model.tar.gz.")
        self._overrides = overrides
        self._predictor = predictor
        self._machine = {"cuda_device": cuda_device, "num_threads": num_threads}
        self._key = kwargs["answer"].split(".")[0] if kwargs.get("answer") else None

    def identity(self) -> Dict[str, Any]:
        files = [self._path]
        if self._path.is_dir():
            files = [self._path / "config.json", self._path / "best.th"]
        return {
            **super().identity(),
            "type": "archive",
            "model": [digest_of(path) for path in files if path.is_file()],
            "predictor": self._predictor,
            "overrides": self._overrides,
        }

    def ask(self, question: Any) -> Any:
        answer = super().ask(question)
        if isinstance(answer, dict) and set(answer) == {"error"}:
            raise Unanswered(f"its predictor failed with {answer['error']}")
        return answer

    def options(self, packages: Sequence[str]) -> Dict[str, Any]:
        return {
            "path": str(self._path),
            "predictor": self._predictor,
            "overrides": self._overrides,
            "packages": list(packages),
            "key": self._key,
            **self._machine,
        }

    def command(self, workplace: Workplace) -> List[str]:
        options = json.dumps(self.options(workplace.packages))
        return [sys.executable, "-m", "fiesta_allennlp.documents.systems.archive_server", options]
