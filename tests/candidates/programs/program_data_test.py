import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Sequence

import pytest

from fiesta_allennlp.candidates.candidate_types import type_of
from fiesta_allennlp.candidates.config import official_paths
from fiesta_allennlp.candidates.programs.program_data import BYTE_ORDER_MARK, FORMATS, DataFile, ProgramData, read_file
from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.candidates.splits import OFFICIAL_RATIOS_DIVISION, Division, Pool, check_same_pool
from fiesta_allennlp.core.errors import ConfigError, DataError
from tests.conftest import classifier_config
from tests.programs import program_config


def pool_of(config: Dict[str, Any], group_by: Any = None, division: Division = OFFICIAL_RATIOS_DIVISION) -> Pool:
    candidate = type_of(config)
    return candidate.prepare(group_by=group_by, division=division, vectors=Path()).pool


def stock_pool(config: Dict[str, Any], **options: Any) -> Pool:
    instances = pytest.importorskip("fiesta_allennlp.candidates.allennlp.instances")
    return instances.read_pool(config, None, **options)[0]


def rewrite(reviews: Path, change: Any, *, parts: Sequence[str] = ("train", "validation", "test")) -> None:
    """Change every record of the reviews by its position in its file."""
    for part in parts:
        rows = [json.loads(line) for line in (reviews / f"{part}.jsonl").open()]
        lines = [json.dumps({**row, **change(k, row)}) for k, row in enumerate(rows)]
        (reviews / f"{part}.jsonl").write_text("\n".join(lines))


@pytest.mark.parametrize("split_seed", [1, 2])
def test_a_program_gets_the_very_sets_of_an_allennlp_config(reviews: Path, split_seed: int) -> None:
    common, readers = pytest.importorskip("allennlp.common"), pytest.importorskip("allennlp.data")
    config, stock = program_config(reviews, ""), classifier_config(reviews)
    data = ProgramData.read(config["data"], OFFICIAL_RATIOS_DIVISION, None)
    written = data.write_sets(reviews / "sets", split_seed=split_seed, division=OFFICIAL_RATIOS_DIVISION)
    reader = {"type": "resplit", "reader": stock["dataset_reader"], "paths": official_paths(stock)}
    resplit = readers.DatasetReader.from_params(common.Params({**reader, "split_seed": split_seed}))
    for part, path in written.items():
        texts = [" ".join(token.text for token in instance["tokens"]) for instance in resplit.read(part)]
        assert [json.loads(line)["text"] for line in Path(path).read_text().splitlines()] == texts
    assert [Path(path).name for path in written.values()] == ["train.jsonl", "validation.jsonl", "test.jsonl"]
    few = data.write_sets(reviews / "few", split_seed=split_seed, division=OFFICIAL_RATIOS_DIVISION, max_records=18)
    assert Path(few["train"]).read_text().splitlines() == Path(written["train"]).read_text().splitlines()[::4]


def test_the_pool_has_the_sizes_and_groups(reviews: Path) -> None:
    rewrite(reviews, lambda k, row: {"author": f"author {k // 3}"})
    config = program_config(reviews, "")
    pool = pool_of(config)
    assert pool.official == pool.targets == {"train": 40, "validation": 12, "test": 20}
    assert (pool.num_groups, pool.group_by) == (72, None)
    config["data"]["group_by"] = "author"
    assert (pool_of(config).num_groups, pool_of(config).group_by) == (14, "author")
    assert pool_of(config, "none").num_groups == 72
    assert pool_of(config, division=Division(is_official=True)).group_by is None
    two = pool_of(config, division=Division(ratios=(0.5, 0.5), scored="validation"))
    assert two.targets == {"train": 26, "validation": 26} and two.official == {"train": 40, "validation": 12}
    rewrite(reviews, lambda k, row: {"author": str(k) if k < 10 else "many"})
    with pytest.raises(DataError, match="author = 'many' has 42 .*validation set .*12"):
        pool_of(config, "author")


OFFICIAL = Division(is_official=True)


def test_copies_that_a_split_may_tear_apart_are_counted(tmp_path: Path) -> None:
    """Under other ids: one training record twice, and another in the test set."""
    texts = [f"sentence {number}" for number in (*range(20), 3, 5, *range(20, 30))]
    rows = [json.dumps({"id": number, "text": text, "label": "ab"[number % 2]}) for number, text in enumerate(texts)]
    rows[20], rows[21] = rows[3].replace(": 3,", ": 20,"), rows[5].replace(": 5,", ": 21,")
    (tmp_path / "train.jsonl").write_text("\n".join(rows[:21]))
    (tmp_path / "test.jsonl").write_text("\n".join(rows[21:]))
    files = {part: str(tmp_path / f"{part}.jsonl") for part in ("train", "test")}
    config = program_config(tmp_path, "", data={**files, "format": "jsonl"})
    stock = {**classifier_config(tmp_path), "validation_data_path": files["test"]}
    del stock["test_data_path"]
    for pool in (pool_of(config), stock_pool(stock)):
        (note,) = pool.notes
        assert note.startswith("4 of 32 records") and "--group-by" in note
    assert pool_of(config, "text").notes == ()
    (note,) = pool_of(config, division=OFFICIAL).notes
    assert note.startswith("1 of 32 records")
    (tmp_path / "test.jsonl").write_text("\n".join([*rows[22:], rows[5].replace('"b"', '"a"')]))
    assert "2 of 32 records" in "".join(pool_of(config).notes), "another label makes another record"


def test_groups_are_whole_in_the_sets_and_tables_need_one_header(reviews: Path) -> None:
    rewrite(reviews, lambda k, row: {"author": k % 9})
    config = program_config(reviews, "")
    read = ProgramData.read(config["data"], OFFICIAL_RATIOS_DIVISION, "author")
    written = read.write_sets(reviews / "sets", split_seed=5, division=OFFICIAL_RATIOS_DIVISION)
    authors = [
        {json.loads(line)["author"] for line in Path(path).read_text().splitlines()} for path in written.values()
    ]
    assert sum(map(len, authors)) == 9 == len(set().union(*authors))
    (reviews / "a.csv").write_text("text,label\nx,y\n")
    (reviews / "b.csv").write_text("label,text\ny,x\n")
    data = {"train": str(reviews / "a.csv"), "test": str(reviews / "b.csv"), "format": "csv"}
    with pytest.raises(DataError, match="b.csv: the columns .*a.csv"):
        pool_of(program_config(reviews, "", data=data))


# Programs and AllenNLP configs together.


def test_a_reader_of_other_items_is_refused(reviews: Path) -> None:
    fewer = classifier_config(reviews)
    fewer["dataset_reader"]["max_instances"] = 30
    with pytest.raises(ConfigError, match="number of instances is .*train 30"):
        check_same_pool({"stock": stock_pool(fewer), "program": pool_of(program_config(reviews, ""))})
    stock = stock_pool(classifier_config(reviews))
    check_same_pool({"stock": stock, "program": pool_of(program_config(reviews, ""))})


def test_programs_are_compared_by_their_data(reviews: Path) -> None:
    own, pool = pool_of(program_config(reviews, "", data=None)), replace(pool_of(program_config(reviews, "")), data="d")
    check_same_pool({"one": own, "other": own})
    two = pool_of(program_config(reviews, ""), division=Division(ratios=(0.5, 0.5), scored="validation"))
    for other, message in (
        (own, "splits its data itself. (Pass|Add) .*'data'"),
        (replace(two, official=pool.official), "train 40, .*test 20 in one and train 26, validation 26 in"),
        (replace(pool, group_by="id"), "group key is None in one and id .*--group-by"),
        (replace(pool, data="e"), "content of the data files .*d in one and e in"),
    ):
        with pytest.raises(ConfigError, match=f"'one' and 'other' .*{message}"):
            check_same_pool({"one": pool, "other": other})
    configs = {name: replace(pool, fingerprint=f"of {name}") for name in ("one", "other")}
    check_same_pool({"program": pool, "one": configs["one"]})
    with pytest.raises(ConfigError, match="'one' and 'other' .*: the groups or"):
        check_same_pool({"program": pool, **configs})


CONTENTS = {
    "jsonl": b'{"a": 1,  "b":"\xc3\xa9"}\r\n\n{"b": "x", "a": 2}',
    "csv": b'a,b\r\n1,"two\nlines, and ""quotes"""\r\n\r\n2,x\r\n',
    "tsv": b'a\tb\n1\t"never closed\n2\tx\n',
    "conll": b"Ada B-PER\nspoke O\n\n\xc2\xa0\nHi O\n",
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
    assert fields["conll"] == [{"words": (b"Ada", b"spoke")}, {"words": (b"Hi",)}]
    assert fields["lines"] == [{}, {}]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("jsonl", b'{"a": 1}\n{"a": \n', "file.jsonl, line 2: not valid .* in each line"),
        ("jsonl", b"[1]\n", "line 1: .*JSON object"),
        ("jsonl", b'{"a": 1}\n{"a": 1, "a": 2}\n', "file.jsonl, line 2: .*'a' appears twice"),
        ("jsonl", b'{"a": "\xff"}\n', "line 1: not UTF-8"),
        ("csv", b"a,b\n1,2\n3\n", "line 3: expected 2 .* 1"),
        ("csv", b'a,b\n1,"open\n', "line 2: not a valid"),
        ("csv", b"", "is empty"),
        ("csv", b"id,id,label\n1,2,x\n", "two columns .*'id'"),
    ],
)
def test_a_wrong_record_is_named(name: str, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        made(name, content)


def test_groups_are_values_of_a_field_and_each_record_has_one() -> None:
    file = made("jsonl", b'{"doc": [1, 2]}\n{"doc": "b"}\n{"dok": "c"}\n')
    with pytest.raises(DataError, match="line 3: .*'doc'.* dok"):
        FORMATS["jsonl"].groups(file, "doc")
    with pytest.raises(DataError, match="line 3: .*'doc'"):
        FORMATS["csv"].groups(made("csv", b"doc,x\nb,1\n,2\n"), "doc")
    assert FORMATS["csv"].groups(made("csv", b"doc,x\nb,1\na,2\n"), "doc") == ["b", "a"]
    with pytest.raises(DataError, match="line 1: .*'doc'.*: none"):
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
    for content, reason in ((b"a,b\n", "has no records"), ("a,b\n1,2\n".encode("utf-16"), "is UTF-16")):
        path.write_bytes(content)
        with pytest.raises(DataError, match=f"a.csv {reason}"):
            read_file(str(path), FORMATS["csv"])


BLOCKS = b"EU B-ORG\nrejects O\n. O\n\nPeter B-PER\nsings O\n\nAda B-PER\nspoke O\n"


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("train.txt", BLOCKS, "train.txt: 7 lines, .*: 'EU B-ORG'"),
        ("train.conll", BLOCKS, "train.conll: 3 blocks .*: 'EU B-ORG'"),
        ("train.csv", b"text,label\nfine,1\nbad,0\n", "train.csv: 2 rows .* text, label"),
        ("train.jsonl", b'{"text": "a", "y": 1}\n{"text": "b"}\n', "train.jsonl: 2 objects .* text, y"),
        ("train.txt", b"\x1b[2J\n", r"train.txt: 1 lines, .*: '\\\\x1b\[2J'"),
    ],
)
def test_what_was_read_is_told(tmp_path: Path, name: str, content: bytes, text: str) -> None:
    (tmp_path / name).write_bytes(content)
    data = Settings(candidates=("a", "b"), data=(str(tmp_path / name),)).data_of_commands
    assert data is not None
    (read,) = ProgramData.read(data, OFFICIAL, None).pool(OFFICIAL).contents_read
    assert re.fullmatch(text, read)
