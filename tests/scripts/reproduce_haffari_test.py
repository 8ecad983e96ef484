from importlib import import_module
from typing import Callable

import pytest

from tests.scripts.conftest import cells_of


def test_the_synthetic_documents_of_haffari(run_script: Callable[..., str]) -> None:
    printed = run_script("reproduce_haffari", "--repetitions", 2, "--processes", 1, "--problems", "0.05:5")
    headings, _, *rows = cells_of(printed)
    haffari = import_module("reproduce_haffari")
    assert headings == list(haffari.HEADINGS)
    assert [row[2] for row in rows] == ["Baseline2", "BaselineK-1", *haffari.METHODS]
    assert [row[3] for row in rows] == ["120", "185", "513 (100 %)", "22 (100 %)", "360 (100 %)", "19 (100 %)"]


def test_the_rates_of_haffari_have_the_f_measure_asked_for() -> None:
    setting = import_module("reproduce_haffari").Setting(positives=0.3, misses=0.8)
    tp, fp, fn, tn = setting.rates(0.85)
    assert 2 * tp / (2 * tp + fp + fn) == pytest.approx(0.85)
    assert (fn, tp + fp + fn + tn) == (pytest.approx(4 * fp), pytest.approx(1))
