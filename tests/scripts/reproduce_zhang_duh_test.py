import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from tests.scripts.zhang_duh_files import write_files


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("zh-en", "aa-bb"):
        write_files(tmp_path / name)
    zhang_duh = import_module("reproduce_zhang_duh")
    monkeypatch.setattr(zhang_duh, "FRONT_BUDGETS", {"zh-en": 10, "aa-bb": 10})
    return tmp_path


def test_ours_stand_beside_the_papers(
    tables: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    zhang_duh = import_module("reproduce_zhang_duh")
    options = ["--data", str(tables), "--trials", "2", "--only", "RS|_M$|^gp"]
    monkeypatch.setattr(sys, "argv", ["x", *options])
    zhang_duh.main()
    text = capsys.readouterr().out
    single, front = (part.strip().splitlines() for part in text.split("### ")[1:])
    assert single[2].startswith("| method | aa-bb ftb | aa-bb ftc | aa-bb fb | zh-en ftb")
    assert front[2].startswith("| method | aa-bb fto | aa-bb fta | aa-bb fbp | zh-en fto")
    rows = {line.split(" | ")[0].strip("| "): line.split(" | ") for line in single[4:]}
    assert list(rows) == ["RS, exactly", "RS", "BO_EI_M", "GB_EI_M", "GB_EIF_M", "gp_ei, prior_mean 0", "gp_ei"]
    assert rows["RS, exactly"][1].startswith("13±7")
    assert "(" not in rows["BO_EI_M"][1] and "(29±19)" in rows["BO_EI_M"][4]
    assert [line.split(" | ")[0].strip("| ") for line in front[4:]] == ["RS, exactly", "RS", "BO_M", "GB_M", "gp_ehvi"]


def test_random_search_that_is_far_from_the_truth_is_an_error(tables: Path) -> None:
    zhang_duh, lookup = import_module("reproduce_zhang_duh"), import_module("table_lookup")
    table, protocol = lookup.read_files(tables / "zh-en", ("dev_bleu",)), lookup.Protocol()
    exact = {"ftb": 12.6, "ftc": 8.3, "fb": 0.02}
    zhang_duh._check(lookup.Measured({name: np.full(2, value) for name, value in exact.items()}), table, protocol)
    with pytest.raises(RuntimeError, match=r"zh-en: random search has the ftb 3\.000, not 12\.6"):
        zhang_duh._check(lookup.Measured({**dict.fromkeys(exact, np.full(100, 3.0))}), table, protocol)
