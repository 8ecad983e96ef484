from typing import Dict, List, Sequence, Tuple

import pytest

from fiesta_allennlp.core.origin import Origin
from fiesta_allennlp.core.records import Evaluation, Failure, History, Request

Outcomes = Sequence[Tuple[str, str, str]]
"""Run, machine and what became of it, which is a kind of failure or `ok`."""


def request(run: str) -> Request:
    candidate, replicate = run.split("-")
    return Request(candidate, int(replicate), split_seed=0, random_seed=0, numpy_seed=0, pytorch_seed=0)


def history_of(outcomes: Outcomes, **origin: bool) -> History:
    evaluations: List[Evaluation] = []
    failures: List[Failure] = []
    for run, machine, what in outcomes:
        host, _, gpu = machine.partition("/")
        where = Origin(host, gpu, **{"is_only_machine": False, **origin})  # type: ignore[arg-type]
        if what == "ok":
            evaluations.append(Evaluation(request(run), 0.5, "m", origin=where))
        else:
            failures.append(Failure(request(run), what, "no luck", origin=where))
    return History(("a", "b"), tuple(evaluations), failures=tuple(failures))


@pytest.mark.parametrize(
    ("outcomes", "counts"),
    [
        ([("a-0", "m1", "error")], {"a": 0}),
        ([("a-0", "m1", "error"), ("a-1", "m1", "error"), ("b-0", "m1", "error")], {"a": 0, "b": 0}),
        ([("a-0", "m1", "error"), ("b-0", "m1", "ok")], {"a": 1}),
        ([("b-0", "m1", "ok"), ("a-0", "m1", "error"), ("a-1", "m2", "error")], {"a": 1}),
        ([("a-0", "m1", "error"), ("a-0", "m2", "error")], {"a": 1}),
        ([("a-0", "m1", "error"), ("a-0", "m1", "error")], {"a": 0}),
        ([("a-0", "m1", "error"), ("a-1", "m2", "error")], {"a": 0}),
        ([("a-0", "m1", "timeout"), ("a-0", "m2", "error"), ("a-0", "m3", "ok")], {"a": 0}),
        ([("a-0", "m1", "killed"), ("a-0", "m2", "killed")], {"a": 2}),
        ([("a-0", "m1/0", "error"), ("b-0", "m1/1", "ok")], {"a": 0}),
        ([("a-0", "m1", "killed"), ("b-0", "m1/1", "ok")], {"a": 1}),
        ([("a-0", "m1", "error"), *[(f"b-{k}", "m1", "score") for k in range(4)]], {"a": 1, "b": 4}),
    ],
)
def test_a_failure_counts_once_there_is_a_reason_to_blame_the_candidate(
    outcomes: Outcomes, counts: Dict[str, int]
) -> None:
    history = history_of(outcomes)
    assert {name: history.num_counted_failures(name) for name in counts} == counts


def test_on_one_machine_alone_every_failure_counts() -> None:
    outcomes = [("a-0", "m1", "error"), ("a-1", "m1", "error"), ("a-2", "m1", "error")]
    assert history_of(outcomes, is_only_machine=True).with_withdrawn(max_failures=3).active == ("b",)
    assert history_of(outcomes).with_withdrawn(max_failures=3).active == ("a", "b")


def test_a_run_has_failed_once_its_failure_counts() -> None:
    failed = [("a-0", "m1", "error"), ("a-1", "m1", "killed"), ("a-2", "m1", "machine")]
    for outcomes, runs in ((failed, []), ([*failed, ("b-0", "m1", "ok")], ["a-0"])):
        history = history_of(outcomes)
        assert [run for run in ("a-0", "a-1", "a-2") if history.has_failed(request(run))] == runs


def test_a_machine_is_named_with_its_gpu() -> None:
    assert str(Origin("m1", "GPU-0").machine) == "m1 (GPU 0)"
