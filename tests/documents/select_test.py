"""What a selection among systems notes about their answers."""

import io

import pytest
from rich.console import Console

from fiesta_allennlp.core.records import Decision, Evaluation, History, Request
from fiesta_allennlp.documents.select import UnknownLabels
from fiesta_allennlp.documents.tasks import Classification

DECISION = Decision("upper")


@pytest.mark.parametrize(
    ("answers", "is_noted"), [(["A", "B", "A"], True), (["A", "b", "A"], False), (["A", "B"], False)]
)
def test_labels_that_are_all_unknown_are_noted_once(answers: "list[str]", is_noted: bool) -> None:
    task = Classification()
    task.check(["a", "b"])
    runs = tuple(
        Evaluation(Request("upper", k, k, 0, 0, 0), 0.0, "macro_f1", metrics=task.counts(["a"], [answer]))
        for k, answer in enumerate(answers)
    )
    output = io.StringIO()
    listener = UnknownLabels(Console(file=output, width=200))
    for _ in range(2):
        listener.on_state(History(("upper",), runs), DECISION)
    assert output.getvalue().count("no answer in the first 3 runs of upper is a gold label") == is_noted
