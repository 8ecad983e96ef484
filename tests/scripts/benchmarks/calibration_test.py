from importlib import import_module
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest

NOISE_SD = 0.0198


def noise_of(**settings: Any) -> np.ndarray:
    """A long sample of the noise of candidate a in a family."""
    family = import_module("families").Family("x", {"a": 0.6, "b": 0.6 - NOISE_SD}, **settings)
    return family.noise("a", np.random.default_rng(1), 200_000)


def test_noise_has_mean_0_and_the_standard_deviation_of_its_family() -> None:
    for settings, sd in (
        ({"tail_df": 5.0}, NOISE_SD),
        ({"skew": 2.0}, NOISE_SD),
        ({"noise_growth": 0.3}, NOISE_SD * np.exp(0.3)),
        ({"failing": {"a": (0.2, 5)}}, NOISE_SD * np.sqrt(1 + 25 * 0.2 * 0.8)),
    ):
        noise = noise_of(**settings)
        assert abs(noise.mean()) < 0.02 * sd
        assert noise.std() == pytest.approx(sd, rel=0.02)

    families = import_module("families")
    names = [family.name for families_of in families.SETS.values() for family in families_of]
    assert len(set(names)) == len(names), "no family is for tuning and for reporting"
    assert all(family.has_wrong_answers for name in ("tuning", "reporting") for family in families.SETS[name])


def test_every_call_draws_another_seed_and_appends_its_counts(tmp_path: Path, run_script: Callable[..., str]) -> None:
    calibration, results = import_module("calibration"), tmp_path / "results.csv"
    arguments = ("--set", "tuning", "--only", "^near tie", "--repetitions", 2, "--processes", 1)
    printed = [run_script("calibration", *arguments, "--results", results) for _ in range(2)]
    first, second = lines = import_module("common").read_rows(results, calibration.ResultRow)
    assert first.seed != second.seed and f"seed {second.seed}" in printed[1]
    assert all(line.named + line.inconclusive == line.repetitions == 2 for line in lines)
    (row,) = calibration.pool_rows(lines, "tuning")
    assert row[:2] == ("near tie, 4", "4")
    assert not calibration.pool_rows(lines, "reporting")
