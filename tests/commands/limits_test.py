"""Names and failures without number: what is printed and stored of them has a limit."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable

import pytest

from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.errors import (
    MAX_ERROR_CHARACTERS,
    FiestaError,
    MetricError,
    combined_error,
    describe,
    join_some,
)
from fiesta_allennlp.core.registry import Registrable
from fiesta_allennlp.documents.document_file import read_documents
from fiesta_allennlp.documents.tasks import Classification
from fiesta_allennlp.library import next_runs, replay
from fiesta_allennlp.reports.settings import ReportSettings
from fiesta_allennlp.reports.sources import read_selection
from fiesta_allennlp.selection.candidate_result import MAX_FAILED_RUNS
from fiesta_allennlp.selection.result import Result
from fiesta_allennlp.trainings.candidate_run import ReportedMetrics
from fiesta_allennlp.trainings.pool import FileContent
from fiesta_allennlp.trainings.programs.data import FORMATS, DataFile, Record
from tests.commands.conftest import EQUALLY, Call
from tests.selections import write_selection

MANY = 5000


def test_100000_metrics_are_described_in_a_line() -> None:
    reported = ReportedMetrics(dict.fromkeys(map(str, range(100_000)), 0.5))
    with pytest.raises(MetricError, match="1000, 10000, 10001, 10002, and 99992 more") as raised:
        reported.name_of(["accuracy"])
    assert len(str(raised.value)) < 300


def test_a_program_may_report_100000_metrics(
    write_program: Callable[..., str], reviews: Path, call: Call, in_process: Callable[[str], Call], run: Path
) -> None:
    """Its run keeps them all, and what is shown and stored of the selection stays small."""
    metrics = {f"label-{k:06d}-f1": k / 100_000 for k in range(100_000)}
    (reviews / "good.json").write_text(json.dumps({**metrics, "accuracy": 0.8}))
    (reviews / "without.json").write_text(json.dumps(metrics))
    programs = [
        write_program("printing", f"cat {reviews}/good.json"),
        write_program("writing", f'cp {reviews}/good.json "$5/metrics.json"', metrics=None),
        write_program("without", f"cat {reviews}/without.json"),
    ]
    output = call.done(*programs, *EQUALLY, "--metric", "accuracy", "--budget", 3, "-s", run, "--seed", 3)
    assert "dropped out: without: its first run did not report the metric" in output
    outputs = [output, *(in_process(command).done(run) for command in ("status", "report"))]
    small_files = ("selection.json", "selection.log", "report/report.md", "report/report.html", "report/table.csv")
    outputs += [(run / name).read_text() for name in small_files]
    assert all("label-000008-f1" not in text and len(text) < 200_000 for text in outputs), "only the first 8"
    for name in ("printing", "writing"):
        kept = json.loads((run / "evaluations" / f"{name}-0" / "outcome.json").read_text())["metrics"]
        assert metrics.items() <= kept.items() and kept["accuracy"] == 0.8
    assert (
        json.loads((run / "evaluations" / "without-0" / "reported.json").read_text())["reported"]["values"] == metrics
    )


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
    assert (entry.failures, len(entry.failed_runs)) == (MANY, MAX_FAILED_RUNS)
    assert sum(entry.further_failures.values()) == MANY - MAX_FAILED_RUNS
    replace(result, directory=tmp_path / "run").write()
    assert (tmp_path / "run" / "selection.json").stat().st_size < 50_000
    assert Result.read(tmp_path / "run").candidates[0] == entry


def test_names_and_errors_are_cut() -> None:
    names = [f"n{k}" for k in range(1000)]
    assert join_some(names[:2]) == "n0, n1" and join_some(names, " or ").endswith("n7 or and 992 more")
    assert join_some(names[:20], num_all=30).endswith("n7, and 22 more")
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


class Named(Registrable):
    """What users register many of."""


MANY_NAMES = [f"{k:05d}{'x' * 995}" for k in range(10_000)]
"""Names of 1,000 characters."""

MAX_OUTPUT = 12_000  # characters


def many_registered() -> None:
    for name in MANY_NAMES:
        Named.register(name)(type(name, (Named,), {}))
    Named.by_name("mine")


def many_invalid_candidates() -> None:
    raise combined_error({name: f"no file {name}" for name in MANY_NAMES}, noun="invalid candidates")


def many_metrics() -> None:
    ReportedMetrics(dict.fromkeys(MANY_NAMES, 0.5)).name_of(["accuracy"])


def many_fields_of_a_record() -> None:
    record = Record(b"", 1, dict.fromkeys(MANY_NAMES, 1))
    FORMATS["jsonl"].groups(DataFile("a.jsonl", b"", (record,)), "id")


def many_fields_of_an_item() -> None:
    path = Path("items.jsonl")
    path.write_text(json.dumps({"id": "d", "items": [dict.fromkeys(MANY_NAMES, 1)]}))
    read_documents(path, Classification(), {})


def many_columns() -> None:
    next_runs([dict.fromkeys(MANY_NAMES, 1)])


def many_columns_beside_where() -> None:
    next_runs([{**dict.fromkeys(MANY_NAMES, 1), "candidate": "a", "score": 0.5}], where={"epoch": 1})


def many_values_beside_where() -> None:
    next_runs([{"candidate": "a", "score": 0.5, "step": name} for name in MANY_NAMES], where={"step": 1})


def many_columns_that_differ() -> None:
    next_runs([{**dict.fromkeys(MANY_NAMES, k), "candidate": "a", "seed": 1, "score": 0.5} for k in range(2)])


def many_candidates() -> None:
    replay({name: [0.5, 0.6] for name in MANY_NAMES}, candidates=["b", "c"])


REFUSALS = (
    many_registered,
    many_invalid_candidates,
    many_metrics,
    many_fields_of_a_record,
    many_fields_of_an_item,
    many_columns,
    many_columns_beside_where,
    many_values_beside_where,
    many_columns_that_differ,
    many_candidates,
)


@pytest.mark.parametrize("refuse", REFUSALS)
def test_10000_names_of_1000_characters_make_a_message_of_a_few(
    refuse: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FiestaError, match=r"and 9\d\d\d more") as raised:
        refuse()
    assert len(str(raised.value)) < MAX_OUTPUT


def test_10000_unknown_options_make_a_message_of_a_few(in_process: Callable[[str], Call]) -> None:
    output = in_process("plan").refused(*(f"--{name}" for name in MANY_NAMES), said="and 9992 more")
    assert len(output) < MAX_OUTPUT


def test_a_table_of_many_candidates_and_columns_is_read_back_in_three_lines() -> None:
    rows = [
        {"candidate": name, "seed": k, "score": 0.5, **dict.fromkeys(MANY_NAMES[:9], k // 2)}
        for name in MANY_NAMES[:20]
        for k in range(4)
    ]
    lines = next_runs(rows, budget=100).read_back.lines
    assert "and 12 more" in lines[0] and "and 1 more" in lines[2] and sum(map(len, lines)) < MAX_OUTPUT


def test_the_fields_of_a_file_are_a_line() -> None:
    assert len(FileContent("a.jsonl", 1, "records", tuple(MANY_NAMES)).text) < MAX_OUTPUT
