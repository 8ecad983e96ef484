from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest

from fiesta_allennlp import next_runs, report
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.selecting.results.candidate_result import CandidateResult
from fiesta_allennlp.selecting.results.result import Result
from fiesta_allennlp.selecting.results.verdict import with_preference
from tests.selections import METRIC, write_selection

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


def test_a_cost_of_0_is_the_lowest(rows: List[Dict[str, Any]]) -> None:
    free = [{**row, "seconds": 0, "memory": 0} if row["candidate"] == "small" else row for row in rows]
    for by in ("seconds", "memory"):
        preferred = next_runs(free, margin=0.01, prefer=by).result.preferred
        assert preferred is not None and (preferred.name, preferred.cost) == ("small", 0)
    candidates = [
        CandidateResult(name, prob_within_margin=0.99, num_parameters=number) for name, number in (("a", 7), ("b", 0))
    ]
    result = Result("a", "confidence", METRIC, tuple(candidates), margin=0.1)
    assert with_preference(result, "parameters", {}).preferred.name == "b"
    with pytest.raises(ConfigError, match="nothing tells 'seconds' of a, b"):
        with_preference(result, "seconds", {})


def test_a_selection_is_asked_for_its_own_costs(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    scores = {name: [mean + noise for noise in rng.permutation(NOISE)] for name, (mean, *_) in MEANS.items()}
    write_selection(tmp_path / "run", scores, margin=0.01, confidence=0.95).close()
    for by, cost in (("seconds", 2), ("parameters", 1234)):
        record = report(tmp_path / "run", prefer=by)
        preferred = record.result.preferred
        assert preferred is not None and (preferred.name, preferred.cost) == ("large", cost)
        assert f"Preferred by {by}: large ({cost}), within 0.01 of the best with probability" in str(record)
    with pytest.raises(ConfigError, match="nothing tells 'latency' of large, small. Name a column of numbers"):
        report(tmp_path / "run", prefer="latency")
    write_selection(tmp_path / "plain", scores).close()
    with pytest.raises(ConfigError, match="--prefer seconds needs --margin"):
        report(tmp_path / "plain", prefer="seconds")
