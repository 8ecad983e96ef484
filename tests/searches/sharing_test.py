import pytest

from fiesta_allennlp.beliefs.base import Belief
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.searches.search_settings import Shares, shared_out
from fiesta_allennlp.strategies import SequentialHalving


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        (12, Shares(10, 2, 2)),
        (60, Shares(48, 4, 12)),
        (120, Shares(96, 8, 24)),
        (240, Shares(192, 8, 48)),
        (480, Shares(384, 16, 96)),
    ],
)
def test_shares_by_hand(runs: int, expected: Shares) -> None:
    assert shared_out(runs) == expected


def test_halving_can_take_the_finalists() -> None:
    for runs in range(12, 400):
        shares = shared_out(runs)
        assert shares.configs + shares.decision == runs
        assert shares.finalists < shares.configs
        names = [f"candidate-{number}" for number in range(shares.finalists)]
        SequentialHalving(belief=Belief(), budget=shares.decision).check(names)


def test_too_few_runs_are_refused() -> None:
    with pytest.raises(ConfigError, match="a search in two stages needs at least 12 runs but got 11"):
        shared_out(11)
