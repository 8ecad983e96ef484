from pathlib import Path
from typing import List, Mapping, Optional

from allennlp.common import Registrable

from fiesta_allennlp.records import Evaluation, Request


class Evaluator(Registrable):
    """Answers one request with one score. It is sent to worker processes, so it must be picklable and hold no state."""

    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        """Make the evaluation, writing nothing outside `directory`.

        # Raises

        Whatever goes wrong; the executor turns it into a `Failure`.
        """
        raise NotImplementedError

    def salvage(self, request: Request, directory: Path) -> Optional[Evaluation]:
        """The outcome of an evaluation that finished in `directory` but was not recorded, if there is one."""
        return None

    def files(self, request: Request) -> List[str]:
        """The data files that the evaluation reads: what has to be sent to a machine that lacks them."""
        return []

    def made_files(self, request: Request) -> List[str]:
        """Those that were made for this selection, which no other machine can have."""
        return []

    def reading(self, places: Mapping[str, str]) -> "Evaluator":
        """The same evaluator, on a machine that has these files at other places. What it leaves behind names the
        original ones."""
        return self
