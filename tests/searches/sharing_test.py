from typing import Any

import pytest

from fiesta_allennlp.beliefs.base import Belief
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.searches.search_settings import SearchSettings, Shares, shared_out
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


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"configs": 5, "points": "p.jsonl"}, "either a SPACE.json or --points FILE.jsonl, but both are given"),
        ({}, "say how many configs to screen with --configs N"),
        ({"runs": 24, "budget": 5}, "--runs shares out all runs, so --budget cannot be combined with it"),
        ({"runs": 11}, "a search in two stages needs at least 12 runs but got 11"),
        ({"configs": 5, "finalists": 6}, "--finalists is 6 but --configs is 5"),
    ],
)
def test_stages_that_do_not_go_together_are_refused(settings: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        SearchSettings(template="t.jsonnet", space="space.json", **settings)
