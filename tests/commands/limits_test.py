"""Names and failures without number: what is printed and stored of them has a limit."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable

import pytest

from fiesta_allennlp.candidates.candidate import ReportedMetrics
from fiesta_allennlp.candidates.pool import describe_content
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import (
    MAX_ERROR_CHARACTERS,
    MetricError,
    describe,
    join_some,
)
from fiesta_allennlp.reports.report_settings import ReportSettings
from fiesta_allennlp.reports.report_sources import read_selection
from fiesta_allennlp.selecting.results.result import Result
from tests.commands.conftest import Call
from tests.selections import write_selection

MANY = 5000


def test_100000_metrics_are_described_in_a_line() -> None:
    reported = ReportedMetrics(dict.fromkeys(map(str, range(100_000)), 0.5))
    with pytest.raises(
        MetricError, match="1000 = 0.5, 10000 = 0.5, 10001 = 0.5, 10002 = 0.5, and 99992 more"
    ) as raised:
        reported.score("accuracy")
    assert len(str(raised.value)) < 300


def test_thousands_of_failures_are_counted_and_a_few_are_listed(
    in_process: Callable[[str], Call], tmp_path: Path
) -> None:
    write_selection(tmp_path / "run", {"a": [0.8, 0.9], "b": [0.6, 0.7]}, max_failures=10**6).close()
    with closing(sqlite3.connect(RunDirectory(tmp_path / "run").store)) as database, database:
        database.executemany(
            f"INSERT INTO evaluations VALUES ('a', ?, 1, 1, 1, 1, 'failed', ?{', NULL' * 7})",
            [(10 + k, 100 + k) for k in range(MANY)],
        )
        database.executemany(
            "INSERT INTO failures VALUES (NULL, 'a', ?, ?, ?, ?, 1.0, '', NULL, '{}')",
            [(10 + k, 100 + k, ("error", "timeout")[k % 2], f"{k} {'x' * 10_000}") for k in range(MANY)],
        )
    output = in_process("status").done(tmp_path / "run")
    assert f"{MANY - 8} more runs of a" in output and len(output) < 20_000
    result = read_selection(tmp_path / "run", ReportSettings()).result
    entry = result.candidates[0]
    assert entry.failures == MANY
    replace(result, directory=tmp_path / "run").write()
    assert Result.read(tmp_path / "run").candidates[0] == entry


def test_names_and_errors_are_cut() -> None:
    names = [f"n{k}" for k in range(1000)]
    assert join_some(names[:2]) == "n0, n1" and join_some(names, " or ").endswith("n7 or and 992 more")
    error: Any = ValueError("x" * 10**6)
    assert len(describe(error)) < MAX_ERROR_CHARACTERS + 30
    assert json.loads(json.dumps(describe(error))).endswith(" ...")


def test_a_long_command_is_no_file_and_a_long_path_ends_in_one_line(
    write_program: Callable[..., str], reviews: Path, call: Call, in_process: Callable[[str], Call]
) -> None:
    command = f"a=python train.py {{train}} {{test}} {{seed}} {'--option value ' * 30}"
    (reviews / "b.py").touch()
    options = ("--data", reviews / "train.jsonl", "--data", reviews / "test.jsonl", "--metric", "accuracy", "--dry-run")
    assert "train.py" in call.refused(command, "b=b.py {train} {test} {seed}", *options)
    assert "Shorten it with NAME=PATH" in call.refused("n" * 300 + "=" + command, *options)
    for name in ("report", "plan"):
        in_process(name).refused("n" * 300, said="error: n*: File name too long.")


def test_the_fields_of_a_file_are_a_line() -> None:
    assert len(describe_content("a.jsonl", 1, "records", map(str, range(MANY)))) < 300
