from dataclasses import replace

from fiesta_allennlp.core.origin import Origin
from fiesta_allennlp.core.records import Evaluation, Failure, History, Outcome
from fiesta_allennlp.selection.machines import (
    MachineRuns,
    count_machine_runs,
    describe_different_versions,
    different_versions,
)
from tests.executors.light import request

NEW = Origin("new", python="3.13.0", versions={"numpy": "2.5", "torch": "2.0"})
OLD = Origin("old", gpu="1", python="3.11.7", versions={"numpy": "2.4"})


def finished(replicate: int, origin: Origin, seconds: float) -> Evaluation:
    return Evaluation(request(replicate), 0.5, "m", seconds, origin=origin)


def failed(replicate: int, origin: Origin) -> Failure:
    return Failure(request(replicate), "error", "no", 0.1, origin=origin)


def history_of(*outcomes: Outcome) -> History:
    evaluations = tuple(outcome for outcome in outcomes if isinstance(outcome, Evaluation))
    return History(("a",), evaluations, failures=tuple(o for o in outcomes if isinstance(o, Failure)))


def test_runs_are_counted_by_machine_and_software_not_by_job() -> None:
    other_numpy = replace(NEW, versions={"numpy": "2.6"})
    history = history_of(
        finished(0, replace(NEW, job="1"), 2.0),
        failed(1, OLD),
        finished(2, replace(NEW, job="2", is_only_machine=False), 4.0),
        failed(3, NEW),
        finished(4, other_numpy, 1.0),
        finished(5, Origin(), 9.0),
    )
    assert count_machine_runs(history) == (
        MachineRuns(NEW, num_evaluations=2, num_failures=1, mean_seconds=3.0),
        MachineRuns(other_numpy, num_evaluations=1, num_failures=0, mean_seconds=1.0),
        MachineRuns(OLD, num_evaluations=0, num_failures=1, mean_seconds=None),
    )


def test_versions_that_differ_are_named_with_their_machines() -> None:
    assert different_versions([NEW, OLD, Origin()]) == {
        "Python": {"3.13.0": ["new"], "3.11.7": ["old (GPU 1)"]},
        "numpy": {"2.5": ["new"], "2.4": ["old (GPU 1)"]},
    }, "torch is on one machine alone"
    assert different_versions([NEW, replace(NEW, host="another")]) == {}
    assert describe_different_versions([NEW, replace(NEW, host="b", python="3.12.1")]) == (
        "Runs have different versions, which can change scores: Python 3.13.0 on new and 3.12.1 on b."
    )
