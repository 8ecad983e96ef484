import gzip
from importlib import import_module
from pathlib import Path
from typing import Any, Callable, List

import numpy as np
import pytest

from fiesta_allennlp.tables.simulation.simulator import wilson_interval

NUM_SCORES = 600
HEADER = "source,problem,paired,minimise,candidate,number,score\n"


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    """Two problems of one source: b leads by far in a paired table of accuracies, x in errors without pairs."""
    rows = []
    for number in range(NUM_SCORES):
        k, trifle = number % 6, 1e-9 * (number - (NUM_SCORES - 1) / 2)  # no two runs are equal
        rows += [f"s,p,1,0,a,{number},{0.5 + 0.1 * (k % 2)}"]
        rows += [f"s,p,1,0,b,{number},{0.7 + 0.1 * (k % 2) + 0.001 * k * (1 + k % 2) + trifle}"]
        rows += [f"s,q,0,1,{name},{number},{e + 0.01 * (k % 2) + trifle}" for name, e in (("x", 0.1), ("y", 0.3))]
    path = tmp_path / "problems.csv.gz"
    path.write_bytes(gzip.compress((HEADER + "\n".join(rows) + "\n").encode()))
    return path


def test_a_problem_knows_its_truth(scores: Path) -> None:
    p, q = import_module("published_scores").read_problems(scores)
    assert p.true_means() == pytest.approx({"a": 0.55, "b": 0.754})
    assert q.true_means() == pytest.approx({"x": -0.105, "y": -0.305}), "lower errors are better"
    assert q.sd == pytest.approx(np.std([0, 0.01] * (NUM_SCORES // 2), ddof=1))
    assert q.losses == pytest.approx({"x": 0, "y": 0.2 / q.sd}) and q.gap == pytest.approx(0.2 / q.sd)
    assert p.paired and not p.on_official_splits and q.on_official_splits


def test_the_run_to_run_sd_leaves_the_effects_of_splits_out() -> None:
    module, rng = import_module("published_scores"), np.random.default_rng(1)
    noise, splits = rng.normal(0, 1, (4, 5000)), rng.normal(0, 9, 5000)
    scores = {name: row + splits for name, row in zip("abcd", noise, strict=True)}
    assert module.Problem("s", "p", True, scores).sd == pytest.approx(1, rel=0.03)


def outcome(problem: Any, best: str) -> Any:
    return import_module("real_results").SelectionOutcome(problem, best, True, 9)


def count(outcomes: List[Any], **columns: Any) -> List[Any]:
    return list(
        import_module("real_results").count_outcomes(
            outcomes, **{"rule": "r", "procedure": "default", "seed": 1, **columns}
        )
    )


def make_problem(name: str, source: str = "s") -> Any:
    scores = {"a": np.ones(3), "b": np.array([0, 0.5, 0.1])}
    return import_module("published_scores").Problem(source, name, False, scores)


def test_intervals_resample_data_sets_and_not_selections() -> None:
    tables = import_module("real_results")
    lines = count(
        [
            outcome(make_problem(f"p{number}"), best)
            for number in range(40)
            for best in (["b"] if number < 4 else ["a"]) * 50
        ]
    )
    low, high = tables.interval(lines, "wrong", "selections")
    # 4 of 40 data sets: the standard deviation over them is 0.047, and 0.0067 if all 2,000 selections were apart
    assert low == pytest.approx(0.1 - 1.96 * 0.047, abs=0.02) and high == pytest.approx(0.1 + 1.96 * 0.047, abs=0.03)
    right = [line for line in lines if not line.wrong]
    assert tables.interval(right, "wrong", "selections") == pytest.approx(wilson_interval(0, 36))
    single = [line for line in lines if line.problem == "p0"]
    assert tables.interval(single, "wrong", "named") == pytest.approx(wilson_interval(50, 50))
    two_tables = count([outcome(make_problem(name, "automl"), "b") for name in ("1h_adult", "4h_adult")])
    assert tables.interval(two_tables, "wrong", "named") == pytest.approx(wilson_interval(2, 2)), "one data set"


def test_unknown_procedures_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown procedure: guess"):
        import_module("real_results").TABLES.fill("<!-- real: opened procedures, guess -->\n<!-- end -->")


def test_every_call_draws_another_seed_and_appends_its_counts(
    tmp_path: Path, scores: Path, run_script: Callable[..., str]
) -> None:
    common, tables, results = import_module("common"), import_module("real_results"), tmp_path / "results.csv"
    for _ in range(2):
        arguments = ("--scores", scores, "--only", "^default$|^10 runs", "--selections", 3)
        run_script("real_problems", *arguments, "--results", results)
    lines = common.read_rows(results, tables.ResultRow)
    assert len({line.seed for line in lines}) == 2
    assert {line.problem for line in lines} == {"p", "q"}
    _, row = tables.procedure_table(lines, ("default",))
    assert (row[0], *row[2:4]) == ("default", "1.000", "0.000 (0.000-0.658)")
    _, row = tables.gap_table(lines, ("default",))
    assert row[:2] == ("default", "above 0.8")
    assert sum(line.selections for line in lines if line.procedure == "default") == 12
