import json
import re
from pathlib import Path
from typing import Any, Callable, List

import pytest

from fiesta_allennlp.documents.document_file import field_names, read_documents
from fiesta_allennlp.documents.tasks import Classification, Spans
from fiesta_allennlp.errors import ConfigError, DataError

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
    file = read_documents(write(A, "", B), Classification(), {})
    assert [(d.id, d.line, dict(d.fields)) for d in file.documents] == [
        ("a", 1, {"text": "one"}),
        ("b", 3, {"text": "two"}),
    ]
    assert [d.items[0].gold for d in file.documents] == ["x", "y"]
    assert file.num_items == 2


def test_items_and_other_names(write: Any) -> None:
    lines = [
        {"key": 7, "lang": "en", "mood": "no gold", "parts": [{"text": "p", "mood": "x"}, {"text": "q", "mood": "y"}]},
    ]
    names = field_names("id=key, items=parts,label=mood")
    document = read_documents(write(*lines), Classification(), names).documents[0]
    assert document.id == "7" and document.has_items
    assert document.fields == {"lang": "en", "items": [{"text": "p"}, {"text": "q"}]}
    assert [item.gold for item in document.items] == ["x", "y"]


def test_the_fingerprint_is_of_the_content(write: Any) -> None:
    first = read_documents(write(A, B), Classification(), {}).fingerprint
    assert read_documents(write(A, B), Classification(), {}).fingerprint == first
    assert read_documents(write(B, A), Classification(), {}).fingerprint != first


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], r"has no documents"),
        ([A, "{"], r"line 2: is not valid JSON"),
        ([A, "[1]"], r"line 2: must be a JSON object but is \[1\]"),
        ([A, '{"id": "b", "label": NaN}'], r"line 2: is not valid JSON: NaN is not a JSON value"),
        ([A, {**B, "id": "a"}], r"line 2: the id 'a' appears twice, first in line 1"),
        ([A, {**B, "id": ""}], r"line 2: every document needs a string or a number as 'id' but has "),
        ([A, {**B, "id": None}], r"line 2: every document needs"),
        ([A, {"text": "two", "label": "y"}], r"line 2: every document needs .* --fields id=FIELD"),
        ([A, {"id": "b", "text": "two"}], r"line 2: lacks the gold annotation 'label'; the fields are text"),
        ([A, {"id": "b", "labels": "y"}], r"Is it 'labels'\? Then give --fields label=labels"),
        ([A, {**B, "label": 1.5}], r"line 2: 'label': a label must be a string or a whole number but is 1.5"),
        ([A, {**B, "label": " "}], r"line 2: 'label': a label must"),
        ([A, {**B, "label": ["y"]}], r"line 2: 'label': a label must"),
        ([A, {"id": "b", "items": []}], r"line 2: 'items' must be a list of one or more objects but is \[\]"),
        ([A, {"id": "b", "items": ["y"]}], r"line 2: 'items' must be a list"),
        ([A, {"id": "b", "items": [B, {"text": "z"}]}], r"line 2, item 2: lacks the gold annotation"),
        ([A, {**B, "label": "x"}], r"all 2 items have the label 'x', so no system can be wrong"),
        ([A, {**B, "label": "x>y"}], r"the label 'x>y' must not contain '>'"),
        ([A, {**B, "label": " ? "}], r"no label may be '\?', which stands for answers .* with 'labels' in the systems"),
        (
            [A, '{"id": "b", "text": "\\ud83d", "label": "y"}'],
            r"line 2: contains \\ud83d, which is half of a surrogate",
        ),
        ([A, "[" * 100000], r"line 2: is not valid JSON"),
    ],
    ids=range(21),
)
def test_bad_documents(write: Any, lines: List[Any], message: str) -> None:
    with pytest.raises(DataError, match=r"documents.jsonl.*" + message):
        read_documents(write(*lines), Classification(), {})


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere.jsonl: cannot be read: No such file"):
        read_documents(tmp_path / "nowhere.jsonl", Classification(), {})
    (tmp_path / "binary.jsonl").write_bytes(b'{"id": "\xff"}')
    with pytest.raises(DataError, match=r"binary.jsonl: is not UTF-8.*at byte 8. Save it as UTF-8"):
        read_documents(tmp_path / "binary.jsonl", Classification(), {})


def test_a_positive_label_that_does_not_occur(write: Any) -> None:
    with pytest.raises(DataError, match=r"no item has the label 'z' of --positive-label. The labels are: x, y"):
        read_documents(write(A, B), Classification(positive_label="z"), {})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"id": "a", "tags": "O O"}, r"line 1: 'tags': tags must be a list of strings but is O O"),
        ({"id": "a", "tags": ["X-PER"]}, r"line 1: 'tags': tags must be O, B-... or I-..."),
        ({"id": "a", "spans": "none"}, r"line 1: 'spans': spans must be a list such as"),
        ({"id": "a", "spans": [[3, 1, "P"]]}, r"line 1: 'spans': a span must be"),
        ({"id": "a", "spans": [[True, 2, "P"]]}, r"line 1: 'spans': a span must be"),
        ({"id": "a", "spans": [["0", 2, "P"]]}, r"line 1: 'spans': a span must be"),
        ({"id": "a", "spans": [], "tags": []}, r"more than one gold annotation, one of 'tags' or 'spans'"),
        ({"id": "a", "text": "x"}, r"lacks the gold annotation 'tags' or 'spans'"),
        ({"id": "a", "spans": []}, r"no item has a span, so nothing can be found"),
    ],
    ids=range(9),
)
def test_bad_spans(write: Any, line: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_documents(write(line), Spans(), {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("label", r"'label' must be NAME=FIELD"),
        ("lable=mood", r"'lable=mood' must be NAME=FIELD with a name among id, items, .* Did you mean 'label'\?"),
        ("label=", r"'label=' must be NAME=FIELD"),
    ],
)
def test_bad_field_names(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        field_names(text)
    assert re.search("--fields", text) is None
