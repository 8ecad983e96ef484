import json
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from fiesta_allennlp.documents.systems.base import System, Unanswered, Workplace
from fiesta_allennlp.documents.systems.command import ProcessSystem
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.files import digest_of


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
            raise ConfigError(f"{path}: there is no such archive. Correct the path of its model.tar.gz.")
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
        """Return the options of the process `archive_server`."""
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
