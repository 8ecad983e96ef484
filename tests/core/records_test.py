from dataclasses import replace
from typing import Dict, List, Sequence, Tuple

import pytest

from fiesta_allennlp.core.records import Evaluation, Failure, History, Origin, Request
from tests.choosing.histories import evaluation, failure, history, request


def test_scores_are_by_replicate_whatever_finished_first() -> None:
    now = History(("a", "b"), (evaluation("a", 2, 0.3), evaluation("b", 0, 0.9), evaluation("a", 0, 0.1)))
    assert now.scores("a").tolist() == [0.1, 0.3]
    assert now.scores("b").tolist() == [0.9]
    assert replace(now, evaluations=()).scores("a").shape == (0,)


def counted(candidate: str, replicate: int, **counts: float) -> Evaluation:
    metrics = {f"count:{kind}": number for kind, number in counts.items()}
    return replace(evaluation(candidate, replicate, 0.5), metrics={"seconds_asked": 3.0, **metrics})


def test_counts_are_by_replicate_and_kind() -> None:
    now = History(("a", "b"), (counted("a", 1, tp=2, fp=1), counted("a", 0, tp=5, fn=3), counted("b", 0)))
    counts = now.counts("a")
    assert counts.kinds == ("fn", "fp", "tp")
    assert counts.values.tolist() == [[3, 0, 5], [0, 1, 2]]
    assert (counts.num_runs_without_counts, now.counts("b").num_runs_without_counts) == (0, 1)
    assert now.counts("b").values.shape == (1, 0)
    assert replace(now, evaluations=()).counts("a").values.shape == (0, 0)
    with pytest.raises(ValueError, match="read-only"):
        counts.values[0, 0] = 9


def test_after_is_the_history_gathered_anew() -> None:
    now = History(("a", "b", "c"), (counted("a", 1, tp=5), counted("b", 0, tp=1)), pending=(request("c", 0),))
    now.counts("a")
    new = (counted("a", 0, tp=2, fp=7), counted("a", 2), counted("b", 3, tp=1), counted("c", 0, fn=2))
    later, rebuilt = now.with_finished(new), History(now.candidates, now.evaluations + new)
    assert later == rebuilt and now.num_finished("c") == 0
    for name in now.candidates:
        assert later.scores(name).tolist() == rebuilt.scores(name).tolist()
        assert later.split_seeds(name).tolist() == rebuilt.split_seeds(name).tolist()
        assert later.counts(name).kinds == rebuilt.counts(name).kinds
        assert later.counts(name).values.tolist() == rebuilt.counts(name).values.tolist()
        assert later.counts(name).num_runs_without_counts == rebuilt.counts(name).num_runs_without_counts
    assert later.counts("a").values.tolist() == [[7, 2], [0, 5], [0, 0]]


def test_started_counts_finished_and_pending_but_no_failures() -> None:
    now = replace(history({"a": [0.1, 0.2], "b": []}, pending=["a", "b", "b"]), failures=(failure("b", 5),))
    assert [now.num_finished(name) for name in "ab"] == [2, 0]
    assert [now.num_pending(name) for name in "ab"] == [1, 2]
    assert [now.num_started(name) for name in "ab"] == [3, 2]
    assert now.total_started == 5


def test_failures_that_count_are_trainings_that_failed_for_good_or_deaths_of_one_training() -> None:
    def failed(replicate: int, *kinds: str) -> Tuple[Failure, ...]:
        return tuple(Failure(request("a", replicate), kind, "as told") for kind in kinds)

    finished = (evaluation("a", 0, 0.5),)
    for failures, number in [
        (failed(0, "killed", "killed", "machine"), 0),
        (failed(1, "killed", "killed") + failed(2, "killed"), 2),
        (failed(1, "killed", "error") + failed(2, "timeout"), 2),
        (failed(0, "killed") + failed(1, "error"), 1),
        (failed(1, "machine", "unfit") + failed(2, "unfit"), 2),
    ]:
        now = History(("a", "b"), finished, failures=failures)
        assert (now.num_counted_failures("a"), now.num_counted_failures("b")) == (number, 0)


def test_first_is_the_history_in_order_of_finishing_with_nothing_pending() -> None:
    now = History(
        ("a", "b"),
        (evaluation("a", 2, 0.3), evaluation("b", 0, 0.9), evaluation("a", 0, 0.1)),
        pending=(request("b", 1),),
        withdrawn=frozenset("b"),
    )
    assert now.first_evaluations(2) == History(("a", "b"), now.evaluations[:2], withdrawn=frozenset("b"))
    assert now.first_evaluations(0).total_started == 0


Outcomes = Sequence[Tuple[str, str, str]]
"""Run, machine and what became of it, which is a kind of failure or `ok`."""


def request_of(run: str) -> Request:
    candidate, replicate = run.split("-")
    return Request(candidate, int(replicate), split_seed=0, random_seed=0, numpy_seed=0, pytorch_seed=0)


def history_of(outcomes: Outcomes, **origin: bool) -> History:
    evaluations: List[Evaluation] = []
    failures: List[Failure] = []
    for run, machine, what in outcomes:
        host, _, gpu = machine.partition("/")
        where = Origin(host, gpu, **{"is_only_machine": False, **origin})  # type: ignore[arg-type]
        if what == "ok":
            evaluations.append(Evaluation(request_of(run), 0.5, "m", origin=where))
        else:
            failures.append(Failure(request_of(run), what, "no luck", origin=where))
    return History(("a", "b"), tuple(evaluations), failures=tuple(failures))


@pytest.mark.parametrize(
    ("outcomes", "counts"),
    [
        ([("a-0", "m1", "error"), ("a-1", "m1", "error"), ("b-0", "m1", "error")], {"a": 0, "b": 0}),
        ([("a-0", "m1", "error"), ("b-0", "m1", "ok")], {"a": 1}),
        ([("a-0", "m1", "error"), ("a-0", "m2", "error")], {"a": 1}),
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
        assert [run for run in ("a-0", "a-1", "a-2") if history.has_failed(request_of(run))] == runs


def test_a_machine_is_named_with_its_gpu() -> None:
    assert str(Origin("m1", "GPU-0").machine) == "m1 (GPU 0)"
