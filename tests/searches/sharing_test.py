from typing import Any

import pytest

from fiesta_allennlp.beliefs.base import Belief
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.searches.search_settings import SearchSettings, Shares, shared_out
from fiesta_allennlp.strategies import SequentialHalving


def test_shares_by_hand_can_be_taken_by_halving() -> None:
    expected = {12: (10, 2, 2), 60: (48, 4, 12), 120: (96, 8, 24), 240: (192, 8, 48), 480: (384, 16, 96)}
    assert {runs: shared_out(runs) for runs in expected} == {runs: Shares(*share) for runs, share in expected.items()}
    for runs in range(12, 400):
        shares = shared_out(runs)
        assert shares.configs + shares.decision == runs and shares.finalists < shares.configs
        names = [f"candidate-{number}" for number in range(shares.finalists)]
        SequentialHalving(belief=Belief(), budget=shares.decision).check(names)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"configs": 5, "points": "p.jsonl"}, "--points"),
        ({}, "--configs N"),
        ({"runs": 24, "budget": 5}, "--budget"),
        ({"runs": 11}, "at least 12 runs but got 11"),
        ({"configs": 5, "finalists": 6}, "--finalists is 6 but --configs is 5"),
    ],
)
def test_stages_that_do_not_go_together_are_refused(settings: Any, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        SearchSettings(template="t.jsonnet", space="space.json", **settings)
