from abc import abstractmethod
from pathlib import Path
from typing import Optional

from fiesta_allennlp.core.records import Evaluation, Request
from fiesta_allennlp.core.registry import Registrable


class Evaluator(Registrable):
    """Runs one request and returns one score.

    A process on any machine makes the runs from the evaluator's registered name and its fields. An evaluator is
    therefore a frozen dataclass of plain data, such as texts, numbers and lists, and it is registered by a module that
    workers import: one of `--include-package`.
    """

    @abstractmethod
    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        """Run the request, and write nothing outside `directory`.

        Raises:
            Exception: if anything goes wrong; the executor turns it into a `Failure`.
        """

    def for_request(self, request: Request) -> "Evaluator":
        """Return the evaluator of this request alone, which executors are given and send to workers."""
        return self

    def salvage(self, request: Request, directory: Path) -> Optional[Evaluation]:
        """Return the outcome of a run that finished in `directory` but was not recorded, if there is one."""
        return None

    def remedy(self, directory: Path) -> str:
        """Return the options, after a space, with which `--recover` may find the metric that the run in `directory` did
        not report."""
        return ""
