from importlib import import_module
from pathlib import Path
from typing import Callable

import pytest

from tests.scripts.conftest import cells_of
from tests.scripts.zhang_duh_files import write_files


def test_ours_stand_beside_the_papers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_script: Callable[..., str]
) -> None:
    for name in ("zh-en", "aa-bb"):
        write_files(tmp_path / name)
    monkeypatch.setattr(import_module("reproduce_zhang_duh"), "FRONT_BUDGETS", {"zh-en": 10, "aa-bb": 10})
    text = run_script("reproduce_zhang_duh", "--data", tmp_path, "--trials", 2, "--only", "RS|_M$|^gp")
    (headings, _, *single), (front_headings, _, *front) = (cells_of(part) for part in text.split("### ")[1:])
    assert headings[:5] == ["method", "aa-bb ftb", "aa-bb ftc", "aa-bb fb", "zh-en ftb"]
    assert front_headings[:5] == ["method", "aa-bb fto", "aa-bb fta", "aa-bb fbp", "zh-en fto"]
    rows = {row[0]: row for row in single}
    assert list(rows) == ["RS, exactly", "RS", "BO_EI_M", "GB_EI_M", "GB_EIF_M", "gp_ei, prior_mean 0", "gp_ei"]
    assert rows["RS, exactly"][1].startswith("13±7")
    assert "(" not in rows["BO_EI_M"][1] and "(29±19)" in rows["BO_EI_M"][4]
    assert [row[0] for row in front] == ["RS, exactly", "RS", "BO_M", "GB_M", "gp_ehvi"]
