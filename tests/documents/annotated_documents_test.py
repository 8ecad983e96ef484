"""Documents and their gold annotations; counts and scores worked out by hand."""

import json
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from fiesta_allennlp.core.errors import ConfigError, DataError
from fiesta_allennlp.documents.annotated_documents import Classification, Spans, parse_field_names, read_documents

A, B = {"id": "a", "text": "one", "label": "x"}, {"id": "b", "text": "two", "label": "y"}


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write_lines(*lines: Any) -> Path:
        path = tmp_path / "documents.jsonl"
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_text("\n".join(texts), encoding="utf-8")
        return path

    return write_lines


def test_documents_with_their_gold_apart(write: Any) -> None:
    file = read_documents(write(A, "", B), Classification())
    found = [(d.id, d.line, dict(d.fields), d.items[0].gold) for d in file.documents]
    assert found == [("a", 1, {"text": "one"}, "x"), ("b", 3, {"text": "two"}, "y")]
    assert file.facts.num_items == 2
    assert read_documents(write(A, "", B), Classification()).fingerprint == file.fingerprint
    assert read_documents(write(B, "", A), Classification()).fingerprint != file.fingerprint


def test_items_and_other_names(write: Any) -> None:
    parts = [{"text": "p", "mood": "x"}, {"text": "q", "mood": "y"}]
    line = {"key": 7, "lang": "en", "mood": "no gold", "parts": parts}
    document = read_documents(write(line), Classification(), "id=key, items=parts,label=mood").documents[0]
    assert document.id == "7" and document.has_items
    assert document.fields == {"lang": "en", "items": [{"text": "p"}, {"text": "q"}]}
    assert [item.gold for item in document.items] == ["x", "y"]


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ([], "no documents"),
        ([A, {**B, "id": "a"}], "line 2: .*'a' appears .*line 1"),
        ([A, {"text": "two", "label": "y"}], "line 2: .* --fields id=FIELD"),
        ([A, {"id": "b", "labels": "y"}], "line 2 .*'label'.* labels.* --fields label=FIELD"),
        ([A, {**B, "label": 1.5}], "line 2: 'label': .* is 1.5"),
        ([A, {**B, "label": ""}], """line 2: 'label': .* is ""."""),
        ([A, {**B, "label": " "}], """line 2: 'label': .* is " "."""),
        ([A, {"id": "b", "items": []}], r"line 2: 'items' .* is \[\]"),
        ([A, {"id": "b", "items": [B, {"text": "z"}]}], "line 2, item 2 .*gold"),
        ([A, {**B, "label": "x"}], "all 2 .*'x'"),
        ([A, {**B, "label": "x>y"}], "'x>y'"),
        ([A, {**B, "label": " ? "}], r"'\?'"),
    ],
)
def test_bad_documents(write: Any, lines: List[Any], named: str) -> None:
    with pytest.raises(DataError, match="documents.jsonl.*" + named):
        read_documents(write(*lines), Classification())
    with pytest.raises(DataError, match="'z' .* x, y"):
        read_documents(write(A, B), Classification(positive_label="z"))


@pytest.mark.parametrize("line", [b"[" * 100000, b"[1]", rb'{"id": "\ud83d"}', b'{"id": "\xff"}'])
def test_a_file_that_cannot_be_read_as_objects(tmp_path: Path, line: bytes) -> None:
    """`points_test.py` has lines that are not valid JSON."""
    (tmp_path / "d.jsonl").write_bytes(line)
    for name in ("d.jsonl", "nowhere.jsonl"):
        with pytest.raises(DataError, match=name):
            read_documents(tmp_path / name, Classification())


@pytest.mark.parametrize(
    ("gold", "named"),
    [
        ({"tags": "O O"}, 'line 1: .tags.: .* is "O O"'),
        ({"spans": "none"}, "line 1: 'spans': .*list"),
        ({"spans": [[3, 1, "P"]]}, "line 1: 'spans': a span"),
        ({"spans": [], "tags": []}, "'tags' or 'spans'"),
        ({"spans": []}, "no item .*span"),
    ],
)
def test_bad_spans(write: Any, gold: Any, named: str) -> None:
    with pytest.raises(DataError, match=named):
        read_documents(write({"id": "a", **gold}), Spans())


def test_bad_options() -> None:
    for text in ("label", "lable=mood", "label="):
        with pytest.raises(ConfigError, match=f"--fields: '{text}'"):
            parse_field_names(text)
    for options in ({"metric": "f_measure"}, {"metric": "f1", "positive_label": "p"}):
        with pytest.raises(ConfigError, match="--metric .*'f"):
            Classification(**options)
    for options in ({"metric": "f1"}, {"positive_label": "p"}):
        with pytest.raises(ConfigError, match="--task|--metric"):
            Spans(**options)


def classification(labels: List[str], **options: Any) -> Classification:
    task = Classification(**options)
    task.check(labels)
    return task


def test_binary_counts() -> None:
    task = classification(["p", "n", "u"], positive_label="p")
    counts = task.counts(["p", "p", "n", "n", "u"], ["p", "n", "p", "?!", "n"])
    assert counts == {"tp": 1, "fp": 1, "fn": 1, "tn": 2}
    assert task.metric == "f_measure"
    assert task.score(counts) == pytest.approx(2 / 4)
    assert classification(["p", "n"], positive_label="p", metric="accuracy").score(counts) == pytest.approx(3 / 5)


def test_confusions_have_all_cells_and_an_unknown_label() -> None:
    task = classification(["a", "b"])
    counts = task.counts(["a", "a", "b"], ["a", "c", "a"])
    expected: Dict[str, int] = {f"{g}>{label}": 0 for g in "ab" for label in "ab?"}
    expected.update({"a>a": 1, "a>?": 1, "b>a": 1})
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
    assert counts == {"tp": 1, "fp": 1, "fn": 1, "tn": 0}
    assert task.score(counts) == 0.5
    with pytest.raises(DataError, match="3 tags for 4 tokens"):
        task.answer(["O", "O", "O"], gold)


def test_sets_of_spans_in_every_form() -> None:
    task = Spans()
    gold = task.gold("spans", [[0, 5, "PER"], {"start": 7, "end": 9, "label": "LOC"}, [0, 5, "PER"], [1, 2]])
    assert gold == (None, frozenset({(0, 5, "PER"), (7, 9, "LOC"), (1, 2, "")}))
    assert task.answer([[7, 9, "LOC"], {"start": 1, "end": 2}], gold) == frozenset({(7, 9, "LOC"), (1, 2, "")})
    counts = task.counts([gold], [frozenset({(7, 9, "LOC")})])
    assert counts == {"tp": 1, "fp": 0, "fn": 2, "tn": 0}
    nothing = task.gold("spans", [])
    assert task.score(task.counts([nothing], [frozenset()])) == 1.0, "nothing to find and nothing found is right"
    assert task.score(task.counts([nothing], [frozenset({(0, 1, "A")})])) == 0.0
