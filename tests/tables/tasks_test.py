"""Candidates that are compared by their average over several data sets."""

import csv
import runpy
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest

from fiesta_allennlp import next_runs, plan, replay, report
from fiesta_allennlp.core.errors import ConfigError, DataError, FiestaError
from fiesta_allennlp.selecting.results.candidate_table import show
from fiesta_allennlp.selecting.results.verdict import task_table
from fiesta_allennlp.tables.table_reader import read_brought_runs
from fiesta_allennlp.tables.table_settings import BroughtSettings
from tests.conftest import REPOSITORY

Rows = List[Dict[str, Any]]
SDS = {"easy": 0.01, "hard": 0.02}


def make_rows(means: Dict[str, Dict[str, float]], num_seeds: int = 4, seed: int = 1) -> Rows:
    rng = np.random.default_rng(seed)
    return [
        {"candidate": name, "task": task, "seed": number, "score": mean + rng.normal(0, SDS.get(task, 0.01))}
        for name, own in means.items()
        for task, mean in own.items()
        for number in range(num_seeds)
    ]


MEANS = {"a": {"easy": 0.9, "hard": 0.62}, "b": {"easy": 0.91, "hard": 0.5}}


@pytest.fixture
def seeds_of_tasks(shared_data: Path) -> Path:
    return shared_data / "inputs" / "tasks_by_seeds.csv"


def test_three_tasks_by_four_seeds(seeds_of_tasks: Path) -> None:
    answer = next_runs(seeds_of_tasks, columns={"candidate": "model"})
    result = answer.result
    assert (result.verdict, result.best, result.num_evaluations) == ("best", "A", 36)
    leads = [task.means["A"] - task.means["B"] for task in result.tasks]
    assert result.lead is not None and result.lead.difference == pytest.approx(np.mean(leads))
    assert [(task.leader, task.winner_without) for task in result.tasks] == [("A", "A")] * 3
    assert [task.share_of_lead for task in result.tasks] == pytest.approx(np.array(leads) / sum(leads))
    text = " ".join(map(str, show(answer)))
    assert "A is the best on the average of these 3 data sets with probability > 0.999" in text
    assert "On a new data set of this kind: A is better than B with probability 0.870." in text


def test_the_table_of_tasks_names_the_task_that_makes_the_lead() -> None:
    answer = next_runs(make_rows(MEANS))
    easy, hard = answer.result.tasks
    assert answer.result.leading == "a"
    assert (easy.leader, easy.winner_without, hard.leader, hard.winner_without) == ("b", "a", "a", "b")
    assert (hard.share_of_lead or 0) > 1
    text = " ".join(map(str, show(answer)))
    assert f"hard makes {hard.share_of_lead:.2f} of" in text
    assert "hard, b leads." in text
    table = task_table(answer.result)
    assert [row[0] for row in table.rows] == ["easy", "hard"] and table in show(answer)
    assert answer.result.ranked[0].mean == pytest.approx(np.mean([easy.means["a"], hard.means["a"]]))


def test_the_lead_is_that_of_the_leading_candidate_although_a_better_one_left() -> None:
    failed = [{"candidate": "c", "task": "easy", "seed": 90 + number, "score": "failed"} for number in range(6)]
    answer = next_runs([*make_rows({**MEANS, "c": {"easy": 0.95, "hard": 0.7}}), *failed])
    assert answer.result.unresolved == ("c",) and {task.leader for task in answer.result.tasks} == {"c"}
    shares = [task.share_of_lead for task in next_runs(make_rows(MEANS)).result.tasks]
    assert [task.share_of_lead for task in answer.result.tasks] == pytest.approx(shares)


def test_the_mean_is_that_of_the_tasks_whatever_their_runs() -> None:
    rows = make_rows(MEANS)
    more = [row for row in make_rows(MEANS, num_seeds=9, seed=2) if row["task"] == "easy" and row["seed"] > 3]
    candidate = next_runs([*rows, *more]).result.candidates[0]
    by_task = {t: [r["score"] for r in [*rows, *more] if (r["candidate"], r["task"]) == ("a", t)] for t in SDS}
    assert candidate.mean == pytest.approx(np.mean([np.mean(scores) for scores in by_task.values()]))
    assert candidate.interval is None, "the runs of several tasks are not one sample"


def test_a_task_with_splits_has_its_own_units() -> None:
    rows = [
        {"candidate": name, "task": task, "split": split, "seed": seed, "score": 0.5 + lead + 0.1 * split + seed / 1000}
        for name, lead in (("a", 0.0), ("b", 0.03))
        for task in SDS
        for split in range(3)
        for seed in range(2)
    ]
    answer = next_runs(rows)
    assert answer.table.num_splits == 6 and answer.table.num_repeats == 2
    assert {part.num_units("a") for part in answer.history.by_task.values()} == {3}


def test_a_candidate_that_lacks_a_task_is_refused_or_gets_its_runs() -> None:
    rows = make_rows({**MEANS, "c": {"easy": 0.7}})
    with pytest.raises(DataError, match="'c' has no run .*'hard'") as error:
        next_runs(rows)
    commands = ["where=('task=easy',)", "where=('candidate=a,b',)", "candidates=('c',)"]
    assert [line.strip() for line in str(error.value).splitlines()[1:]] == commands
    answer = next_runs(rows, candidates=["c", "d"], workers=9)
    assert {(run.candidate, run.task) for run in answer.runs} == {("c", "hard"), ("d", "easy"), ("d", "hard")}
    assert len(answer.runs) == 9 and answer.result.tasks == ()
    with pytest.raises(DataError, match="no run on .*'hard'"):
        report(rows)


def test_each_run_has_a_task_the_one_whose_variance_falls_most() -> None:
    close = {name: dict.fromkeys(SDS, 0.7) for name in "ab"}
    answer = next_runs(make_rows(close, num_seeds=6), workers=6, scale="none")
    assert [run.seed for run in answer.runs] == ["6", "7", "8", "9", "10", "11"]
    assert [run.task for run in answer.runs].count("hard") >= 4
    first = next_runs(make_rows({"a": dict.fromkeys(SDS, 0.7)}, num_seeds=1), candidates=["b"], workers=4)
    assert [f"{run.candidate} {run.task}" for run in first.runs] == ["b easy", "b hard", "a easy", "b easy"]


def test_tasks_of_very_different_noise_need_a_scale(tmp_path: Path) -> None:
    rows = make_rows({name: {"easy": mean, "wild": 20 * mean} for name, mean in (("a", 0.9), ("b", 0.8))}, 5)
    for row in rows:
        row["score"] *= 10 if row["task"] == "wild" else 1
    with pytest.raises(DataError, match="sd of the task 'wild'") as error:
        next_runs(rows, allow=["units"])
    assert str(error.value).splitlines()[1:] == ["    scale='none'"]
    assert next_runs(rows, scale="none", allow=["units"]).result.leading == "a"
    path = tmp_path / "sds.csv"
    path.write_text("task,sd\neasy,0.01\nwild,0.1\n")
    scaled = next_runs(rows, scale=f"sd={path}", allow=["units"]).result
    assert scaled.tasks[1].means["a"] == pytest.approx(np.mean([r["score"] for r in rows[5:10]]) / 0.1)
    path.write_text("task,sd\neasy,0.01\nwild,-1\n")
    wrong = {f"sd={path}": "an sd above 0 of wild", "sd=none.csv": "cannot be read", "range": "must be none or sd=FILE"}
    for scale, reason in wrong.items():
        with pytest.raises(FiestaError, match=reason):
            next_runs(rows, scale=scale, allow=["units"])


def test_what_is_about_one_task_refuses_several(tmp_path: Path) -> None:
    rows = make_rows(MEANS)
    for options in ({"strategy": "ttts", "belief": "student_t"}, {"stop": "glr"}, {"budget": 90}):
        with pytest.raises(ConfigError, match="2 tasks need"):
            next_runs(rows, **options)
    with pytest.raises(DataError, match="fiesta replay .* one task, .* 2: easy, hard"):
        replay(rows)
    with pytest.raises(DataError, match="fiesta next rows --where task=NAME --output runs.csv"):
        read_brought_runs(BroughtSettings(), {}, rows)
    with pytest.raises(ConfigError, match="--compare does not support"):
        report(rows, compare=["a", "b"])
    one = next_runs(rows, where=["task=hard"])
    assert one.result.tasks == () and one.result.leading == "a"


def test_a_column_named_task_may_be_a_split_or_ignored() -> None:
    rows = [row for row in make_rows(MEANS) if row["seed"] == 0]
    assert next_runs(rows, columns={"split": "task"}).result.tasks == ()
    assert next_runs(make_rows(MEANS), ignore=["task"], columns={"seed": "", "task": ""}).result.tasks == ()


def test_the_written_table_and_the_report_have_the_tasks(tmp_path: Path, undrawn: None) -> None:
    answer = next_runs(make_rows(MEANS))
    answer.table.write(tmp_path / "runs.csv")
    again = next_runs(tmp_path / "runs.csv")
    assert again.result.tasks == answer.result.tasks
    record = report(tmp_path / "runs.csv", output=tmp_path / "report")
    page = (tmp_path / "report" / "report.html").read_text()
    assert "Tasks, with equal weights" in page and "winner without it" in page
    assert record.comparisons == () and "on the average of these 2 data sets" in " ".join(record.decision)


def test_a_plan_goes_on_from_the_runs_on_each_task(tmp_path: Path) -> None:
    rows = make_rows({"a": dict.fromkeys(SDS, 0.7), "b": dict.fromkeys(SDS, 0.69)}, num_seeds=3)
    path = tmp_path / "runs.csv"
    next_runs(rows).table.write(path)
    done = plan(path, repetitions=40, seed=1)
    assert done.default.runs.low >= 12 and done.claim is None
    assert not done.default.interrupted and done.default.picked > 0.5
    assert done.simulator.true_means["a"] == pytest.approx(next_runs(rows).result.candidates[0].mean)


def test_the_loop_of_two_real_tasks_ends_with_a_winner(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    script = REPOSITORY / "examples" / "tables" / "two_tasks_loop.py"
    runpy.run_path(str(script))["main"](tmp_path / "two.csv")
    assert "svm is the best on the average of these 2 data sets with probability 0.99" in capsys.readouterr().out
    rows = list(csv.DictReader((tmp_path / "two.csv").open()))
    names = {row["candidate"] for row in rows}
    starts = {(name, task, str(split)) for name in names for task in ("wine", "cancer") for split in range(3)}
    assert starts <= {(row["candidate"], row["task"], row["split"]) for row in rows}


def test_a_candidate_without_further_runs_has_scores_on_every_task() -> None:
    rows = make_rows(MEANS)[:-3]
    with pytest.raises(ConfigError, match=r"'b' has 1 of the 2 scores .* Add"):
        next_runs(rows, done=["b"])


def test_names_that_differ_only_in_case_are_asked_about() -> None:
    rows = [
        {"candidate": name, "task": task, "seed": seed, "score": 0.5 + seed / 100 + (name == "b") / 10}
        for name in ("a", "b", "B")
        for task in ("Iris", "iris")
        for seed in range(3)
    ]
    notes = next_runs(rows).table.notes
    assert "'b' and 'B' are 2 candidates" in notes and "'Iris' and 'iris' are 2 tasks" in notes
