"""A system of your own for `fiesta documents`: it looks for a word.

python examples/own_classes/system.py
"""

import json
import tempfile
from pathlib import Path
from typing import Any

from fiesta_allennlp import choose_system
from fiesta_allennlp.documents.system import System


@System.register("keyword")
class Keyword(System):
    """Answers `good` if the text contains the word."""

    def __init__(self, *, word: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.word = word

    def identity(self) -> Any:
        return {**super().identity(), "word": self.word}

    def ask(self, question: Any) -> Any:
        return {"label": "good" if self.word in question["text"] else "bad"}


texts = ["a fine day", "a bad day", "a fine dish", "a poor dish"] * 10
root = Path(tempfile.mkdtemp())
with (root / "texts.jsonl").open("w") as out:
    for number, text in enumerate(texts):
        out.write(json.dumps({"id": number, "text": text, "label": "good" if "fine" in text else "bad"}) + "\n")
for word in ("fine", "day"):
    (root / f"{word}.jsonnet").write_text(json.dumps({"type": "keyword", "word": word}))

systems = [str(root / name) for name in ("fine.jsonnet", "day.jsonnet")]
result = choose_system(systems, documents=str(root / "texts.jsonl"), directory=str(root / "keywords"))
print(result.best, result.confidence)
