from typing import Callable

from tests.scripts.conftest import cells_of


def test_the_overhead_is_told_by_the_clock_and_by_the_processor(run_script: Callable[..., str]) -> None:
    options = ("--evaluations", 8, "--workers", 1, "--executors", "processes")
    (name, *numbers, wanted, processor) = cells_of(run_script("scaling", "overhead", *options))[-1]
    assert (name, wanted) == ("processes", "under 50")
    assert all(float(number) > 0 for number in [*numbers, processor])
