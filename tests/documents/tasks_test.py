"""Counts and scores worked out by hand."""

from typing import Any, Dict, List

import pytest

from fiesta_allennlp.documents.tasks import Classification, Spans
from fiesta_allennlp.errors import ConfigError, DataError


def classification(labels: List[str], **options: Any) -> Classification:
    task = Classification(**options)
    task.check(labels)
    return task


def test_binary_counts() -> None:
    task = classification(["p", "n", "u"], positive_label="p")
    counts = task.counts(["p", "p", "n", "n", "u"], ["p", "n", "p", "?!", "n"])
    assert counts == {"count:tp": 1, "count:fp": 1, "count:fn": 1, "count:tn": 2}
    assert task.metric == "f_measure"
    assert task.score(counts) == pytest.approx(2 / 4)
    assert classification(["p", "n"], positive_label="p", metric="accuracy").score(counts) == pytest.approx(3 / 5)


def test_confusions_have_all_cells_and_an_unknown_label() -> None:
    task = classification(["a", "b"])
    counts = task.counts(["a", "a", "b"], ["a", "c", "a"])
    expected: Dict[str, float] = {f"count:{g}>{label}": 0.0 for g in "ab" for label in "ab?"}
    expected.update({"count:a>a": 1.0, "count:a>?": 1.0, "count:b>a": 1.0})
    assert counts == expected
    # a: tp 1, fp 1, fn 1 -> 1/2; b: 0
    assert task.score(counts) == pytest.approx(0.25)
    assert classification(["a", "b"], metric="accuracy").score(counts) == pytest.approx(1 / 3)
    assert task.score(task.counts(["a"], ["a"])) == 1.0, "macro is over the labels that occur"


def test_labels_may_be_numbers_and_truth_values() -> None:
    task = Classification()
    assert [task.gold("label", value) for value in (1, True, " x ")] == ["1", "true", "x"]
    assert task.answer(False, "true") == "false"


def test_spans_of_bio_tags() -> None:
    task = Spans()
    gold = task.gold("tags", ["B-PER", "I-PER", "O", "B-LOC"])
    assert gold == (4, frozenset({(0, 1, "PER"), (3, 3, "LOC")}))
    counts = task.counts([gold], [task.answer(["B-PER", "I-PER", "I-LOC", "O"], gold)])
    assert counts == {"count:tp": 1, "count:fp": 1, "count:fn": 1, "count:tn": 0}
    assert task.score(counts) == 0.5
    with pytest.raises(DataError, match="3 tags for 4 tokens"):
        task.answer(["O", "O", "O"], gold)


def test_sets_of_spans_in_every_form() -> None:
    task = Spans()
    gold = task.gold("spans", [[0, 5, "PER"], {"start": 7, "end": 9, "label": "LOC"}, [0, 5, "PER"], [1, 2]])
    assert gold == (None, frozenset({(0, 5, "PER"), (7, 9, "LOC"), (1, 2, "")}))
    assert task.answer([[7, 9, "LOC"], {"start": 1, "end": 2}], gold) == frozenset({(7, 9, "LOC"), (1, 2, "")})
    nothing = task.gold("spans", [])
    assert task.score(task.counts([nothing], [frozenset()])) == 1.0, "nothing to find and nothing found is right"
    assert task.score(task.counts([nothing], [frozenset({(0, 1, "A")})])) == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "f_measure"}, r"macro_f1 or accuracy for classification without --positive-label but got"),
        ({"metric": "f1", "positive_label": "p"}, r"f_measure or accuracy for classification with --positive-label"),
    ],
)
def test_bad_metrics(options: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Classification(**options)
    with pytest.raises(ConfigError, match=r"--positive-label is for --task classification|--metric must be f_measure"):
        Spans(**{**options, "metric": "f1"})
