import sys
from importlib import import_module

import numpy as np
import pytest


def test_a_family_of_problems_is_a_row(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    calibration = import_module("calibration")
    monkeypatch.setattr(sys, "argv", ["x", "--repetitions", "2", "--processes", "1", "--only", "two, .01"])
    calibration.main()
    row = capsys.readouterr().out.strip().splitlines()[-1]
    assert row.startswith("| two, .01 apart | 0 | ")
    assert row.count("|") == len(calibration.HEADINGS) + 1


def test_a_failing_candidate_keeps_its_mean() -> None:
    calibration = import_module("calibration")
    family = calibration.Family("fails", {"a": 0.6, "b": 0.5}, failing="a")
    noise = family.noise("a", np.random.default_rng(1), 100000)
    assert abs(noise.mean()) < 0.001
    assert noise.std() == pytest.approx(np.hypot(0.0198, 0.1 * np.sqrt(0.2 * 0.8)), rel=0.01)
    heavy = calibration.Family("heavy", {"a": 0.6, "b": 0.5}, tail_df=5.0).noise("b", np.random.default_rng(1), 100000)
    assert heavy.std() == pytest.approx(0.0198, rel=0.02)
