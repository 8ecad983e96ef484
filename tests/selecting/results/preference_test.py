from pathlib import Path
from typing import Any, Dict, List

import pytest

from fiesta_allennlp import next_runs, report
from fiesta_allennlp.core.errors import ConfigError

NOISE = (0.002, -0.002, 0.001, -0.001)
MEANS = {"large": (0.9, 100, 8), "small": (0.898, 10, 4), "tiny": (0.8, 1, 1)}


@pytest.fixture
def rows() -> List[Dict[str, Any]]:
    """Small is within 0.01 of large, at a tenth of its seconds, and tiny is not."""
    return [
        {"candidate": name, "seed": seed, "score": mean + noise, "seconds": seconds, "memory": memory}
        for name, (mean, seconds, memory) in MEANS.items()
        for seed, noise in enumerate(NOISE)
    ]


@pytest.mark.parametrize(("by", "cost"), [("seconds", 10), ("memory", 4)])
def test_the_cheapest_candidate_that_is_good_enough(rows: List[Dict[str, Any]], by: str, cost: float) -> None:
    for answer in (next_runs(rows, margin=0.01, prefer=by), report(rows, margin=0.01, prefer=by)):
        preferred = answer.result.preferred
        assert preferred is not None and (preferred.name, preferred.cost, preferred.by) == ("small", cost, by)
        assert answer.result.leading == "large"
    assert f"Preferred by {by}: small ({cost}), within 0.01 of the best with probability" in str(answer)


def test_nobody_is_preferred_before_the_target_and_what_is_unknown_is_refused(
    rows: List[Dict[str, Any]], shared_data: Path
) -> None:
    preferred = next_runs(rows, margin=1e-6, prefer="seconds", confidence=0.999).result.preferred
    assert preferred is not None and preferred.name is None
    with pytest.raises(ConfigError, match="--prefer seconds needs --margin"):
        next_runs(rows, prefer="seconds")
    with pytest.raises(ConfigError, match="nothing tells 'latency' of large"):
        next_runs(rows, margin=0.01, prefer="latency")
    cheap = next_runs(shared_data / "inputs" / "gate.csv", margin=0.01, prefer="seconds").result.preferred
    assert cheap is not None and (cheap.name, cheap.cost) == ("pr", 10)
