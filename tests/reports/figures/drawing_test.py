from pathlib import Path

import pytest

from fiesta_allennlp.replays.summary import summarise_replay
from fiesta_allennlp.reports.figures.drawing import draw_evaluations
from tests.replays.summary_test import REPETITIONS, REPLAY


@pytest.mark.parametrize(("ending", "begins"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_the_distribution_is_drawn(tmp_path: Path, ending: str, begins: bytes) -> None:
    path = tmp_path / f"figure.{ending}"
    draw_evaluations([r.num_evaluations for r in REPETITIONS], summarise_replay(REPLAY), path)
    assert path.read_bytes().startswith(begins)
    assert path.stat().st_size > 3000


def test_a_fixed_number_of_evaluations_can_be_drawn(tmp_path: Path) -> None:
    draw_evaluations([48] * 10, summarise_replay(REPLAY), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").exists()
