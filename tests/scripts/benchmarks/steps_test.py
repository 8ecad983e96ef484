from importlib import import_module


def test_a_step_is_timed() -> None:
    steps = import_module("steps")
    assert len(steps.made_up(8, 100)) == 100
    assert steps.milliseconds("split_paired", 4, 20, 2) > 0
    assert [e.request.name for e in steps.documents(2, 4)] == [
        "candidate-0-0",
        "candidate-1-0",
        "candidate-0-1",
        "candidate-1-1",
    ]
    assert steps.milliseconds("dirichlet_f_measure", 2, 20, 2) > 0
