import sys
from importlib import import_module

import pytest


def test_the_synthetic_documents_of_haffari(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    haffari = import_module("reproduce_haffari")
    monkeypatch.setattr(sys, "argv", ["x", "--repetitions", "2", "--processes", "1", "--problems", "0.05:5"])
    haffari.main()
    lines = capsys.readouterr().out.strip().splitlines()[2:]
    assert all(line.count("|") == len(haffari.HEADINGS) + 1 for line in lines)
    rows = [line.split(" | ") for line in lines[2:]]
    assert [row[2] for row in rows] == ["Baseline2", "BaselineK-1", *haffari.METHODS]
    assert [row[3] for row in rows] == ["120", "185", "513 (100 %)", "22 (100 %)", "360 (100 %)", "19 (100 %)"]


def test_the_rates_of_haffari_have_the_f_measure_asked_for() -> None:
    haffari = import_module("reproduce_haffari")
    setting = haffari.Setting(positives=0.3, misses=0.8)
    tp, fp, fn, tn = setting.rates(0.85)
    assert 2 * tp / (2 * tp + fp + fn) == pytest.approx(0.85)
    assert fn == pytest.approx(4 * fp)
    assert tp + fp + fn + tn == pytest.approx(1)
    assert setting.rates(1.0) == pytest.approx([0.3, 0, 0, 0.7])
