"""The counts of the three ends."""

import csv
import gzip
from importlib import import_module
from pathlib import Path
from typing import Callable

import numpy as np

from fiesta_allennlp.selecting.results.verdict import CLASS_ERRORS


def test_the_package_quotes_the_recorded_counts() -> None:
    module = import_module("ends")
    counted = module.count_classes(module.read_ends())
    assert [[(errors.wrong, errors.winners) for errors in line] for line in CLASS_ERRORS] == counted


def test_a_clear_problem_has_right_winners_and_two_equal_ones_end_equal(
    tmp_path: Path, run_script: Callable[..., str]
) -> None:
    module, scores, results = import_module("ends"), tmp_path / "problems.csv.gz", tmp_path / "ends.csv"
    noise = np.random.default_rng(0).normal(0, 1, (5, 200))
    with gzip.open(scores, "wt", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("source", "problem", "paired", "minimise", "candidate", "number", "score"))
        for problem, means in (("clear", (0, 5)), ("equal", (0, 0, -9, -9, -9))):
            for name, mean, row in zip("abcde", means, noise, strict=False):
                centred = row - row.mean() + mean
                writer.writerows(("s", problem, 0, 0, name, k, score) for k, score in enumerate(centred))
    run_script("ends", "--scores", scores, "--selections", 24, "--seed", 1, "--results", results)
    rows = import_module("common").read_rows(results, module.EndRow)
    clear = [row for row in rows if row.data_set.endswith("clear")]
    assert {(row.verdict, row.prob, row.lead, row.wrong) for row in clear} == {("best", 1, 2, 0)}
    assert sum(row.selections for row in clear) == 24
    equal = [row for row in rows if row.data_set.endswith("equal") and row.verdict == "equal"]
    assert sum(row.selections for row in equal) > 0 and sum(row.wrong + row.wrong_pairs for row in equal) == 0
    assert sum(row.pairs for row in equal) == sum(row.selections for row in equal)
