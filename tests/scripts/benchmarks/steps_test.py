from importlib import import_module


def test_a_step_is_timed() -> None:
    steps = import_module("steps")
    assert steps.milliseconds("split_paired", 4, 20, 2) > 0
    assert steps.milliseconds("dirichlet_f_measure", 2, 20, 2) > 0
