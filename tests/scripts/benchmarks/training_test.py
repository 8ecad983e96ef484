import shutil
from pathlib import Path
from typing import Callable

import numpy as np
import pytest

from tests.conftest import REPOSITORY
from tests.scripts.conftest import cells_of

SAMPLE = REPOSITORY / "data" / "sample"


@pytest.mark.xdist_group("fork server")
def test_an_evaluation_is_timed_and_so_is_the_bare_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_script: Callable[..., str]
) -> None:
    monkeypatch.chdir(REPOSITORY)
    for name in ("FIESTA_DATA", "FIESTA_VECTORS"):
        monkeypatch.setenv(name, "")  # restores what the script sets
    for ours, theirs in (("train", "Train_v2"), ("test", "Test_Gold")):
        shutil.copy(SAMPLE / f"restaurants_{ours}.xml", tmp_path / f"Restaurants_{theirs}.xml")
    rng = np.random.default_rng(1)
    words = [line.split(" ")[0] for line in (SAMPLE / "vectors.25d.txt").open(encoding="utf-8")]
    rows = [f"{word} " + " ".join(f"{value:.3f}" for value in rng.normal(0, 0.5, 50)) for word in words]
    (tmp_path / "vectors.50d.txt").write_text("\n".join(rows), encoding="utf-8")
    how = ("--data", tmp_path, "--vectors", tmp_path / "vectors.50d.txt", "--epochs", 2, "--repetitions", 1)
    printed = run_script("training", *how)
    rows = {row[0]: row[1:] for row in cells_of(printed)}
    for name in ("fiesta_allennlp", "bare PyTorch"):
        *seconds, score = map(float, rows[name])
        assert len(seconds) == 4 and seconds[0] >= seconds[1] > 0
        assert score > 0.2
    assert "\nwhole-evaluation ratio " in printed
