"""A selection that is simulated run by run, as a live one is made, ends as it does among many at once."""

from dataclasses import replace
from typing import Any, Dict

import numpy as np
import pytest

from fiesta_allennlp.tables.simulation.score_sources import ScorePreset
from fiesta_allennlp.tables.simulation.simulator import Simulator, prepare_simulator
from fiesta_allennlp.tables.table_settings import ReplaySettings

NUM_CASES, SELECTIONS_PER_CASE = 40, 5


def simulator_of(case: int) -> Simulator:
    """A random problem with random options."""
    rng = np.random.default_rng(case)
    means = {name: float(rng.normal(0.5, 0.05)) for name in "abcdef"[: rng.integers(2, 7)]}
    noise_sds = {name: float(0.05 * np.exp(rng.normal(0, 0.5))) for name in means}
    options: Dict[str, Any] = {
        "splits": str(rng.choice(["shared", "shared", "independent", "official"])),
        "batch_size": int(rng.choice([1, 1, 2, 5, 8])),
        "margin": [None, 0.02, "0.5sd"][rng.integers(3)],
        "min_runs": [None, None, 6][rng.integers(3)],
        "stop": [None, None, "bayesian"][rng.integers(3)],
        "strategy": [None, None, None, "non_adaptive_fc"][rng.integers(4)],
        "confidence": float(rng.choice([0.8, 0.95])),
        "minimise": bool(rng.random() < 0.3),
        "max_evaluations": [None, 40][rng.integers(2)],
    }
    source = ScorePreset("random", means, noise_sds, split_sd=0.05 * float(rng.choice([0, 1, 3])))
    return prepare_simulator(ReplaySettings(scores="", seed=case, **options), source)


@pytest.mark.parametrize("case", range(NUM_CASES))
def test_the_live_loop_and_the_batch_agree(case: int) -> None:
    simulator = simulator_of(case)
    repetitions = range(SELECTIONS_PER_CASE)
    assert simulator.rules is not None
    together = simulator.run_all(repetitions)
    alone = [simulator.simulate_alone(repetition) for repetition in repetitions]
    assert [one.confidence for one in alone] == pytest.approx([one.confidence for one in together], rel=1e-9)
    # A loop of the batch makes complete rounds.
    ignored = {"num_rounds": 0} if simulator.settings.strategy == "non_adaptive_fc" else {}
    assert [replace(one, **ignored) for one in alone] == [replace(one, **ignored) for one in together]


def test_both_end_without_a_winner_where_only_splits_vary() -> None:
    source = ScorePreset("constant leads", {"a": 0.5, "b": 0.6}, split_sd=0.05, noise_sd=0.0)
    simulator = prepare_simulator(ReplaySettings(scores="", seed=1), source)
    (together,), alone = simulator.run_all(range(1)), simulator.simulate_alone(0)
    assert together == alone and (alone.is_named, alone.num_evaluations) == (False, 32)
