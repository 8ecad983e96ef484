"""Selections among the points of one template: begun, resumed with more points, and repeated."""

import json
from pathlib import Path
from typing import Any, Callable

from fiesta_allennlp import select
from tests.run_files import num_finished


def test_points_are_selected_among_resumed_with_more_and_repeated(
    write_config: Callable[..., Path], call: Any, run: Path, tmp_path: Path
) -> None:
    template = str(write_config("plain").with_name("template.jsonnet"))
    Path(template).write_text("(import 'plain.jsonnet') + { trainer+: { num_epochs: std.parseJson(std.extVar('n')) } }")
    points = tmp_path / "points.jsonl"
    points.write_text('{"n": 1}\n{"n": 1, "trainer.optimizer.lr": 0.02}\n')
    settings = {"candidates": [template], "points": str(points), "metric": "accuracy", "budget": 2}
    config = tmp_path / "settings.jsonnet"
    config.write_text(json.dumps({**settings, "strategy": "non_adaptive_fb", "seed": 5}))
    output = call.done("-s", run, "--config", config)
    assert "Note: the configs of n=1 and n=1,trainer.optimizer.lr=0.02 are equal apart from seeds" in output
    assert (run / "evaluations" / "n=1-0" / "config.json").exists()

    points.write_text('{"n": 1}\n{"n": 2}\n')
    output = call.refused("-s", run, "--recover", "--budget", 3)
    assert "candidate 'n=1,trainer.optimizer.lr=0.02'" in output and "is not given" in output
    both = f"'{template}?n=1' '{template}?n=1,trainer.optimizer.lr=0.02'"
    assert f"{both}, with any new ones and --points none; or remove" in output

    points.write_text('{"n": 1}\n{"n": 1, "trainer.optimizer.lr": 0.02}\n{"n": 2}\n')
    result = select(directory=run, recover=True, budget=3, points=points)
    assert [candidate.num_evaluations for candidate in result.candidates] == [1, 1, 1]
    assert num_finished(run) == 3
