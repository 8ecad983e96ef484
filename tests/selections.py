"""Stores as selections leave them, written without a training."""

import platform
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from fiesta_allennlp.candidates.select_settings import Settings
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.options import settings_to_json
from fiesta_allennlp.core.records import Candidate, Evaluation, Failure, Origin
from fiesta_allennlp.core.seeding import make_request
from fiesta_allennlp.selecting.store import RunStore

METRIC = "f1"
SEED = 7

ENVIRONMENT = {"host": platform.node()}

ORIGIN = Origin(
    host="node1",
    gpu="0",
    gpu_names="Some GPU",
    job="17",
    python="3.11.7",
    versions={"torch": "2.0"},
    platform="Linux",
    processor="Some CPU",
    cores=2,
    memory_gib=7.5,
)


def facts() -> Dict[str, Any]:
    """What building a candidate told."""
    return {
        "pool": {
            "official": {"train": 100, "test": 25},
            "targets": {"train": 75, "validation": 25, "test": 25},
            "num_groups": 60,
            "group_by": "sentence_id",
            "data": "def",
            "fingerprint": "abc",
        },
        "num_parameters": 1234,
        "metrics": [METRIC],
        "vectors": [],
    }


def write_selection(
    root: Path,
    scores: Mapping[str, Sequence[float]],
    *,
    failures: Sequence[Tuple[str, int, str]] = (),
    pending: Sequence[Tuple[str, int]] = (),
    meta: Optional[Mapping[str, Any]] = None,
    **settings: Any,
) -> RunStore:
    """A selection that is under way: whoever calls closes the store.

    # Parameters

    scores : by candidate and replicate. Replicate 0 of all candidates finished first, then replicate 1, and so on.
    failures : candidate, replicate and error, in order, after all evaluations.
    pending : candidate and replicate.
    """
    given = {"max_evaluations": 200, "confidence": 0.99999999, "metric": METRIC, **settings}
    typed = Settings(candidates=tuple(f"{number}.jsonnet" for number, _ in enumerate(scores)), **given)
    store = RunStore(RunDirectory(root), create=True)
    store.put_candidates(
        [Candidate(name, f"{number}.jsonnet", {}, facts()) for number, name in enumerate(scores)],
        kind="trainings",
        settings=settings_to_json(typed),
        seed=str(SEED),
        **(meta or {}),
    )
    in_order: List[Tuple[int, str]] = [(k, name) for name, values in scores.items() for k in range(len(values))]
    for k, name in sorted(in_order, key=lambda pair: pair[0]):
        request = make_request(SEED, name, k, shared_splits=typed.splits == "shared")
        store.reserve([request])
        started_at, metrics = f"2026-01-01T00:00:{k % 60:02d}", {f"test_{METRIC}": scores[name][k]}
        store.record(Evaluation(request, scores[name][k], METRIC, 2.0, started_at, metrics, ORIGIN))
    for name, k, error in failures:
        request = make_request(SEED, name, k, shared_splits=True)
        store.reserve([request])
        store.record(Failure(request, "error", error, 1.0, origin=ORIGIN))
    store.reserve([make_request(SEED, name, k, shared_splits=True) for name, k in pending])
    return store
