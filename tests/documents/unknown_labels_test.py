"""Answers that are no gold label: counted for each system, with the commonest."""

import json
from pathlib import Path
from typing import Dict

import pytest

from fiesta_allennlp.documents.document_file import read_documents
from fiesta_allennlp.documents.systems.system import Predictions
from fiesta_allennlp.documents.tasks import Classification
from fiesta_allennlp.selecting.results.result_words import unknown_text


def write_lines(path: Path, labels: Dict[str, str]) -> Path:
    path.write_text("".join(json.dumps({"id": id_, "label": label}) + "\n" for id_, label in labels.items()))
    return path


@pytest.mark.parametrize("positive_label", [None, "tie"])
def test_predictions_are_counted_in_the_dry_run(tmp_path: Path, positive_label: "str | None") -> None:
    task = Classification(positive_label=positive_label)
    gold = write_lines(tmp_path / "gold.jsonl", {"1": "tie", "2": "win", "3": "tie", "4": "win"})
    documents = read_documents(gold, task, {})
    for labels, notes in (
        ({"1": "Tie", "2": "?!", "3": "Tie", "4": "win"}, ['answers that are not gold labels: 3: "Tie" 2, "?!" 1.']),
        ({"1": "win", "2": "win", "3": "tie", "4": "win"}, []),
    ):
        system = Predictions(str(write_lines(tmp_path / "a.jsonl", labels)))
        system.check(documents, task)
        assert list(system.notes()) == notes


def test_no_unknown_answers_are_an_empty_cell() -> None:
    assert unknown_text(0, {}) == ""
