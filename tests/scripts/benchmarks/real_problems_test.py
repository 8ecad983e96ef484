import gzip
from importlib import import_module
from pathlib import Path
from typing import Callable

import numpy as np
import pytest

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
    # a has the higher mean of one run in half of the cases, of three in half of them too: two or three ones of three
    for num_runs in (1, 3):
        chosen = problem.best_of_equally_many(num_runs, 4000, rng)
        assert chosen.count("a") / 4000 == pytest.approx(0.5, abs=0.03)
    tied = module.Problem("s", "p", True, {"a": np.ones(3), "b": np.ones(3), "c": np.zeros(3) - np.arange(3)})
    chosen = tied.best_of_equally_many(2, 4000, rng)
    assert chosen.count("a") / 4000 == pytest.approx(0.5, abs=0.03) and "c" not in chosen


def test_every_call_draws_another_seed_and_appends_its_counts(
    tmp_path: Path, scores: Path, run_script: Callable[..., str]
) -> None:
    module, results = import_module("real_problems"), tmp_path / "results.csv"
    for _ in range(2):
        arguments = ("--scores", scores, "--only", "^default$|3 runs", "--selections", 3, "--processes", 1)
        run_script("real_problems", *arguments, "--results", results)
    lines = module.recorded(results)
    assert len({line.seed for line in lines}) == 2
    (row,) = module.pooled(lines, [lines[0].rule], "procedures", ("default",))
    assert row[:4] == ("default", "12", row[2], "1.000") and row[4].startswith("0.000")
    assert module.pooled(lines, ["another"], "procedures", ("default", "3 runs each"))[0][:2] == ("3 runs each", "12")
    page = "<!-- real: sources, default -->\n<!-- end -->"
    table = module.pooled_page(page, lines, [lines[0].rule])
    assert "| default | s | 12 |" in table and module.pooled_page(table, lines, [lines[0].rule]) == table


def test_the_pages_have_the_counts_of_all_lines_of_the_final_rule() -> None:
    module = import_module("real_problems")
    lines, rules = module.recorded(module.RESULTS), module.FINAL_RULE.read_text().split()
    for path in module.PAGES:
        page = path.read_text(encoding="utf-8")
        assert module.BLOCK.search(page) and module.pooled_page(page, lines, rules) == page
