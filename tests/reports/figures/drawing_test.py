from pathlib import Path

from fiesta_allennlp.replays.summary import summarise_replay
from fiesta_allennlp.reports.figures.drawing import draw_evaluations
from tests.replays.summary_test import REPLAY


def test_a_fixed_number_of_evaluations_can_be_drawn(tmp_path: Path) -> None:
    draw_evaluations([48] * 10, summarise_replay(REPLAY), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
