import gzip
from importlib import import_module
from pathlib import Path
from typing import Any, Callable, Dict

import numpy as np
import pytest
from scipy import stats

from fiesta_allennlp.tables.simulator import wilson_interval

HEADER = "source,problem,paired,minimise,candidate,number,score\n"


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    """Two problems of one source: b leads by far in a paired table of accuracies, x in errors without pairs."""
    rows = [
        f"s,p,1,0,{name},{k},{score + 0.1 * (k % 2) + 0.001 * k * (1 + k % 2) * (name == 'b')}"
        for name, score in (("a", 0.5), ("b", 0.7))
        for k in range(6)
    ]
    rows += [
        f"s,q,0,1,{name},{k},{error + 0.01 * (k % 2)}" for name, error in (("x", 0.1), ("y", 0.3)) for k in range(6)
    ]
    path = tmp_path / "problems.csv.gz"
    path.write_bytes(gzip.compress((HEADER + "\n".join(rows) + "\n").encode()))
    return path


def test_a_problem_knows_its_truth(scores: Path) -> None:
    p, q = import_module("real_problems").read_problems(scores)
    assert p.true_means() == pytest.approx({"a": 0.55, "b": 0.754})
    assert q.true_means() == pytest.approx({"x": -0.105, "y": -0.305}), "lower errors are better"
    assert q.sd == pytest.approx(np.std([0, 0.01] * 3, ddof=1))
    assert q.losses == pytest.approx({"x": 0, "y": 0.2 / q.sd}) and q.gap == pytest.approx(0.2 / q.sd)
    assert p.paired and not p.on_official_splits and q.on_official_splits


def test_the_run_to_run_sd_leaves_the_effects_of_splits_out() -> None:
    module, rng = import_module("real_problems"), np.random.default_rng(1)
    noise, splits = rng.normal(0, 1, (4, 5000)), rng.normal(0, 9, 5000)
    scores = {name: row + splits for name, row in zip("abcd", noise, strict=True)}
    assert module.Problem("s", "p", True, scores).sd == pytest.approx(1, rel=0.03)


def test_equal_runs_choose_by_the_mean_and_ties_by_chance() -> None:
    module = import_module("real_problems")
    rng = np.random.default_rng(1)
    problem = module.Problem("s", "p", False, {"a": np.array([0.0, 1.0]), "b": np.array([0.6, 0.6])})

    def shares(problem: Any, num_runs: int) -> np.ndarray:
        leaders = problem.choose_leaders(problem.draw_equally(num_runs, 4000, rng), rng)
        return np.bincount(leaders, minlength=len(problem.scores)) / 4000

    # a has the higher mean of one run in half of the cases, of three in half of them too: two or three ones of three
    for num_runs in (1, 3):
        assert shares(problem, num_runs)[0] == pytest.approx(0.5, abs=0.03)
    tied = module.Problem("s", "p", True, {"a": np.ones(3), "b": np.ones(3), "c": np.zeros(3) - np.arange(3)})
    assert shares(tied, 2) == pytest.approx([0.5, 0.5, 0], abs=0.03)


@pytest.mark.parametrize(("paired", "alternative"), [(True, stats.ttest_rel), (False, stats.ttest_ind)])
def test_tests_name_a_leader_that_passes_against_every_rival(paired: bool, alternative: Callable[..., Any]) -> None:
    rng = np.random.default_rng(3)
    drawn = rng.normal(0, [[[1.0]], [[1.5]], [[0.5]]], (3, 300, 12)) + np.array([0.9, 0, 0.2])[:, None, None]
    problem = import_module("real_problems").Problem("s", "p", paired, dict(zip("abc", drawn[:, 0], strict=True)))
    leaders = drawn.mean(axis=2).argmax(axis=0)
    options: Dict[str, Any] = {} if paired else {"equal_var": False}
    for number, is_named in enumerate(problem.passes_tests(drawn, leaders)):
        rivals = [row[number] for place, row in enumerate(drawn) if place != leaders[number]]
        best = drawn[leaders[number], number]
        p_values = [alternative(best, rival, alternative="greater", **options).pvalue for rival in rivals]
        assert is_named == (max(p_values) < 0.05)


def test_intervals_resample_problems_and_not_selections() -> None:
    module = import_module("real_problems")
    results = [
        module.SelectionOutcome(problem, best, True, 9, 0.97)
        for number in range(40)
        for problem in [module.Problem("s", f"p{number}", False, {"a": np.ones(3), "b": np.array([0, 0.5, 0.1])})]
        for best in (["b"] if number < 4 else ["a"]) * 50
    ]
    lines = list(module.count_outcomes(results, rule="r", procedure="default", seed=1))
    low, high = module.interval(lines, "wrong", "selections")
    # 4 of 40 problems: the standard deviation over problems is 0.047, and 0.0067 if all 2,000 selections were apart
    assert low == pytest.approx(0.1 - 1.96 * 0.047, abs=0.02) and high == pytest.approx(0.1 + 1.96 * 0.047, abs=0.03)
    right = [line for line in lines if not line.wrong]
    assert module.interval(right, "wrong", "selections") == pytest.approx(wilson_interval(0, 36))
    single = [line for line in lines if line.problem == "p0"]
    assert module.interval(single, "wrong", "named") == pytest.approx(wilson_interval(50, 50))


def test_every_call_draws_another_seed_and_appends_its_counts(
    tmp_path: Path, scores: Path, run_script: Callable[..., str]
) -> None:
    module, results = import_module("real_problems"), tmp_path / "results.csv"
    for _ in range(2):
        arguments = ("--scores", scores, "--only", "^default$|3 runs", "--selections", 3, "--processes", 1)
        run_script("real_problems", *arguments, "--results", results)
    lines = module.read_rows(results, module.ResultRow)
    assert len({line.seed for line in lines}) == 2
    (row,) = module.pool_rows(lines, [lines[0].rule], "procedures", ("default",))
    assert row[:4] == ("default", "12", row[2], "1.000") and row[4].startswith("0.000")
    assert module.pool_rows(lines, ["another"], "procedures", ("default", "3 runs each"))[0][:2] == (
        "3 runs each",
        "12",
    )
    assert {line.problem for line in lines} == {"p", "q"}
    (certain,) = module.pool_rows(lines, [lines[0].rule], "reported", ("default",))
    assert certain[:3] == ("default", "above 0.98", "12")
    page = "<!-- real: sources, default -->\n<!-- end -->"
    table = module.update_page(page, lines, [lines[0].rule])
    assert "| default | s | 12 |" in table and module.update_page(table, lines, [lines[0].rule]) == table
