"""Small inputs in the forms of public result files: what is read of them, or the commands that lead there."""

import glob
from pathlib import Path
from typing import Dict, Tuple

import numpy as np
import pytest

from fiesta_allennlp.tables.run_table import RunTable
from tests.tables.pasting import Pasted, commands_of, paste

Means = Dict[str, Tuple[int, float]]
"""The number of runs and the mean of each candidate."""

HF = {"bert": (4, 0.8992), "roberta": (4, 0.9282)}
TWO_SEEDS = {"bert": (2, 0.815), "roberta": (2, 0.835)}
THREE_SEEDS = {"bert": (3, 0.81), "roberta": (3, 0.84)}
SIZES = {"large": (3, 0.9467), "small": (3, 0.91)}
SHAKY = {"steady": (3, 0.84), "shaky": (3, 0.8133)}
ITEMS = {"samples_A": (60, 0.7333), "samples_B": (60, 0.5)}
TASKS = {"A": (12, 0.7953), "B": (12, 0.7794), "C": (12, 0.7025)}


READ: Tuple[Tuple[str, int, Means, int], ...] = (
    ("traps/missing_tasks.csv --columns candidate=model", 1, SIZES, 0),
    ("wandb_chart.csv --score '{candidate} - eval/f1'", 0, {"bert": (5, 0.64), "roberta": (5, 0.612)}, 5),
    ("traps/wide_std_wins.csv", 1, SHAKY, 0),
    ("traps/summary_rows.csv --columns candidate=model,score=f1", 1, THREE_SEEDS, 0),
    (
        "traps/dropped_leader.csv --columns candidate=model,score=test_f1,state=status",
        0,
        {"bert": (3, 0.849), "roberta": (6, 0.7855), "cnn": (4, 0.7015)},
        0,
    ),
    ("traps/ray.csv --columns candidate=config/model,seed=config/seed,score=mean_accuracy", 1, TWO_SEEDS, 0),
    ("hf/*/all_results.json", 2, HF, 0),
    ("'hf/{candidate}-seed{seed}/all_results.json' --score eval_f1", 0, HF, 0),
    ("'hf/{candidate}-seed{seed}/trainer_state.json' --score best_metric", 0, HF, 0),
    ("inspect.json", 1, {"org/a": (1, 0.61)}, 0),
    ("mlflow_search.json", 1, {"bert": (1, 0.91), "roberta": (1, 0.93)}, 0),
    ("traps/percent_sign.csv", 0, {"a": (2, 81.5), "b": (2, 84.5)}, 0),
    ("traps/seed42.csv", 1, {"a": (2, 0.805), "b": (2, 0.835)}, 0),
    ("traps/missing_splits.csv", 0, {"a": (8, 0.8072), "c": (5, 0.7982), "b": (5, 0.8210)}, 8),
    ("items/samples_A.jsonl items/samples_B.jsonl", 2, ITEMS, 60),
    ("items/samples_A.jsonl items/samples_B.jsonl --columns split=doc_id,score=acc", 0, ITEMS, 60),
    ("model_by_lr.csv", 1, {"a+0.01": (3, 0.95), "a+0.1": (3, 0.8), "b+0.01": (3, 0.9), "b+0.1": (3, 0.89)}, 0),
    ("tasks_by_seeds.csv", 1, TASKS, 0),
    ("gate.csv", 0, {"main": (8, 0.899), "pr": (6, 0.8973)}, 0),
)
"""The arguments, the pastes that it takes, the means, and the number of splits."""

WANDB = "wandb_export.csv --columns candidate=model_name_or_path"

NOTES: Tuple[Tuple[str, str], ...] = (
    (
        "traps/outlier_high.csv",
        "traps/outlier_high.csv, line 5: 8.12 is far from the other runs of a, whose median is 0.8175: is it in "
        "another unit?",
    ),
    (
        "hf_rows.json --columns candidate=run,score=eval_f1",
        "each candidate has one run: is 'run' the candidate? Name it: --columns candidate=COLUMN",
    ),
)

REFUSED: Tuple[Tuple[str, str], ...] = (
    ("cross_validate.json", "the object has only lists (fit_time, score_time, test_f1, train_f1)"),
    ("sacred_metrics.json", "no column is the candidate. Name it with --columns candidate=COLUMN. Columns: test.acc"),
    ("traps/percent_mixed.csv", "line 4: the score is 81.5, but in traps/percent_mixed.csv, line 2 it is 0.81"),
    ("traps/repeated_header.csv --columns candidate=model,score=f1", "line 4: the line repeats the header. Remove it."),
    ("traps/plusminus.csv", "line 2: a score must be a number of at most 1e+100 in magnitude but got '81.0±0.3'"),
    ("traps/merged_cells.csv --columns candidate=model,score=f1", "line 3: 'model' is empty. Every row with a score"),
)

QUIET = ("bimodal", "drift", "noisy", "many200", "one")
"""Tables of a single reading, about which there is nothing to note."""


@pytest.fixture
def inputs(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shared_data / "inputs")


def typed(arguments: str, *choices: int) -> Pasted:
    """Type the arguments of `fiesta next`, of which the shell replaces those with a star and without quotes."""
    words = arguments.split(" ")
    is_glob = [word.endswith(("json", "csv")) and "*" in word for word in words]
    groups = [sorted(glob.glob(word)) if replaced else [word] for word, replaced in zip(words, is_glob, strict=True)]
    return paste("fiesta next " + " ".join(word for group in groups for word in group), *choices)


def means_of(table: RunTable) -> Means:
    return {name: (len(scores), round(float(np.mean(scores)), 4)) for name, scores in table.scores.items()}


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize(("arguments", "pastes", "means", "splits"), READ, ids=[case[0] for case in READ])
def test_an_input_is_read_within_two_pastes(arguments: str, pastes: int, means: Means, splits: int) -> None:
    pasted = typed(arguments)
    assert pasted.table is not None, pasted.error
    assert (means_of(pasted.table), pasted.table.num_splits) == (means, splits)
    assert pasted.pastes == pastes <= 2


@pytest.mark.usefixtures("inputs")
def test_a_sweep_has_candidates_of_two_columns_with_and_without_its_seeds() -> None:
    for arguments, pastes in ((WANDB, 2), (f"{WANDB},seed=,score=test/accuracy", 1)):
        pasted = typed(arguments)
        assert pasted.table is not None and pasted.pastes == pastes
        assert set(map(len, pasted.table.scores.values())) == {3} and len(pasted.table.scores) == 6
        assert "wide+0.03" in pasted.table.scores


@pytest.mark.usefixtures("inputs")
def test_epochs_of_items_are_repeats_or_one_is_kept() -> None:
    arguments = "items/items_by_epochs.csv --columns candidate=model,split=sample_id"
    last, repeats = typed(arguments), typed(arguments, 1)
    assert last.table is not None and repeats.table is not None
    assert {len(scores) for scores in last.table.scores.values()} == {80}
    assert {len(scores) for scores in repeats.table.scores.values()} == {160}
    assert (repeats.table.num_splits, repeats.table.num_repeats) == (80, 2)


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize(("arguments", "note"), NOTES, ids=[case[0] for case in NOTES])
def test_what_may_be_wrong_is_asked(arguments: str, note: str) -> None:
    table = typed(arguments).table
    assert table is not None and note in table.notes


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize("name", QUIET)
def test_nothing_is_asked_about_an_ordinary_table(name: str) -> None:
    table = typed(f"traps/{name}.csv").table
    assert table is not None and table.notes == ()


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize(("arguments", "reason"), REFUSED, ids=[case[0] for case in REFUSED])
def test_what_no_option_can_repair_is_refused(arguments: str, reason: str) -> None:
    pasted = typed(arguments)
    assert pasted.table is None and reason in pasted.error
    assert all("--allow units" in command for command in commands_of(pasted.error))


@pytest.mark.usefixtures("inputs")
def test_answers_of_true_and_false_are_scores() -> None:
    table = typed(
        "items/bool_A.jsonl items/samples_A.jsonl --where id=q0,q1,q7 --score passed --columns split=id"
    ).table
    assert table is not None and table.scores == {"bool_A": [1.0, 1.0, 0.0]}
