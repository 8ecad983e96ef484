from pathlib import Path

import pytest

from fiesta_allennlp.candidates.programs.data_formats import BYTE_ORDER_MARK, FORMATS, DataFile, read_file
from fiesta_allennlp.candidates.programs.program_data import ProgramData
from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.candidates.splits import OFFICIAL_RATIOS_DIVISION
from fiesta_allennlp.core.errors import DataError

CONTENTS = {
    "jsonl": b'{"a": 1,  "b":"\xc3\xa9"}\r\n\n{"b": "x", "a": 2}',
    "csv": b'a,b\r\n1,"two\nlines, and ""quotes"""\r\n\r\n2,x\r\n',
    "tsv": b'a\tb\n1\t"never closed\n2\tx\n',
    "conll": b"Ada B-PER\nspoke O\n\n\nHi O\n",
    "lines": b"__label__a one\n  \n__label__b two\n",
}


def made(name: str, content: bytes) -> DataFile:
    return FORMATS[name].read(content, f"file.{name}")


def texts(name: str) -> "list[bytes]":
    return [record.text for record in made(name, CONTENTS[name]).records]


def test_records_keep_every_byte() -> None:
    assert texts("jsonl") == [b'{"a": 1,  "b":"\xc3\xa9"}\r\n', b'{"b": "x", "a": 2}\n']
    assert texts("csv") == [b'1,"two\nlines, and ""quotes"""\r\n', b"2,x\r\n"]
    assert texts("tsv") == [b'1\t"never closed\n', b"2\tx\n"]
    assert texts("conll") == [b"Ada B-PER\nspoke O\n", b"Hi O\n"]
    assert texts("lines") == [b"__label__a one\n", b"__label__b two\n"]
    for name, content in CONTENTS.items():
        file = made(name, content)
        again = made(name, FORMATS[name].format_records(file.head, file.records[::-1], by_document=False))
        assert again.head == file.head
        assert [record.text for record in again.records] == texts(name)[::-1]


def test_fields_of_records() -> None:
    fields = {name: [one.fields for one in made(name, content).records] for name, content in CONTENTS.items()}
    assert fields["jsonl"] == [{"a": 1, "b": "é"}, {"b": "x", "a": 2}]
    assert fields["csv"] == [{"a": "1", "b": 'two\nlines, and "quotes"'}, {"a": "2", "b": "x"}]
    assert fields["tsv"] == [{"a": "1", "b": '"never closed'}, {"a": "2", "b": "x"}]
    assert fields["conll"] == [{"0": (b"Ada", b"spoke"), "1": (b"B-PER", b"O")}, {"0": (b"Hi",), "1": (b"O",)}]
    ends = [{"first word": b"__label__a", "last word": b"one"}, {"first word": b"__label__b", "last word": b"two"}]
    assert fields["lines"] == ends


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("jsonl", b'{"a": 1}\n{"a": \n', "file.jsonl, line 2: not valid JSON"),
        ("jsonl", b"[1]\n", "line 1: expected a JSON object"),
        ("jsonl", b'{"a": 1}\n{"a": 1, "a": 2}\n', "file.jsonl, line 2: .* the key 'a' appears twice"),
        ("jsonl", b'{"a": "\xff"}\n', "line 1: not UTF-8"),
        ("csv", b"a,b\n1,2\n3\n", "line 3: expected 2 fields but found 1"),
        ("csv", b'a,b\n1,"open\n', "line 2: not a valid row"),
        ("csv", b"", "is empty"),
        ("jsonl", b'{"id": 1, "id": 2}\n', "line 1: .*the key 'id' appears twice"),
        ("jsonl", b'{\n"a": 1\n}\n', "line 1: not valid JSON.* in each line"),
    ],
)
def test_a_wrong_record_is_named(name: str, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        made(name, content)


def test_groups_are_values_of_a_field_and_each_record_has_one() -> None:
    file = made("jsonl", b'{"doc": [1, 2]}\n{"doc": "b"}\n{"dok": "c"}\n')
    with pytest.raises(DataError, match="line 3: cannot group by 'doc'.* dok"):
        FORMATS["jsonl"].groups(file, "doc")
    with pytest.raises(DataError, match="line 3: cannot group by 'doc'"):
        FORMATS["csv"].groups(made("csv", b"doc,x\nb,1\n,2\n"), "doc")
    assert FORMATS["csv"].groups(made("csv", b"doc,x\nb,1\na,2\n"), "doc") == ["b", "a"]
    with pytest.raises(DataError, match="line 1: cannot group by 'doc'.*: first word, last word"):
        FORMATS["lines"].groups(made("lines", b"x\n"), "doc")


DOCUMENTS = b"-DOCSTART- O\n\nA O\n\nB O\n\n-DOCSTART- O\n\nC O\n\n-DOCSTART- O\n\nA O\n\nB O\n"


def test_sentences_of_a_document_stay_together_with_the_line_that_begins_it() -> None:
    conll = FORMATS["conll"]
    file = made("conll", DOCUMENTS)
    one, two, other, *same = conll.groups(file, "document")
    assert one == two and [one, two] == same and other != one
    written = conll.format_records(b"", [file.records[0], file.records[1], file.records[3]], by_document=True)
    assert written == b"-DOCSTART- O\n\nA O\n\nB O\n\n-DOCSTART- O\n\nA O\n"
    assert conll.format_records(b"", file.records[1:3], by_document=False) == b"B O\n\nC O\n"
    with pytest.raises(DataError, match="by 'paragraph'. Use 'document'"):
        conll.groups(file, "paragraph")
    one, other, again = conll.groups(made("conll", b"A X\n\nB X\n\nA Y\n"), "document")
    assert one == again != other, "without documents each sentence is one"


def test_a_mark_of_the_byte_order_is_no_part_of_a_record(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(BYTE_ORDER_MARK + b"a,b\n1,2\n")
    assert read_file(str(path), FORMATS["csv"]).head == b"a,b\n"
    path.write_bytes(b"a,b\n")
    with pytest.raises(DataError, match=r"a.csv has no records"):
        read_file(str(path), FORMATS["csv"])


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(DataError, match="two columns have the name 'id'"):
        FORMATS["csv"].read(b"id,id,label\n1,2,x\n", "a.csv")


BLOCKS = b"EU B-ORG\nrejects O\n. O\n\nPeter B-PER\nsings O\n\nAda B-PER\nspoke O\n"


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("train.txt", BLOCKS, "train.txt: 7 lines, each a record; the first: 'EU B-ORG'"),
        ("train.conll", BLOCKS, "train.conll: 3 blocks between empty lines, each a record; the first: 'EU B-ORG'"),
        ("train.csv", b"text,label\nfine,1\nbad,0\n", "train.csv: 2 rows under text, label"),
        ("train.csv", b"fine,1\nbad,0\n", "train.csv: 1 rows under fine, 1"),
        ("train.tsv", b"EU\tORG\nsays\tO\n\nA\tO\n", "train.tsv: 2 rows under EU, ORG"),
        ("train.jsonl", b'{"text": "a", "y": 1}\n{"text": "b"}\n', "train.jsonl: 2 objects under text, y"),
        ("train.txt", b"\x1b[2J\n", r"train.txt: 1 lines, each a record; the first: '\\x1b[2J'"),
    ],
)
def test_what_was_read_is_told(tmp_path: Path, name: str, content: bytes, text: str) -> None:
    (tmp_path / name).write_bytes(content)
    data = Settings(candidates=("a", "b"), data=(str(tmp_path / name),)).data_of_commands
    assert data is not None
    assert ProgramData.read(data, OFFICIAL_RATIOS_DIVISION, None).contents_read == (text,)


def test_a_no_break_space_ends_a_sentence() -> None:
    conll = FORMATS["conll"].read(BLOCKS.replace(b"\n\n", b"\n\xc2\xa0\n"), "a.conll")
    assert [len(record.fields["0"]) for record in conll.records] == [3, 2, 2]


def test_utf_16_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n", encoding="utf-16")
    with pytest.raises(DataError, match=r"a.txt is UTF-16"):
        read_file(str(tmp_path / "a.txt"), FORMATS["lines"])
