"""Runs that exist already, which a new selection begins with."""

from pathlib import Path
from typing import Callable, List

import pytest

import fiesta_allennlp
from fiesta_allennlp import report
from fiesta_allennlp.reports.paper import build_checklist, compose_paragraph
from tests.commands.conftest import EQUALLY, POOR, Call
from tests.run_files import rows_of, summary_of

OFFICIAL = ("--splits", "official")
METRIC = ("--metric", "accuracy")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "old.csv"
    rows = [f"{name},{k},{level + k / 100}" for name, level in (("able", 0.9), ("blind", 0.1)) for k in range(2)]
    path.write_text("\n".join(["candidate,seed,score", *rows, "other,0,0.5"]))
    return path


def test_a_selection_begins_with_runs_of_a_table_and_goes_on_without_it(
    candidates: List[str], table: Path, run: Path, call: Call
) -> None:
    options = ("--scores", table, *OFFICIAL, *METRIC, *EQUALLY, "--budget", 6)
    planned = call.done(*candidates, *options, "--dry-run")
    taken = "Taken from old.csv: 4 runs (able 2, blind 2). Left out: other."
    assert taken in planned and not run.exists()
    output = call.done(*candidates, *options, "-s", run)
    assert taken in output and "nobody picked them by their scores" in output
    table.unlink()
    call.done("-s", run, "--recover", "--budget", 8)
    rows = rows_of(run)
    assert [row["file"] for row in rows] == ["old.csv"] * 4 + [""] * 4
    assert [row["replicate"] for row in rows[:4]] == ["-1", "-2", "-1", "-2"]
    assert {row["random_seed"] for row in rows[:4]} == {""} and len({row["split_seed"] for row in rows}) == 8
    able, blind = summary_of(run)["candidates"]
    assert (able["num_evaluations"], able["num_brought"], blind["num_brought"]) == (4, 2, 2)
    made = report(run)
    paragraph = compose_paragraph(made)
    assert "Of the table of earlier runs, other did not take part. 4 of the 8 runs were made earlier." in paragraph
    assert dict(build_checklist(made))["runs made before"].startswith("file old.csv, digest ")
    assert " --scores old.csv " in dict(build_checklist(made))["command to repeat it all"]
    assert any("brought" in note for note in made.notes)


def test_on_random_splits_the_runs_pair_among_themselves(
    candidates: List[str], table: Path, run: Path, call: Call
) -> None:
    call.refused(*candidates, *METRIC, "--scores", table, "-s", run, said="which runs share a split")
    assert not run.exists()
    table.write_text(table.read_text().replace("seed", "split"))
    as_split = ("--scores", table)
    call.done(*candidates, *METRIC, *EQUALLY, *as_split, "--budget", 6, "-s", run)
    splits = {(row["candidate"], row["replicate"]): row["split_seed"] for row in rows_of(run)}
    assert splits["able", "-1"] == splits["blind", "-1"] == "-1" and splits["able", "-2"] == "-2"
    assert splits["able", "0"] == splits["blind", "0"] not in ("-1", "-2")


def test_the_first_new_run_in_another_unit_ends_the_selection(
    candidates: List[str], table: Path, run: Path, call: Call
) -> None:
    table.write_text("candidate,seed,score\nable,0,90\nable,1,91\nblind,0,40\nblind,1,41\n")
    options = ("-s", run, *OFFICIAL, *METRIC, *EQUALLY, "--budget", 6)
    status, output = call(*candidates, "--scores", table, *options)
    assert status == 2 and "able-0: the score is 0" in output and "are from 40 to 91" in output
    call.done("-s", run, "--recover", "--allow", "units")
    assert len(rows_of(run)) == 6


def test_a_table_that_does_not_fit_is_refused_before_anything_is_written(
    candidates: List[str], table: Path, run: Path, call: Call
) -> None:
    options = (*candidates, *METRIC, *OFFICIAL, "-s", run, "--scores")
    for content, said in (
        ("candidate,score\nx,0.5\n", "no candidate of the table is one of this selection.*x.*able, blind"),
        ("candidate,score\nable,much\n", "much"),
        ("model,score\nable,0.5\n", "candidate"),
    ):
        table.write_text(content)
        call.refused(*options, table, said=said)
    call.refused(*options, table.with_name("none.csv"), said="none.csv")
    assert not run.exists()
    call.done(*candidates, *METRIC, *OFFICIAL, *EQUALLY, "--budget", 2, "-s", run)
    table.write_text("candidate,score\nable,0.5\n")
    call.refused("-s", run, "--recover", "--scores", table, said="--scores is for a new selection")


def test_rows_of_python_are_taken_too(candidates: List[str], run: Path) -> None:
    rows = [{"candidate": name, "score": score} for name, score in (("able", 0.9), ("blind", 0.1)) for _ in range(2)]
    options = {"metric": "accuracy", "splits": "official", "strategy": "non_adaptive_fb", "budget": 6}
    result = fiesta_allennlp.select(candidates, directory=run, scores=rows, **options)
    assert [candidate.num_brought for candidate in result.candidates] == [2, 2] and result.num_evaluations == 6


def test_brought_scores_do_not_excuse_a_run_without_the_metric(
    candidates: List[str], table: Path, write_program: Callable[..., str], run: Path, call: Call
) -> None:
    blind = write_program("blind", "true")
    options = ("--scores", table, *OFFICIAL, *METRIC, *EQUALLY, "--budget", 8)
    status, output = call(candidates[0], blind, *options, "-s", run)
    assert status == 2 and "error: blind-0: the last printed line is ''." in output
    write_program("blind", POOR)
    corrected = call.done(candidates[0], blind, "-s", run, "--recover")
    assert "blind: the config was changed, so failed runs start again." in corrected
    assert summary_of(run)["best"] == "able" and summary_of(run)["num_evaluations"] == 8


def test_a_failed_row_is_a_failure_that_is_not_made_again_with_a_corrected_command(
    candidates: List[str], table: Path, write_program: Callable[..., str], run: Path, call: Call
) -> None:
    table.write_text("candidate,score,error\nable,0.9,\nblind,,out of memory\n")
    blind = write_program("blind", "true")
    options = ("--scores", table, *OFFICIAL, *METRIC, *EQUALLY, "--budget", 4)
    assert call(candidates[0], blind, *options, "-s", run)[0] == 2
    write_program("blind", POOR)
    call.done(candidates[0], blind, "-s", run, "--recover")
    entry = summary_of(run)["candidates"][1]
    (failed_run,) = entry["failed_runs"]
    assert (failed_run["run"], entry["num_brought"], summary_of(run)["num_evaluations"]) == ("blind-brought-1", 0, 4)
    assert "out of memory" in failed_run["error"]
