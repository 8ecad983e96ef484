"""A candidate type of a user's own: its constructor takes the keys, and `run` may return several kinds of numbers."""

import json
from pathlib import Path
from typing import Any, Dict, Iterator, Optional

import numpy as np
import pytest

from fiesta_allennlp.candidates.candidate import AnyCandidate
from fiesta_allennlp.candidates.candidate_types import CandidateType, type_of
from fiesta_allennlp.core.errors import ConfigError, FiestaError
from fiesta_allennlp.core.records import Request
from fiesta_allennlp.core.registry import Registrable

REQUEST = Request("a", replicate=0, split_seed=1, random_seed=2, numpy_seed=3, pytorch_seed=4)
RETURNED: Dict[str, Any] = {}


class Returning(CandidateType):
    def __init__(self, *, kind: str, options: Optional[Dict[str, int]] = None) -> None:
        self.kind, self.options = kind, options or {}

    def run(self, request: Request, directory: Path) -> Any:
        return RETURNED[self.kind]


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    CandidateType.register("returning")(Returning)
    yield
    del Registrable._registered[AnyCandidate]["returning"]


def metrics_of_run(returned: Any, directory: Path) -> Dict[str, Any]:
    """The metrics that `outcome.json` keeps of a run that returned this, and its score."""
    RETURNED["now"] = returned
    config = {"type": "returning", "kind": "now"}
    run = type_of(config).run_class(config, "accuracy")
    assert run.evaluate(REQUEST, directory).score == 0.5 and run.salvage(REQUEST, directory) is not None
    return json.loads((directory / "outcome.json").read_text())["metrics"]


@pytest.mark.parametrize(
    ("returned", "metrics"),
    [
        (0.5, {"accuracy": 0.5}),
        (np.float32(0.5), {"accuracy": 0.5}),
        (np.array(0.5), {"accuracy": 0.5}),
        ({"accuracy": np.float32(0.5), "matrix": np.eye(2), "num": np.int64(3)}, {"accuracy": 0.5, "num": 3}),
        ({"accuracy": 0.5, "macro": {"f1": 0.25}}, {"accuracy": 0.5, "macro.f1": 0.25}),
    ],
)
def test_a_run_returns_its_score_or_its_metrics(returned: Any, metrics: Dict[str, float], tmp_path: Path) -> None:
    assert metrics_of_run(returned, tmp_path) == metrics


@pytest.mark.parametrize("returned", [None, "high", [0.5], True, {"accuracy": None}])
def test_what_is_not_a_number_is_named(returned: Any, tmp_path: Path) -> None:
    with pytest.raises(FiestaError, match="not report a number.* accuracy is"):
        metrics_of_run(returned, tmp_path)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"kind": "now", "optons": {}}, "'optons' .*Returning.*'options'"),
        ({}, "Returning requires 'kind'"),
    ],
)
def test_the_keys_are_the_arguments_of_the_constructor(keys: Dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        type_of({"type": "returning", **keys})
