import json
from importlib import import_module
from pathlib import Path
from typing import Any, Callable, Sequence

import pytest

NUM_DOCUMENTS = 60


def write(path: Path, labels: Sequence[str]) -> None:
    """Write documents of one item each, or the answers about them."""
    is_gold = path.stem == "documents"
    rows = [{"id": str(k), "items": [{"text": str(k), "label": x} if is_gold else x]} for k, x in enumerate(labels)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_clear_system_is_named_and_its_counts_are_pooled(
    tmp_path: Path, run_script: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module: Any = import_module("documents")
    folder, results = tmp_path / "task", tmp_path / "documents.csv"
    folder.mkdir()
    gold = ["no" if k % 2 else "yes" for k in range(NUM_DOCUMENTS)]
    write(folder / "documents.jsonl", gold)
    write(folder / "good.jsonl", ["no" if k % 20 == 0 else label for k, label in enumerate(gold)])
    write(folder / "bad.jsonl", ["no" if k % 3 else label for k, label in enumerate(gold)])
    cells = (module.Benchmark("pair", "task", 2, {"metric": "accuracy"}),)
    monkeypatch.setattr(module, "BENCHMARKS_OF_DOCUMENTS", cells)
    for _ in range(2):
        run_script("documents", tmp_path, "--repetitions", 2, "--results", results)
    lines = import_module("common").read_rows(results, module.ResultRow)
    assert [(line.fits, line.named, line.wrong) for line in lines] == [("twice", 2, 0)] * 2
    ((title, *counts),) = module.table_rows(lines)
    assert (title, counts[:4]) == ("at most half of the documents", ["4", "4", "0", "0"])
