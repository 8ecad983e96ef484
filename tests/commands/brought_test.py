"""Runs that exist already, which a new selection begins with."""

from pathlib import Path

import pytest

import fiesta_allennlp
from fiesta_allennlp import report
from fiesta_allennlp.reports.paragraph import build_checklist, compose_paragraph
from tests.commands.conftest import EQUALLY, POOR, Selections
from tests.run_files import rows_of, summary_of

OFFICIAL = ("--splits", "official")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "old.csv"
    rows = [f"{name},{k},{level + k / 100}" for name, level in (("able", 0.9), ("blind", 0.1)) for k in range(2)]
    path.write_text("\n".join(["candidate,seed,score", *rows, "other,0,0.5"]))
    return path


def test_a_selection_begins_with_runs_of_a_table_and_goes_on_without_it(selections: Selections, table: Path) -> None:
    options = ("--scores", table, *OFFICIAL, *EQUALLY, "--budget", 6)
    planned = selections.begin(*options, "--dry-run")
    taken = "Taken from old.csv: 4 runs (able 2, blind 2). Left out: other."
    assert taken in planned and not selections.run.exists()
    output = selections.begin(*options)
    assert taken in output and "nobody picked them" in output
    table.unlink()
    selections.resume("--budget", 8)
    rows = rows_of(selections.run)
    assert [row["file"] for row in rows] == ["old.csv"] * 4 + [""] * 4
    assert [row["replicate"] for row in rows[:4]] == ["-1", "-2", "-1", "-2"]
    assert {row["random_seed"] for row in rows[:4]} == {""} and len({row["split_seed"] for row in rows}) == 8
    able, blind = summary_of(selections.run)["candidates"]
    assert (able["num_evaluations"], able["num_brought"], blind["num_brought"]) == (4, 2, 2)
    made = report(selections.run)
    paragraph = compose_paragraph(made)
    assert "other did not take" in paragraph and "4 of the 8 runs" in paragraph
    assert dict(build_checklist(made))["runs made before"].startswith("file old.csv, digest ")
    assert " --scores old.csv " in dict(build_checklist(made))["command to repeat it all"]
    assert any("brought" in note for note in made.notes)


@pytest.mark.parametrize("metric", ["accuracy", "metrics.accuracy", "score"])
def test_the_same_metric_may_have_a_longer_name_or_none(selections: Selections, table: Path, metric: str) -> None:
    header, *rows = table.read_text().splitlines()
    table.write_text("\n".join([f"{header},metric", *(f"{row},{metric}" for row in rows)]))
    assert "Taken from old.csv: 4 runs" in selections.begin("--scores", table, *OFFICIAL, "--dry-run")


@pytest.mark.parametrize("metric", ["'-accuracy", "f1", "'-val_loss", "'-score"])
def test_scores_of_another_metric_are_refused(selections: Selections, table: Path, metric: str) -> None:
    header, *rows = table.read_text().splitlines()
    table.write_text("\n".join([f"{header},metric", *(f"{row},{metric}" for row in rows)]))
    said = "old.csv: the metric of the table is " + metric.strip("'-")
    selections.refused(*selections.typed("--scores", table, *OFFICIAL), said=said)


def test_on_random_splits_the_runs_pair_among_themselves(selections: Selections, table: Path) -> None:
    selections.refused(*selections.typed("--scores", table), said="share a split")
    assert not selections.run.exists()
    table.write_text(table.read_text().replace("seed", "split"))
    selections.begin(*EQUALLY, "--scores", table, "--budget", 6)
    splits = {(row["candidate"], row["replicate"]): row["split_seed"] for row in rows_of(selections.run)}
    assert splits["able", "-1"] == splits["blind", "-1"] == "-1" and splits["able", "-2"] == "-2"
    assert splits["able", "0"] == splits["blind", "0"] not in ("-1", "-2")


def test_the_first_new_run_in_another_unit_ends_the_selection(selections: Selections, table: Path) -> None:
    table.write_text("candidate,seed,score\nable,0,90\nable,1,91\nblind,0,40\nblind,1,41\n")
    status, output = selections.call(*selections.typed("--scores", table, *OFFICIAL, *EQUALLY, "--budget", 6))
    assert status == 2 and "able-0: the score is 0" in output and "are from 40 to 91" in output
    selections.resume("--allow", "units")
    assert len(rows_of(selections.run)) == 6


def test_a_table_that_does_not_fit_is_refused_before_anything_is_written(selections: Selections, table: Path) -> None:
    for content, said in (
        ("candidate,score\nx,0.5\n", "no candidate of the table is one of this selection.*x.*able, blind"),
        ("candidate,score\nable,much\n", "much"),
        ("model,score\nable,0.5\n", "candidate"),
    ):
        table.write_text(content)
        selections.refused(*selections.typed(*OFFICIAL, "--scores", table), said=said)
    selections.refused(*selections.typed(*OFFICIAL, "--scores", table.with_name("none.csv")), said="none.csv")
    assert not selections.run.exists()
    selections.begin(*OFFICIAL, *EQUALLY, "--budget", 2)
    table.write_text("candidate,score\nable,0.5\n")
    selections.refused("--recover", "--scores", table, said="--scores is for")


def test_rows_of_python_are_taken_too(selections: Selections) -> None:
    rows = [{"candidate": name, "score": score} for name, score in (("able", 0.9), ("blind", 0.1)) for _ in range(2)]
    options = {"metric": "accuracy", "splits": "official", "strategy": "non_adaptive_fb", "budget": 6}
    result = fiesta_allennlp.select(selections.candidates, directory=selections.run, scores=rows, **options)
    assert [candidate.num_brought for candidate in result.candidates] == [2, 2] and result.num_evaluations == 6


def test_brought_runs_excuse_no_command_without_the_metric_and_a_failed_one_is_not_made_again(
    selections: Selections, table: Path
) -> None:
    table.write_text("candidate,score,error\nable,0.9,\nable,0.91,\nblind,0.1,\nblind,,out of memory\n")
    selections.write("blind", "true")
    status, output = selections.call(*selections.typed("--scores", table, *OFFICIAL, *EQUALLY, "--budget", 8))
    assert status == 2 and "error: blind-0: " in output
    selections.write("blind", POOR)
    corrected = selections.call.done(*selections.candidates, "-s", selections.run, "--recover")
    assert "blind: the config" in corrected
    summary = summary_of(selections.run)
    blind = summary["candidates"][1]
    (failed_run,) = blind["failed_runs"]
    assert (failed_run["run"], blind["num_brought"], summary["num_evaluations"]) == ("blind-brought-2", 1, 8)
    assert "out of memory" in failed_run["error"] and summary["best"] == "able"
