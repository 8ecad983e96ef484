"""What a run is: honest tables are read, mixtures are refused, and the commands of an error place what differs."""

import re
from itertools import product
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest

from fiesta_allennlp.core.errors import DataError
from fiesta_allennlp.tables.run_table import RunTable
from fiesta_allennlp.tables.table_reader import STATES, read_run_table
from fiesta_allennlp.tables.table_settings import NextSettings
from tests.score_tables import score_rows
from tests.tables.generated import HONEST, MIXED
from tests.tables.pasting import commands_of, paste

Rows = List[Dict[str, Any]]

NUM_TABLES = 20
MAX_FALSE_REFUSALS = 2
"""The most tables of 20 with three metrics of two digits that may be refused: it is 1 of 100."""


def read(rows: Any, **settings: Any) -> RunTable:
    return read_run_table(Path("rows"), NextSettings(**settings), rows)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def typed_rows(rows: Rows) -> str:
    """Write rows to `t.csv`."""
    Path("t.csv").write_text("\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]) + "\n")
    return "fiesta next t.csv"


def is_refused(rows: Rows, options: Dict[str, Any]) -> bool:
    try:
        read(rows, **options)
    except DataError as error:
        return "differ within a candidate" in str(error) or "already has a score" in str(error)
    return False


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_table_is_read(name: str) -> None:
    tables = [HONEST[name](np.random.default_rng(number), 0.02 * (number % 2)) for number in range(NUM_TABLES)]
    num_refused = sum(is_refused(rows, options) for rows, options in tables)
    assert num_refused <= (MAX_FALSE_REFUSALS if name == "rounded_metrics" else 0)


@pytest.mark.parametrize("name", MIXED)
def test_a_mixture_is_refused_with_and_without_an_effect(name: str) -> None:
    tables = [MIXED[name](np.random.default_rng(number), 0.02 * (number % 2)) for number in range(NUM_TABLES)]
    assert all(is_refused(rows, options) for rows, options in tables)


@pytest.mark.parametrize("name", MIXED)
def test_the_first_command_of_a_mixture_is_its_cure(name: str) -> None:
    rows, _ = MIXED[name](np.random.default_rng(3), 0.02)
    pasted = paste(f"{typed_rows(rows)} --columns candidate=model --score f1 --confidence 0.9")
    assert pasted.table is not None and pasted.pastes == 1
    assert "--confidence 0.9" in pasted.error
    assert sum(map(len, pasted.table.scores.values())) == len(rows)
    column = list(rows[0])[-2] if name != "a random search" else "lr"
    placed = pasted.table.columns
    assert column in (placed["split"] if isinstance(rows[0][column], str) else placed["candidate"]).split("+")
    for command in commands_of(pasted.error)[1:]:
        ignored = name == "a random search" and "--ignore" in command
        assert paste(command).pastes == (1 if ignored else 0), "its seeds are no identity without the rates"


def two_tasks() -> Rows:
    """Three seeds of two models on two tasks, as an export of a tracker has them."""
    return [
        {"Name": f"{model}-{task}-{seed}", "model": model, "s": seed, "data": task, "score": mean + lead + seed / 1000}
        for model, lead in (("bert", 0.0), ("roberta", 0.02))
        for task, mean in (("sst2", 0.9), ("mrpc", 0.8))
        for seed in range(3)
    ]


def test_the_factors_with_the_fewest_values_come_first_and_names_of_runs_never() -> None:
    with pytest.raises(DataError) as error:
        read(two_tasks(), columns={"candidate": "model"})
    cause, *remedies = str(error.value).split("\n    ")
    assert cause.startswith("rows: these columns differ") and ": data (mrpc, sst2); s (0, 1, 2). " in cause
    assert remedies == [
        "columns={'candidate': 'model+s', 'split': 'data'}",
        "columns={'candidate': 'model+s', 'task': 'data'}",
        "where=('data=mrpc',)",
        "ignore=('data', 's')",
    ]
    kept = read(two_tasks(), columns={"candidate": "model", "seed": "s"}, where=("data=sst2",))
    assert kept.runs == {"bert": 3, "roberta": 3}
    assert read(two_tasks(), columns={"candidate": "model", "seed": "s", "split": "data"}).num_repeats == 3


def test_a_run_that_was_made_twice_has_a_place_for_its_name_or_is_refused() -> None:
    rows = [row for row in two_tasks() if row["data"] == "sst2"]
    columns = {"candidate": "model", "seed": "s"}
    with pytest.raises(DataError, match=r"seed 0 already .* rows, row 1\. .*Name \(bert-sst2-0, "):
        read([*rows, {**rows[0], "Name": "again"}], columns=columns)
    Path("t.csv").write_text("candidate,seed,score\na,1,.5\nb,1,.6\na,1,.5\n")
    pasted = paste("fiesta next t.csv")
    assert re.search(r"t\.csv, line 4: the same row .*t\.csv, line 2\. Remove", pasted.error)
    Path("t.json").write_text(
        '[{"candidate": "a", "seed": 1, "score": 0.5},\n{"candidate": "a", "seed": 1, "score": 0.5}]'
    )
    pasted = paste("fiesta next t.json")
    assert "row 2: the same row" in pasted.error


def test_a_row_without_a_score_does_not_differ() -> None:
    """A crashed run stopped at another epoch than those that finished."""
    ends = ((0.5, "finished", 3), (0.6, "finished", 3), (0.1, "crashed", 0.4), (0.2, "running", 1))
    rows = [
        {"candidate": name, "seed": seed, "score": score, "state": state, "epoch": epoch}
        for name, (seed, (score, state, epoch)) in product("ab", enumerate(ends))
    ]
    table = read(rows)
    assert (table.num_failed, table.num_unfinished) == (2, 2)


def test_repeats_of_a_split_without_seeds_are_runs_of_one_unit() -> None:
    rows = [
        {"candidate": name, "split": split, "score": 0.1 * split + k / 100}
        for name, split, k in product("ab", (1, 2), range(3))
    ]
    table = read(rows)
    assert (table.num_splits, table.num_repeats, table.knows_seeds) == (2, 3, False)
    history = table.history()
    assert history.split_seeds("a").tolist() == [0, 0, 0, 1, 1, 1] == history.split_seeds("b").tolist()
    assert "each row is a run" in read([{**row, "split": ""} for row in rows]).lines[1]


def test_one_split_is_no_unit() -> None:
    history = read(score_rows({"a": [0.0, 0.1, 0.2], "b": [0.0, 0.1, 0.2]}, split="test")).history()
    assert len({*history.split_seeds("a"), *history.split_seeds("b")}) == 6


@pytest.mark.parametrize("role", ["seed", "split"])
def test_a_summary_among_numbers_is_refused_and_names_alone_are_not(role: str) -> None:
    rows = [{"candidate": name, role: key, "score": 0.5} for name in "ab" for key in ("1", "2", "3", "mean")]
    with pytest.raises(DataError, match=rf"row 4: the {role} is 'mean' among others.*\n    where=\('{role}=1,2,3',\)"):
        read(rows)
    with pytest.raises(DataError, match=r"the task is 'Average'.*\n    where=\('task=sst2,rte',\)"):
        read([{"candidate": name, "task": key, "score": 0.5} for name in "ab" for key in ("sst2", "rte", "Average")])
    with pytest.raises(DataError, match=rf"the {role}s are sets \(dev, test\).*\n    where=\('{role}=dev',\)"):
        read([{"candidate": name, role: key, "score": 0.5} for name in "ab" for key in ("dev", "test")])
    wide = [{"stat": key, "a": 0.5 + k / 9, "b": 0.4} for k, key in enumerate(("1", "2", "mean"))]
    with pytest.raises(DataError, match=r"'stat' look like summaries.*\n    where=\('stat=1,2',\)"):
        read(wide, wide=("a", "b"))
    pooled = [{"pooling": key, "a": 0.5, "b": 0.4} for key in ("mean", "max", "cls")]
    assert read(pooled, wide=("a", "b")).runs == {"a": 3, "b": 3}
    for names in (
        ("mean-shift", "mean_reversion", "overall"),
        ("Max", "Minh", "1"),
        ("sd", "all", "en"),
        ("Total", "Best", "Count"),
    ):
        named = [{"candidate": name, role: key, "score": 0.5} for name in "ab" for key in names]
        assert read(named).runs == {"a": 3, "b": 3}


def test_units_are_compared_and_allowed() -> None:
    rows = score_rows({"a": [80, 80.01, 80.02], "b": [0.8, 0.81, 0.82]})
    with pytest.raises(DataError, match=r"row 1: .* 80, .* rows, row 4 .* 0\.8: percents among fractions\?"):
        read(rows)
    assert read(rows, allow=("units",)).highest == 80.02
    with pytest.raises(DataError, match="percents among fractions"):
        read(score_rows({"a": [0.41, 0.42, -0.01], "b": [38, 39, 37]}))
    for other in ([0.2, 4.1, 3.9], [0.0, 0.0, 80.0], [-0.5, 80.0, 81.0], [0.9, 950.0, 940.0]):
        assert read(score_rows({"a": other})).rows


def test_statistics_epochs_and_second_seeds_are_ignored_and_no_part_of_a_candidate() -> None:
    rows = [
        {
            "candidate": name,
            "seed": k,
            "config.seed": k % 2,
            "best_epoch": 3 + k % 2,
            "rank_f1": k % 3,
            "max_len": length,
            "epochs": length // 16,
            "score": 0.5 + k / 100,
        }
        for name, length, k in product("ab", (32, 64), range(4))
    ]
    pasted = paste(typed_rows(rows))
    assert pasted.table is not None and pasted.pastes == 1
    assert commands_of(pasted.error)[0] == (
        "fiesta next t.csv --columns candidate=candidate+max_len+epochs --ignore config.seed,best_epoch,rank_f1"
    )


def test_a_column_for_each_fold_is_proposed_as_a_pattern() -> None:
    folds = {f"split{k}_test_f1": 0.5 + k / 100 for k in range(3)}
    rows = [{"params": name, **folds, "mean_test_f1": 0.51, "rank_test_f1": 1} for name in "ab"]
    for typed in ("", " --score f1"):
        pasted = paste(typed_rows(rows) + typed)
        assert commands_of(pasted.error)[0] == "fiesta next t.csv --score 'split{split}_test_f1'"
        assert pasted.table is not None and pasted.table.num_splits == 3


@pytest.mark.parametrize(
    ("typed", "corrected"),
    [
        ("--columns candidate=model,score=f1", "--columns candidate=model,score=metrics/f1"),
        ("--columns candidate=mdel --score=-metrics/f1", "--columns candidate=model --score=-metrics/f1"),
        (
            "--columns candidate=model --score metrics/f1 --where sed=1",
            "--columns candidate=model --score metrics/f1 --where seed=1",
        ),
    ],
)
def test_the_end_of_a_name_or_a_near_name_leads_to_the_column(typed: str, corrected: str) -> None:
    rows = [
        {"model": name, "params.arch": name, "seed": k, "metrics/f1": 0.5 + k / 100} for name in "ab" for k in range(3)
    ]
    pasted = paste(f"{typed_rows(rows)} {typed}")
    assert pasted.table is not None and commands_of(pasted.error)[0] == f"fiesta next t.csv {corrected}"


def test_names_with_slashes_are_candidates_and_parts_of_names() -> None:
    rows = [{"Name": f"{name}|{seed}", "score": seed / 10} for name in ("org/a", "org/b") for seed in range(2)]
    table = read(rows, parse=("Name={candidate}|{seed}",))
    assert table.scores == {"org/a": [0.0, 0.1], "org/b": [0.0, 0.1]}


def test_states_have_words_of_their_own() -> None:
    assert {"terminated", "exited"}.isdisjoint(STATES)
    rows = [
        {"candidate": name, "seed": k, "score": 0.5, "status": word}
        for name in "ab"
        for k, word in enumerate(("exited", "gone", "running"))
    ]
    table = read(rows, finished=("EXITED",))
    assert (table.runs, table.num_failed, table.num_unfinished) == ({"a": 1, "b": 1}, 2, 2)
