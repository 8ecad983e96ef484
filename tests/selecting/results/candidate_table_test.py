"""The columns of tables of candidates: one list for all outputs."""

import csv
import io
from typing import Any

import pytest
from rich.console import Console

from fiesta_allennlp.reports.report_files import render_candidates, render_html, render_latex
from fiesta_allennlp.selecting.results import candidate_table as module
from fiesta_allennlp.selecting.results.candidate_result import CandidateResult
from fiesta_allennlp.selecting.results.candidate_table import (
    COLUMNS,
    EVERYWHERE,
    Column,
    Table,
    candidate_table,
    num_decimals,
)
from fiesta_allennlp.selecting.results.result import Result
from tests.reports.made_up import by_documents, made_up, with_failures


def on_terminal(table: Table) -> str:
    console = Console(file=io.StringIO(), width=160)
    console.print(table)
    return console.file.getvalue()  # type: ignore[attr-defined]


def share_above(candidate: CandidateResult) -> float:
    return sum(score > 0.65 for score in candidate.scores) / len(candidate.scores)


def test_a_column_of_ones_own_is_one_entry_and_in_all_five_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    made = made_up(2)
    expected = f"{share_above(made.result.candidates[0]):.0%}"
    own = Column("share_above", "above .65", value=share_above, text=lambda value, decimals: f"{value:.0%}")
    monkeypatch.setattr(module, "COLUMNS", [*COLUMNS, own])
    assert own.outputs == EVERYWHERE and len(EVERYWHERE) == 5
    row = on_terminal(candidate_table(made.result)).splitlines()
    assert "above .65" in "".join(row) and any(line.rstrip().endswith(expected) for line in row)
    page = render_html(made, {})
    assert '<th scope="col">above .65</th>' in page and f"<td>{expected}</td>" in page
    latex = render_latex(made)
    assert r"above .65 \\" in latex and expected.replace("%", r"\%") in latex
    first = next(csv.DictReader(io.StringIO(render_candidates(made))))
    assert float(first["share_above"]) == share_above(made.result.candidates[0])
    assert made.result.content()["candidates"][0]["share_above"] == share_above(made.result.candidates[0])


def test_only_columns_with_something_to_show_are_there_and_the_best_is_first() -> None:
    plain, failed, documents = (
        candidate_table(made.result) for made in (made_up(2), with_failures(made_up(3)), by_documents())
    )
    assert list(plain.headings) == ["candidate", "runs", "mean", "sd", "P(best)", "tier", "seconds"]
    assert list(failed.headings) == ["candidate", "runs", "failed", "mean", "sd", "P(best)", "seconds"]
    assert list(documents.headings)[:4] == ["system", "documents", "failed", "macro_f1"]
    candidates = (CandidateResult("a", mean=0.1), CandidateResult("b", mean=0.3, num_pending=2), CandidateResult("c"))
    table = candidate_table(Result("c", None, "f1", candidates, running=True))
    assert [row[0] for row in table.rows] == ["c", "b", "a"] and "running" in table.headings


def test_a_name_is_no_markup() -> None:
    assert "[bold]a" in on_terminal(Table(("name", "n"), [("[bold]a", "1")]))


@pytest.mark.parametrize(("sds", "decimals"), [((), 4), ((0.02,), 4), ((3.4e-5, 0.5), 6), ((1e-9,), 10), ((1e-20,), 4)])
def test_the_smallest_sd_has_two_digits(sds: Any, decimals: int) -> None:
    assert num_decimals([CandidateResult("a", mean=0.5, sd=sd) for sd in sds]) == decimals
