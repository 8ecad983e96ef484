"""The measured errors of winners by P(best) and lead."""

from typing import Any, Dict

import numpy as np
import pytest

from fiesta_allennlp.choosing import Strategy
from fiesta_allennlp.core.registry import build
from fiesta_allennlp.selecting.results.verdict import CLASS_ERRORS, class_of, find_class_errors
from tests.choosing.histories import history

DEFAULT = {"type": "top_two", "belief": {"type": "moderated_t"}}
NOISE = np.random.default_rng(0).normal(0, 0.01, (2, 40))


@pytest.mark.parametrize(
    ("sds", "num_runs", "place"), [(0.4, 40, (0, 0)), (1.5, 16, (1, 1)), (6.0, 5, (1, 2)), (0.9, 40, (1, 0))]
)
def test_a_winner_has_the_class_of_its_probability_and_its_lead(sds: float, num_runs: int, place: Any) -> None:
    noise = NOISE[:, :num_runs] - NOISE[:, :num_runs].mean(axis=1, keepdims=True)
    sd = float(np.std(noise[0] - noise[1], ddof=1) / 2**0.5)
    strategy, runs = (
        build(Strategy, DEFAULT),
        {"a": (0.8 + noise[0]).tolist(), "b": (0.8 - sds * sd + noise[1]).tolist()},
    )
    decision = strategy.recommend(history(runs))
    assert class_of(decision) == place
    assert find_class_errors(decision, strategy) == CLASS_ERRORS[place[0]][place[1]]


@pytest.mark.parametrize(
    "options",
    [
        {"confidence": 0.9},
        {"margin": 0.01},
        {"stop": {"type": "glr"}},
        {"belief": {"type": "student_t"}},
        {"type": "non_adaptive_fc"},
    ],
)
def test_nothing_was_measured_of_other_rules(options: Dict[str, Any]) -> None:
    strategy = build(Strategy, {**DEFAULT, **options})
    decision = strategy.recommend(history({"a": (0.8 + NOISE[0]).tolist(), "b": (0.6 + NOISE[1]).tolist()}))
    assert decision.stopped_by == "confidence" and find_class_errors(decision, strategy) is None
