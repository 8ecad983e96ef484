"""The result of the first stage of a search, as the present version and earlier ones wrote it."""

import json
from pathlib import Path

from fiesta_allennlp.searches.search import ScreenedConfig, ScreeningResult


def test_the_screening_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    candidates = [
        {"name": "#2", "values": "lr=0.1", "score": 0.9, "seconds": 3.0},
        {"name": "#1", "values": "lr=0.2", "score": None, "seconds": None},
    ]
    content = {"best": "#2", "stopped_by": "budget", "metric": "f1", "seed": "7", "candidates": candidates}
    (tmp_path / "selection.json").write_text(json.dumps({**content, "num_evaluations": 1, "score": "validation"}))
    earlier = ScreeningResult.read(tmp_path)
    configs = (ScreenedConfig("#2", 1, 0.9, seconds=3.0, values="lr=0.1"), ScreenedConfig("#1", values="lr=0.2"))
    assert earlier.candidates == configs
    assert (earlier.leading, earlier.seed, earlier.num_evaluations, earlier.seconds) == ("#2", "7", 1, 3.0)
    earlier.write()
    assert ScreeningResult.read(tmp_path) == earlier
    assert [entry["score"] for entry in json.loads((tmp_path / "selection.json").read_text())["candidates"]] == [
        0.9,
        None,
    ]
