"""What a class of a user's own returns is checked, and the message names its method and the value."""

from typing import Any

import numpy as np
import pytest

from fiesta_allennlp.choosing import StoppingRule
from fiesta_allennlp.choosing.beliefs import StudentT
from fiesta_allennlp.choosing.thompson import PosteriorSampling
from fiesta_allennlp.core.errors import ConfigError
from tests.choosing.histories import THREE_EACH, history


def proposal(*, missing: Any = None, chosen: Any = (), posterior: Any = None) -> Any:
    class Rule(StoppingRule):
        def missing_runs(self, *_: Any) -> Any:
            return missing

    class Sampling(PosteriorSampling):
        def choose(self, *_: Any) -> Any:
            return chosen

    class Known(StudentT):
        def posterior(self, now: Any) -> Any:
            return posterior or super().posterior(now)

    return Sampling(belief=Known(), stop=Rule()).propose(history(THREE_EACH), 2, np.random.default_rng(1))


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ({"missing": True}, "Rule.missing_runs must be a list but got true"),
        ({"missing": ["a", "x"]}, "Rule.missing_runs must be candidates, a, b, c, but one is 'x'"),
        ({"chosen": "a"}, 'Sampling.choose must be a list but got "a"'),
        ({"chosen": None}, "Sampling.choose must be a list but got null"),
        ({"chosen": ["x"]}, "Sampling.choose must be candidates, a, b, c, but one is 'x'"),
        ({"posterior": [0.5]}, r"Known.posterior must be a Posterior but got \[0.5\]"),
    ],
)
def test_a_wrong_value_is_named(returned: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        proposal(**returned)


def test_right_values_are_taken() -> None:
    assert proposal(chosen=np.array(["b", "a"]).tolist()) == ["b", "a"]
    assert proposal(missing=("c", "c"), chosen=["b"]) == ["c", "c"]
    assert proposal(missing=(), chosen=["b"]) == []
