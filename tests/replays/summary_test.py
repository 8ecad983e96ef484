import pytest

from fiesta_allennlp.replays.replay import Repetition, Replay
from fiesta_allennlp.replays.settings import ReplaySettings
from fiesta_allennlp.replays.summary import summarise_replay

REPETITIONS = (
    Repetition("b", "confidence", True, 10, 3),
    Repetition("a", "confidence", False, 20, 5),
    Repetition("b", "max_evaluations", True, 40, 10),
    Repetition("a", "max_evaluations", False, 40, 10),
)
SETTINGS = ReplaySettings(scores="s.json", evaluations_per_split=5, seed=2**100, batch_size=4, confidence=0.9)
REPLAY = Replay(SETTINGS, {"a": 0.5, "b": 0.6, "c": 0.1}, REPETITIONS, seconds=1.5, interrupted=False)


def test_a_summary_worked_by_hand() -> None:
    summary = summarise_replay(REPLAY)
    assert (summary["repetitions"], summary["best"], summary["interrupted"]) == (4, "b", False)
    assert (summary["correct"], summary["wrong"], summary["undecided"]) == (0.5, 0.25, 0.5)
    # Wilson (1927) for 2 of 4: 1/2 +- z sqrt(1/16 + z^2/64) / (1 + z^2/4), with z = 1.96
    assert summary["correct_interval"] == pytest.approx([0.1500, 0.8500], abs=1e-4)
    assert summary["evaluations"] == {
        "min": 10,
        "mean": 27.5,
        "median": 30.0,
        "max": 40,
        "quantiles": {"5": 10, "25": 10, "50": 20, "75": 40, "95": 40},
    }
    assert summary["rounds"] == {"mean": 7.0}
    assert (summary["splits"], summary["batch_size"], summary["with_replacement"]) == ("shared", 4, False)
    assert summary["seed"] == str(2**100)
    assert summary["strategy"]["confidence"] == 0.9
    assert summary["belief"] == summary["strategy"]["belief"]
    assert summary["candidates"] == [
        {"name": "a", "true_mean": 0.5, "recommended": 0.5},
        {"name": "b", "true_mean": 0.6, "recommended": 0.5},
        {"name": "c", "true_mean": 0.1, "recommended": 0.0},
    ]
