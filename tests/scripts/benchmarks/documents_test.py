import json
import random
from pathlib import Path
from typing import Callable

import pytest

from tests.scripts.conftest import cells_of


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    rng = random.Random(1)
    golds = {f"d{i}": [rng.choice("xyz") for _ in range(3)] for i in range(30)}
    lines = [{"id": id_, "items": [{"text": "t", "label": label} for label in labels]} for id_, labels in golds.items()]
    (tmp_path / "documents.jsonl").write_text("\n".join(map(json.dumps, lines)))
    for name, accuracy in (("good", 1.0), ("fair", 0.6), ("poor", 0.2)):
        answers = [
            {"id": id_, "items": [label if rng.random() < accuracy else "x" for label in labels]}
            for id_, labels in golds.items()
        ]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, answers)))
    return tmp_path


def test_the_table_tells_queries_and_right_winners(
    directory: Path, monkeypatch: pytest.MonkeyPatch, run_script: Callable[..., str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    how = ("--repetitions", 6, "--processes", 1, "--strategies", "top_two", "--beliefs", "student_t")
    output = run_script("documents", directory, *how)
    assert "30 documents with 90 items; macro_f1 over all of them:" in output
    assert "good: 1.0000 (mean of the documents' own 1.0000)" in output
    assert "Fixed size for good against fair" in output
    rows = cells_of(output)[2:]
    assert [row[:3] for row in rows] == [[order, "student_t", "top_two"] for order in ("shared", "independent")]
    assert all(9 <= float(row[3]) <= 90 and row[6] == "100.0%" for row in rows)
