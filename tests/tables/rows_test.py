from pathlib import Path
from typing import Any, Dict

import pytest

from fiesta_allennlp.core.errors import ConfigError, DataError
from fiesta_allennlp.tables.planning import replay
from fiesta_allennlp.tables.settings import ReplaySettings
from fiesta_allennlp.tables.sources import PRESETS
from fiesta_allennlp.tables.table import ScoreTable, open_scores

HEADER = "candidate,split,seed,score\n"
METRIC_HEADER = "candidate,split,seed,score,metric\n"


def table(path: Path, text: str, **options: Any) -> ScoreTable:
    path.write_text(text, encoding="utf-8")
    return open_scores(ReplaySettings(scores=str(path), **options))  # type: ignore[return-value]


def test_json_blocks_share_a_split(tmp_path: Path) -> None:
    read = table(tmp_path / "s.json", '{"b": [0.1, 0.2, 0.3, 0.4], "a": [1, 0.6, 0.7, 0.8]}', evaluations_per_split=2)
    assert read.split_names == ["0", "1"]
    assert {name: split.tolist() for name, split in read.splits.items()} == {"b": [0, 0, 1, 1], "a": [0, 0, 1, 1]}
    assert read.scores["a"].tolist() == [1.0, 0.6, 0.7, 0.8]
    assert list(read.true_means().items()) == [("b", pytest.approx(0.25)), ("a", pytest.approx(0.775))]


def test_csv_lines_come_in_any_order(tmp_path: Path) -> None:
    lines = ["a,x,1,0.1", "b,y,1,0.6", "b,x,1,0.5", "a,y,1,0.3", "a,x,2,0.2"]
    read = table(tmp_path / "s.csv", HEADER + "\n".join(lines) + "\n")
    assert read.split_names == ["x", "y"]
    assert {name: split.tolist() for name, split in read.splits.items()} == {"a": [0, 0, 1], "b": [0, 1]}
    assert {name: scores.tolist() for name, scores in read.scores.items()} == {"a": [0.1, 0.2, 0.3], "b": [0.5, 0.6]}


@pytest.mark.parametrize(
    "text",
    [
        "score,note,candidate,seed,split\r\n0.5,x,a,0,0\r\n0.6,,b,0,0\r\n",
        "candidate;split;seed;score\r\na;0;0;0.5\r\nb;0;0;0.6\r\n;;;",
        "candidate\tsplit\tseed\tscore\r\na\t0\t0\t0.5\r\nb\t0\t0\t0.6\r\n\t\t\t",
    ],
)
def test_csv_of_a_spreadsheet_and_other_columns_in_any_order_are_read(tmp_path: Path, text: str) -> None:
    assert table(tmp_path / "s.csv", "\ufeff" + text).true_means() == {"a": 0.5, "b": 0.6}


@pytest.mark.parametrize(
    ("name", "text", "named"),
    [
        ("s.json", "", "JSON"),
        ("s.json", '{"a": [0.1]}', "at least 2 candidates but has 1: a"),
        ("s.json", '{"a": [0.1], "b": [0.1], "a": [0.2]}', "the key 'a' appears twice"),
        ("s.json", '{"a": [0.1, NaN], "b": [0.1]}', "candidate 'a', score 2 of 2: .* 'nan'"),
        ("s.json", '{"a": [0.1], "b": [true]}', "candidate 'b', score 1 of 1: .* 'True'"),
        ("s.csv", HEADER + "a,0,7,0.1\na,0,7,0.2\n", "line 3: candidate 'a', split 0, seed 7 .* in .*s.csv, line 2"),
    ],
)
def test_bad_tables_are_named_with_file_place_and_value(tmp_path: Path, name: str, text: str, named: str) -> None:
    with pytest.raises(DataError, match=f"{name}.*{named}"):
        table(tmp_path / name, text)
    with pytest.raises(DataError, match="'b': the number of scores, 3, .* --evaluations-per-split 2"):
        table(tmp_path / "s.json", '{"a": [1, 2], "b": [1, 2, 3]}', evaluations_per_split=2)


SHARED = HEADER + "a,s,1,.5\na,t,1,.6\nb,s,2,.5\nb,t,3,.4\n"


@pytest.mark.parametrize(
    ("text", "options", "line"),
    [
        (SHARED, {}, "2 splits that all share"),
        (SHARED + "b,u,4,\na,u,4,failed\n", {}, "2 splits that all share; 1 failed, 1 not finished"),
        (SHARED + "b,u,4,.5\n", {}, "3 splits, 2 of them shared by all"),
        (SHARED, {"splits": "independent"}, "each run has a split of its own, so scores are not paired"),
        (SHARED.replace("a,t,1", "a,t,4"), {"splits": "official"}, "no splits: all runs share one official split"),
        ("candidate,split,score\na,,.5\nb,,.6\n", {}, "no splits: all runs share one official split"),
        (
            HEADER + "a,1,1,.5\na,2,2,.6\nb,1,1,.4\nb,2,2,.4\n",
            {},
            "2 splits (equal to the seeds) that all share. If all runs share one official split: --splits official",
        ),
        (HEADER + "a,1,1,.5\na,2,1,.6\nb,3,1,.4\n", {}, "3 splits, 0 of them shared by all"),
    ],
)
def test_the_second_line_says_what_splits_mean(tmp_path: Path, text: str, options: Dict[str, Any], line: str) -> None:
    read_back = table(tmp_path / "s.csv", text, **options).read_back
    assert read_back is not None and read_back.lines[1].startswith(line)


def test_columns_may_have_other_names_and_runs_without_splits_are_not_paired(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("Name,params.model,seed,metrics.f1\nx,a,1,.5\ny,a,2,.6\nz,b,1,.4\n")
    columns = {"candidate": "params.model", "score": "metrics.f1"}
    read = open_scores(ReplaySettings(scores=str(path), columns=columns))
    assert read.on_official_splits and read.true_means() == pytest.approx({"a": 0.55, "b": 0.4})
    assert [list(read.splits[name]) for name in "ab"] == [[0, 1], [2]]
    found = replay(ReplaySettings(scores=str(path), columns=columns, repetitions=1, with_replacement=True))
    assert (found.settings.splits, found.settings.strategy_params()["belief"]) == ("official", {"type": "unpaired"})


def test_a_missing_or_binary_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none.csv"
    with pytest.raises(ConfigError, match="none.csv: no such file"):
        open_scores(ReplaySettings(scores=str(path)))
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="none.csv cannot be read as text"):
        open_scores(ReplaySettings(scores=str(path)))


def test_names_that_a_spreadsheet_would_run_are_read_without_the_apostrophe(tmp_path: Path) -> None:
    read = table(tmp_path / "s.csv", METRIC_HEADER + "'=a,0,0,1,'-f1\n-b,0,0,2,-f1\nA,0,0,3,-f1\n")
    assert list(read.scores) == ["=a", "-b", "A"]
    assert read.minimise


def test_the_released_table_is_read_whole(shared_data: Path) -> None:
    path = shared_data / "scores" / "fiesta_tdsa_test_f1.json"
    read = open_scores(ReplaySettings(scores=str(path), evaluations_per_split=5))
    assert len(read.split_names) == 100
    means = {name: round(mean, 4) for name, mean in read.true_means().items()}
    assert means == pytest.approx(PRESETS["tdsa-12"].true_means())
