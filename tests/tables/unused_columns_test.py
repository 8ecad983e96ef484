"""Columns that nothing uses: what follows from where their values repeat."""

from typing import Any, Dict, List

import pytest

from fiesta_allennlp import next_runs
from fiesta_allennlp.core.errors import DataError

TASK_MEANS = {"sst2": 0.9, "mrpc": 0.8}


def two_tasks() -> List[Dict[str, Any]]:
    """Three seeds of two models on two tasks, as an export of a tracker has them."""
    return [
        {"Name": f"{model}-{task}-{seed}", "model": model, "s": seed, "task": task, "score": mean + lead + seed / 1000}
        for model, lead in (("bert", 0.0), ("roberta", 0.02))
        for task, mean in TASK_MEANS.items()
        for seed in range(3)
    ]


def lines_of(rows: List[Dict[str, Any]], **columns: str) -> List[str]:
    answer = next_runs(rows, columns={"candidate": "model", **columns})
    return list(answer.read_back.lines)


def test_two_scores_of_a_run_in_two_tasks_are_answered_with_a_task_and_never_with_the_name_of_the_run() -> None:
    with pytest.raises(DataError) as error:
        next_runs(two_tasks(), columns={"candidate": "model", "seed": "s"})
    assert str(error.value).endswith("They differ in task (sst2, mrpc). Keep one: --where task=sst2.")
    kept = next_runs(two_tasks(), columns={"candidate": "model", "seed": "s"}, where={"task": "sst2"})
    assert kept.read_back.runs == {"bert": 3, "roberta": 3}


def test_two_columns_that_tell_scores_apart_together_are_both_kept() -> None:
    rows = [{**row, "size": size, "score": row["score"] - size / 100} for size in (1, 2) for row in two_tasks()]
    with pytest.raises(DataError) as error:
        next_runs(rows, columns={"candidate": "model", "seed": "s"})
    assert str(error.value).endswith("They differ in task (sst2, mrpc). Keep one: --where task=sst2 --where size=1.")


def test_a_run_that_was_made_twice_has_no_task() -> None:
    rows = [row for row in two_tasks() if row["task"] == "sst2"]
    with pytest.raises(DataError, match=r"They differ in Name \(bert-sst2-0, again\). .*--columns seed=NAME"):
        next_runs([*rows, {**rows[0], "Name": "again"}], columns={"candidate": "model", "seed": "s"})


def test_the_column_with_which_scores_vary_most_comes_first() -> None:
    rows = [{"s": row["s"], **row} for row in two_tasks()]
    assert lines_of(rows)[-1] == (
        "differs within a candidate, not used: task = sst2, mrpc (all); s = 0, 1, 2 (all). To keep one: "
        "--where task=sst2"
    )
    task, seed = next_runs(rows, columns={"candidate": "model"}).read_back.varying
    assert task.share == pytest.approx(0.99968, abs=1e-4)
    assert seed.share == 0.0


def test_no_advice_makes_runs_without_a_score_vanish() -> None:
    epochs = {0: 3, 1: 3, 2: 4}
    rows: List[Dict[str, Any]] = [
        {"model": model, "seed": seed, "epoch": epoch, "score": 0.9 + seed / 100, "state": "finished"}
        for model in ("bert", "roberta")
        for seed, epoch in epochs.items()
    ]
    rows += [
        {"model": "bert", "seed": 3, "epoch": 0.4, "score": 0.7, "state": "crashed"},
        {"model": "bert", "seed": 4, "epoch": 1.2, "score": None, "state": "running"},
    ]
    read_back = next_runs(rows, columns={"candidate": "model"}).read_back
    assert (read_back.num_failed, read_back.num_unfinished) == (1, 1)
    assert read_back.lines[-1] == "differs within a candidate, not used: epoch = 3, 4 (all)"
    assert read_back.varying[0].num_elsewhere == 2


def test_a_run_of_its_own_for_each_candidate_is_asked_about() -> None:
    rows = [row for row in two_tasks() if row["task"] == "sst2"]
    first, second, *_ = next_runs(rows, columns={"candidate": "Name"}).read_back.lines
    assert first == (
        "6 candidates with 1 run each: is 'Name' the candidate, or 'model' (bert, roberta), or 's' (0, 1, 2)? Name it "
        "with --columns candidate=COLUMN"
    )
    assert second.startswith("rows: 6 runs of 6 candidates")


def test_the_first_run_of_each_candidate_is_no_question() -> None:
    rows = [{"candidate": name, "seed": 0, "score": score} for name, score in (("a", 0.1), ("b", 0.2))]
    assert next_runs(rows).read_back.lines[0].startswith("rows: 2 runs of 2 candidates of one run each")
