"""The sources of a table: paths with named parts, nested JSON, text in any encoding, and pipes."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from fiesta_allennlp.core.errors import DataError, FiestaError
from fiesta_allennlp.core.files import flatten
from fiesta_allennlp.tables.corrections import match_pattern, propose_pattern
from fiesta_allennlp.tables.table_reader import read_run_table
from fiesta_allennlp.tables.table_settings import NextSettings
from tests.tables.pasting import commands_of, paste

ROWS = "candidate,seed,score\na,1,.5\na,2,.6\nb,1,.4\nb,2,.3\n"
SCORES = {"a": [0.5, 0.6], "b": [0.4, 0.3]}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def scores(path: str, **settings: Any) -> Any:
    return read_run_table(Path(path), NextSettings(scores=path, **settings)).scores


@pytest.mark.parametrize(
    ("pattern", "text", "parts"),
    [
        ("{candidate}/seed{seed}/x.json", "bert/seed3/x.json", {"candidate": "bert", "seed": "3"}),
        ("**/{candidate}.json", "a/b/bert.json", {"candidate": "bert"}),
        ("{candidate}/{candidate}.json", "bert/bert.json", {"candidate": "bert"}),
        ("{candidate}/{candidate}.json", "bert/cnn.json", None),
        ("{candidate}-seed{seed}", "bert-base-seed1", {"candidate": "bert-base", "seed": "1"}),
    ],
)
def test_a_pattern_names_the_parts_of_a_path(pattern: str, text: str, parts: Any) -> None:
    assert match_pattern(pattern, text, "[^/]") == parts


def test_a_directory_is_answered_with_what_to_do() -> None:
    with pytest.raises(FiestaError, match=r"^\.: is a directory\. .*fiesta.report \. "):
        scores(".")


def test_a_decimal_comma_is_read_unless_commas_separate_cells() -> None:
    Path("s.csv").write_text("candidate;seed;score\na;1;90,73 %\nb;1;-88,1 %\n")
    assert scores("s.csv") == {"a": [90.73], "b": [-88.1]}
    Path("c.csv").write_text('candidate,seed,score\na,1,"90,73 %"\nb,1,"-88,1 %"\n')
    with pytest.raises(DataError, match="c.csv, line 2: '90,73 %' .* Write 90.73 % or 9073 %."):
        scores("c.csv")


def test_commas_that_may_separate_thousands_are_refused() -> None:
    for first, second in (("985.5", "1,012"), ("987", "1,234"), ("985,5", "1.012")):
        Path("k.tsv").write_text(f"candidate\tseed\treward\na\t1\t{first}\nb\t1\t{second}\n")
        with pytest.raises(DataError, match="k.tsv, line .*: '.*' has a comma, which"):
            scores("k.tsv", score="reward")
    Path("s.csv").write_text("candidate;seed;score;size\na;1;1;1,500\nb;1;0,912;700\n")
    assert scores("s.csv") == {"a": [1.0], "b": [0.912]}, "the other columns do not matter"


def test_a_file_that_is_there_twice_counts_once() -> None:
    Path("r/a").mkdir(parents=True)
    for run in ("1", "2"):
        Path(f"r/a/{run}").mkdir()
        Path(f"r/a/{run}/m.json").write_text(f'{{"score": 0.{run}}}')
    Path("r/a/best").symlink_to("2")
    assert scores("r/{candidate}/*/m.json") == {"a": [0.1, 0.2]}
    Path("l/b").mkdir(parents=True)
    for run in ("1", "2", "3"):  # as in stores that keep equal contents once
        Path(f"l/b/{run}.json").symlink_to(Path("r/a/1/m.json").resolve())
    assert scores("l/{candidate}/{seed}.json") == {"b": [0.1, 0.1, 0.1]}
    Path("base.csv").write_text("candidate,score\na,0.5\na,0.4\n".replace("candidate,", "x,"))
    Path("bert.csv").symlink_to("base.csv")
    assert list(scores("base.csv", files=("bert.csv",))) == ["base", "bert"], "a link may name another candidate"
    Path("t.csv").write_text("candidate,score\na,0.5\nb,0.6\n")
    assert scores("t.csv", files=("./t.csv",)) == {"a": [0.5], "b": [0.6]}


def test_words_are_scores_in_a_column_of_words_alone() -> None:
    for words in (("pass", "fail", "passed"), ("True", "0", "1")):
        Path("w.csv").write_text("candidate,seed,score\na,1,{}\na,2,{}\nb,1,{}\n".format(*words))
        assert scores("w.csv") == {"a": [1.0, 0.0], "b": [1.0]}
    Path("w.csv").write_text("candidate,seed,state,score\na,1,finished,80.5%\na,2,failed,error\nb,1,,Failed\n")
    assert scores("w.csv") == {"a": [80.5]}
    Path("w.csv").write_text("candidate,seed,score\na,1,1\na,2,fail\n")
    with pytest.raises(DataError, match="line 3: a score must .* 'fail'"):
        scores("w.csv")


def test_a_path_that_matches_in_two_ways_is_refused() -> None:
    with pytest.raises(DataError, match="two ways: candidate = bert-base, seed = 1; or candidate = bert, "):
        match_pattern("{candidate}-{seed}", "bert-base-1")


def test_files_of_one_name_are_answered_with_their_pattern() -> None:
    assert propose_pattern(["r/bert/1/m.csv", "r/cnn/2/m.csv"]) == "r/{candidate}/{seed}/m.csv"
    assert propose_pattern(["r/bert-seed1/m.csv", "r/cnn-seed1/m.csv", "r/cnn-seed2/m.csv"]) == (
        "r/{candidate}-seed{seed}/m.csv"
    )
    assert propose_pattern(["r/seed1/m.csv", "r/seed2/m.csv"]) == "", "no part is a candidate"
    for name in ("bert", "cnn"):
        for seed in (1, 2):
            Path(f"r/{name}/{seed}").mkdir(parents=True)
            Path(f"r/{name}/{seed}/m.csv").write_text(f"f1\n0.{seed}\n")
    pasted = paste("fiesta next r/bert/1/m.csv r/bert/2/m.csv r/cnn/1/m.csv r/cnn/2/m.csv --score f1 --workers 2")
    assert commands_of(pasted.error) == ["fiesta next 'r/{candidate}/{seed}/m.csv' --score f1 --workers 2"]
    assert pasted.table is not None and pasted.table.scores == {"bert": [0.1, 0.2], "cnn": [0.1, 0.2]}
    assert pasted.table.files == tuple(f"r/{name}/{seed}/m.csv" for name in ("bert", "cnn") for seed in (1, 2))
    with pytest.raises(FiestaError, match=r"r/\{candidate\}/none.csv: no file"):
        scores("r/{candidate}/none.csv")
    Path("r/cnn/2/m.csv").write_text("f1,seed\n0.2,3\n")
    with pytest.raises(DataError, match="r/cnn/2/m.csv, line 2: 'seed' is '3', .*'2'"):
        scores("r/{candidate}/{seed}/m.csv", score="f1")


def test_names_of_nested_objects_and_of_named_entries_are_joined_by_dots() -> None:
    row = {"a": {"b": 1, "c": {"d": 2}}, "m": [{"key": "f1", "value": 0.5}, {"key": "acc", "value": 0.6}], "l": [1, 2]}
    assert dict(flatten(row)) == {"a.b": 1, "a.c.d": 2, "m.f1": 0.5, "m.acc": 0.6, "l": [1, 2]}
    same = [{"name": "a", "n": 1}, {"name": "a", "n": 2}]
    assert dict(flatten({"x": same}))["x"] == same, "equal names name nothing"


def test_objects_of_lists_say_nothing_but_python_may_pass_candidates() -> None:
    Path("s.json").write_text(json.dumps(SCORES))
    with pytest.raises(DataError, match=r"s.json: .* lists \(a, b\)"):
        scores("s.json")
    table = read_run_table(Path("rows"), NextSettings(), SCORES)
    assert (table.scores, table.has_splits, table.knows_seeds) == (SCORES, False, False)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_spreadsheet_has_any_encoding_and_its_decimal_comma(encoding: str) -> None:
    Path("s.csv").write_bytes("\r\n".join(ROWS.replace(",", ";").replace(".", "0,").splitlines()).encode(encoding))
    assert scores("s.csv") == SCORES
    Path("s.csv").write_bytes(ROWS.replace("b", "ü").encode("cp1252"))
    with pytest.raises(DataError, match=r"\(byte \d+\)\. Save it as UTF-8"):
        scores("s.csv")


def test_the_separator_of_lines_is_the_most_frequent_of_the_header() -> None:
    for separator in ("\t", ";", "|"):
        Path("s.txt").write_text(ROWS.replace(",", separator))
        assert scores("s.txt") == SCORES


def test_a_line_is_that_on_which_its_record_begins() -> None:
    Path("s.csv").write_text('candidate,note,score\na,"x\ny",.5\n\nb,z,much\n')
    with pytest.raises(DataError, match="s.csv, line 5: a score must"):
        scores("s.csv")
    for text, said in (
        (ROWS + "a,3\n", "line 6: the line has 2 cells, but the header has 3"),
        ("candidate,score,score\na,1,2\n", "line 1: the column 'score' appears twice"),
        ("", "s.csv is empty"),
        ('candidate,score\na,"1', "line 2: not a valid row"),
    ):
        Path("s.csv").write_text(text)
        with pytest.raises(DataError, match=said):
            scores("s.csv")


def test_a_pipe_is_read_and_a_url_is_said_to_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in (ROWS, json.dumps([{"candidate": "a", "score": 0.5}, {"candidate": "b", "score": 0.4}])):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        table = read_run_table(Path("-"), NextSettings(scores="-"))
        assert (set(table.scores), table.name, table.files) == ({"a", "b"}, "standard input", ())
    with pytest.raises(DataError, match="^https://example.org/a.csv is a URL."):
        scores("https://example.org/a.csv")


def test_what_needs_another_package_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("s.xlsx").write_bytes(b"PK\x03\x04")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(FiestaError, match="s.xlsx .*: pip install pandas openpyxl"):
        scores("s.xlsx")


@pytest.mark.parametrize(("file", "package"), [("s.xlsx", "openpyxl"), ("s.parquet", "pyarrow")])
def test_a_spreadsheet_and_a_column_file_are_read(file: str, package: str) -> None:
    pytest.importorskip(package)
    frame = pytest.importorskip("pandas").read_csv(io.StringIO(ROWS))
    frame.to_excel(file, index=False) if package == "openpyxl" else frame.to_parquet(file)
    assert scores(file) == SCORES
