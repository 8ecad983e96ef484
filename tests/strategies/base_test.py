from fiesta_allennlp.records import History
from fiesta_allennlp.strategies.base import in_turn
from tests.strategies.histories import history


def test_in_turn_by_hand() -> None:
    now = history({"a": [0.5] * 3, "b": [0.5], "c": []}, pending=["c"])
    assert in_turn(now, ["a", "b", "c"], target=3, slots=9) == ["b", "c", "b", "c"]
    assert in_turn(now, ["a", "b", "c"], target=3, slots=1) == ["b"]
    assert in_turn(now, ["a"], target=3, slots=9) == []
    assert in_turn(History(("a",)), [], target=3, slots=0) == []
