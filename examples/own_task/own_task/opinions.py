import json
from typing import Any, Iterable

from allennlp.data import DatasetReader, Instance, Token
from allennlp.data.fields import LabelField, MetadataField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer


@DatasetReader.register("opinions")
class Opinions(DatasetReader):
    """Reads sentences with an opinion, one JSON object a line: `id`, `text` and `label`.

    Sentences of one writer stay in one set of a random split, because of `group_by`. Here ten sentences in a row count
    as one writer's.
    """

    group_by = "writer"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._indexers = {"tokens": SingleIdTokenIndexer(lowercase_tokens=True)}

    def _read(self, file_path: Any) -> Iterable[Instance]:
        with open(file_path, encoding="utf-8") as lines:
            for line in lines:
                found = json.loads(line)
                part, number = found["id"].split("-")
                yield self.text_to_instance(found["text"], found["label"], f"{part}-{int(number) // 10}")

    def text_to_instance(self, text: str, label: str, writer: str) -> Instance:  # type: ignore[override]
        tokens = [Token(word) for word in text.split()]
        fields = {
            "tokens": TextField(tokens, self._indexers),
            "label": LabelField(label),
            "writer": MetadataField(writer),
        }
        return Instance(fields)
