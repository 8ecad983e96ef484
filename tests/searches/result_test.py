"""The result of the first stage of a search and its file."""

from pathlib import Path

from fiesta_allennlp.searches.search import ScreenedConfig, ScreeningResult


def test_a_screening_is_read_as_it_was_written(tmp_path: Path) -> None:
    configs = (ScreenedConfig("#2", 1, 0.9, seconds=3.0, values="lr=0.1"), ScreenedConfig("#1", values="lr=0.2"))
    made = ScreeningResult("#2", "budget", "f1", configs, score="validation", seed="7", directory=tmp_path)
    made.write()
    read = ScreeningResult.read(tmp_path)
    assert read == made and [config.score for config in read.candidates] == [0.9, None]
    assert (read.leading, read.num_evaluations, read.seconds) == ("#2", 1, 3.0)
