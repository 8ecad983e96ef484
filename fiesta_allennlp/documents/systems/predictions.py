from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterator, List

from fiesta_allennlp.core.errors import DataError
from fiesta_allennlp.core.files import read_jsonl, shorten
from fiesta_allennlp.documents.document_file import Document, DocumentFile
from fiesta_allennlp.documents.systems.base import System, Unanswered
from fiesta_allennlp.documents.tasks import Task
from fiesta_allennlp.selection.texts import unknown_text


@System.register("predictions")
@dataclass(kw_only=True, eq=False)
class Predictions(System):
    """Existing answers from a JSONL file: one object in each line, with the document's `id`.

    `System` documents the remaining arguments. A file of predictions does not use `each` and `body`.

    Args:
        path: the file.
        id: the name of the file's field that holds the id.
    """

    keeps_answers = False

    path: str = field(kw_only=False)
    id: str = "id"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.unknown: Counter[str] = Counter()
        self._answers: Dict[str, Any] = {}
        for line, record in read_jsonl(Path(self.path)):
            key = record.pop(self.id, None)
            if key is None:
                raise DataError(f"{self.path}, line {line}: '{self.id}' is missing in {shorten(record)}.")
            if str(key) in self._answers:
                raise DataError(f"{self.path}, line {line}: the id '{key}' appears twice. Delete one of them.")
            self._answers[str(key)] = record

    def identity(self) -> Dict[str, Any]:
        return {**super().identity(), "type": "predictions", "answers": self._answers}

    def check(self, documents: DocumentFile, task: Task) -> None:
        missing = [document.id for document in documents.documents if document.id not in self._answers]
        if missing:
            number = f"{len(missing)} of {len(documents.documents)} documents in {documents.path}"
            raise DataError(f"{self.path} has no prediction for {number}, such as '{missing[0]}'. Add the predictions.")
        for document in documents.documents:
            try:
                self.unknown.update(task.unknown_labels(self.answers([self.ask(document.id)], document, task)))
            except Unanswered as error:
                remedy = 'For another key, use {"type": "predictions", "path": "...", "answer": "KEY"}.'
                raise DataError(f"{self.path}, document '{document.id}': {error}. {remedy}") from error

    def notes(self) -> Iterator[str]:
        if self.unknown:
            unknown = unknown_text(self.unknown.total(), dict(self.unknown.most_common(3)))
            yield f"answers that are not gold labels: {unknown}."

    def questions(self, document: Document) -> List[Any]:
        return [document.id]

    def ask(self, question: Any) -> Any:
        return self._answers[question]
