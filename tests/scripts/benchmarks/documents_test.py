"""The benchmark of trained systems on a small task: its systems are trained, replayed and counted."""

import csv
import json
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Callable, List

import numpy as np
import pytest

from fiesta_allennlp.tables.simulator import wilson_interval
from tests.scripts.conftest import cells_of

SIZE = 60


@pytest.fixture
def benchmark(run_script: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The script with one cell: `a` is right on 9 of 10 items, `b` on 6 and `c` on 3."""
    pytest.importorskip("allennlp")
    script = import_module("documents")
    rng, task = np.random.default_rng(3), tmp_path / "small"
    task.mkdir()
    gold = [[str(label) for label in rng.choice(["x", "y"], 2)] for _ in range(SIZE)]
    rows = [{"id": i, "items": [{"label": label} for label in labels]} for i, labels in enumerate(gold)]
    (task / "documents.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for name, share in (("a", 0.9), ("b", 0.6), ("c", 0.3)):
        answers = [[g if rng.random() < share else "xy"["yx".index(g)] for g in labels] for labels in gold]
        lines = [json.dumps({"id": i, "items": each}) for i, each in enumerate(answers)]
        (task / f"{name}.jsonl").write_text("\n".join(lines))
    cells = (script.Benchmark("all", "small", ("a", "b", "c"), "once"), script.Benchmark("pairs", "small", 2))
    monkeypatch.setattr(script, "BENCHMARKS", cells)
    return script


@pytest.mark.parametrize("options", [[], ["--workers", "3", "--batch-size", "2"], ["--margin", "0.05"]])
def test_selections_are_counted_and_appended(
    benchmark: Any, tmp_path: Path, options: List[str], capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results.csv"
    for _ in range(2):
        given = [str(tmp_path), "--only", "all", "--confidences", "0.9", "--repetitions", "6"]
        benchmark.main([*given, "--results", str(results), *options])
    rows = cells_of(capsys.readouterr().out)[2:]
    with results.open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 2 and lines[0]["seed"] != lines[1]["seed"]
    for line in lines:
        wrong, named = int(line["wrong"]), int(line["named"])
        assert (line["cell"], line["fits"], line["selections"], line["ran_out"]) == ("all", "twice", "6", "0")
        assert named == 6 and wrong <= 2
        assert 3 * 3 <= float(line["mean_queries"]) < 3 * SIZE
    low, high = wilson_interval(int(lines[0]["wrong"]), 6)
    assert f"({low:.3f}-{high:.3f})" in rows[0][5]


def test_lines_of_one_rule_are_added_up_on_the_pages(benchmark: Any, tmp_path: Path) -> None:
    results = tmp_path / "results.csv"
    clear = benchmark.Benchmark("clear", "small", ("a", "b", "c"), "once")
    line = benchmark.ResultRow("new", 5, "clear", "twice", 0.95, 0.0, 1, 1, "default", "default", 10, 10, 1, 0, 40.0)
    others = (
        replace(line, seed=6, selections=30, named=28, wrong=2, ran_out=2, mean_queries=60.0),
        replace(line, rule="old", wrong=9),
        replace(line, confidence=0.8, wrong=3),
        replace(line, confidence=0.9, wrong=2),
        replace(line, workers=4),
        replace(line, cell="pairs", fits="near tie", margin=0.04),
    )
    benchmark.append_rows([asdict(each) for each in (line, *others)], results)
    lines = benchmark.pool_rows(benchmark.read_rows(results, benchmark.ResultRow), ["new"])
    assert [line.options for line in lines] == ["", "", "", "--workers 4", "--margin 0.04"]
    total = replace(line, rule="", seed=0)
    assert lines[2] == replace(total, selections=40, named=38, wrong=3, ran_out=2, mean_queries=55.0)
    benchmark.BENCHMARKS = (clear,)
    table = benchmark.update_page("<!-- documents: sizes -->\n<!-- end -->\n", lines, tmp_path)
    assert len(cells_of(table)) == 3
    measures = benchmark.Replayer(clear, tmp_path, workers=1, confidence=0.9).measures
    assert cells_of(table)[-1][1] == f"{measures['a'] - measures['b']:.3f}"


def test_a_margin_a_batch_and_a_budget_reach_the_strategy(benchmark: Any, tmp_path: Path) -> None:
    cell = benchmark.BENCHMARKS[0]
    replayer = benchmark.Replayer(cell, tmp_path, workers=2, margin=0.4, batch_size=25, confidence=0.9)
    assert (replayer.strategy.num_batches, replayer.strategy.strategy.margin) == (3, 0.4)
    (outcome,) = replayer.outcomes(7, range(1))
    assert outcome.num_queries <= 3 * SIZE and not outcome.is_wrong
    fixed = benchmark.Replayer(cell, tmp_path, workers=1, budget=45)
    (outcome,) = fixed.outcomes(7, range(1))
    assert (outcome.stopped_by, outcome.is_wrong) == ("budget", False)
    assert 40 <= outcome.num_queries <= 45


def test_drawn_pairs_are_classed_by_the_test_that_they_need(benchmark: Any, tmp_path: Path) -> None:
    replayer = benchmark.Replayer(benchmark.BENCHMARKS[1], tmp_path, workers=1, confidence=0.8)
    outcomes = replayer.outcomes(5, range(5))
    drawn = [replayer.names(np.random.default_rng([5, repetition])) for repetition in range(5)]
    assert [outcome.fits for outcome in outcomes] == [replayer.test_class(names) for names in drawn]
    assert replayer.test_class(("a", "c")) == "twice"
    counted = list(
        benchmark.count_outcomes(outcomes, benchmark.ResultRow("", 5, "", "", 0.8, 0.0, 1, 1, "", "", 0, 0, 0, 0, 0.0))
    )
    assert sum(line.selections for line in counted) == 5


def test_synthetic_systems_have_abilities_of_their_own() -> None:
    """P(N(0.8, 0.25^2 + 0.5^2 + 0.5^2 + 0.7^2) > 0) = Phi(0.777) = 0.781 of all answers are right."""
    documents, answers = import_module("document_systems").synthetic()
    golds = [item["label"] for items in documents.values() for item in items]
    given = ([answer for items in each for answer in items] for each in answers.values())
    shares = [np.mean([a == g for a, g in zip(each, golds, strict=True)]) for each in given]
    assert len(documents) == 1500 and len(golds) == pytest.approx(3.5 * 1500, rel=0.05)
    assert np.mean(shares) == pytest.approx(0.781, abs=0.04) and 0.05 < np.std(shares) < 0.12


def test_systems_are_trained_on_the_real_files(shared_data: Path, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    script = import_module("document_systems")
    train, test = (dict(list(read().items())[:120]) for read in script.SOURCES["category"])
    answers = script.answer_all("category", train, test)
    golds = [items[0]["label"] for items in test.values()]
    right = {name: np.mean([a[0] == g for a, g in zip(each, golds, strict=True)]) for name, each in answers.items()}
    assert len(right) >= 5 and max(right.values()) > 0.4
    posts = script.posts("emerging.dev.conll")
    assert sum(map(len, posts.values())) == 1009 and max(map(len, posts.values())) == script.POSTS
