"""Histories for tests, written as scores."""

from dataclasses import replace
from typing import Dict, List, Mapping, Sequence

from fiesta_allennlp.core.records import Evaluation, Failure, History, Request
from fiesta_allennlp.core.seeding import make_request

THREE_EACH = {"a": [0.60, 0.62, 0.64], "b": [0.58, 0.63, 0.65], "c": [0.40, 0.45, 0.41]}
"""Two candidates that are nearly equal and one that is clearly behind."""


def request(candidate: str, replicate: int) -> Request:
    return make_request(1, candidate, replicate, shared_splits=True)


def evaluation(candidate: str, replicate: int, score: float) -> Evaluation:
    return Evaluation(request(candidate, replicate), score, "macro_f1", metrics=counts_of(score))


def counts_of(score: float) -> Dict[str, float]:
    """Counts of a thousand positive answers with this F-measure; none where it cannot be one."""
    if not 0 <= score <= 1:
        return {}
    right = round(1000 * score)
    return {"count:tp": right, "count:fp": 1000 - right, "count:fn": 1000 - right, "count:tn": 500}


def failure(candidate: str, replicate: int) -> Failure:
    return Failure(request(candidate, replicate), "error", "out of memory")


def failing(now: History, failure: Failure) -> History:
    """The history after one more failure, which is not tried again."""
    pending = tuple(other for other in now.pending if other != failure.request)
    return replace(now, failures=(*now.failures, failure), pending=pending)


def history(
    scores: Mapping[str, Sequence[float]],
    *,
    pending: Sequence[str] = (),
    failed: Sequence[str] = (),
    withdrawn: Sequence[str] = (),
    removed: Sequence[str] = (),
) -> History:
    """The scores of each candidate by replicate, finished round by round. Runs of `failed` and then of `pending` names
    come after them; one that both name failed and is tried again."""
    longest = max((len(values) for values in scores.values()), default=0)
    done = [
        evaluation(name, replicate, values[replicate])
        for replicate in range(longest)
        for name, values in scores.items()
        if replicate < len(values)
    ]
    gone = frozenset(removed) | frozenset(withdrawn)
    return History(
        tuple(scores),
        evaluations=tuple(done),
        pending=tuple(_after(scores, pending)),
        failures=tuple(Failure(missed, "error", "out of memory") for missed in _after(scores, failed)),
        withdrawn=gone,
        removed=frozenset(removed),
    )


def _after(scores: Mapping[str, Sequence[float]], names: Sequence[str]) -> List[Request]:
    return [request(name, len(scores[name]) + list(names[:place]).count(name)) for place, name in enumerate(names)]
