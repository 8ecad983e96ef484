"""Runs that exist already, as a new selection takes them."""

from fiesta_allennlp.tables.brought import BroughtSettings, read_brought_runs


def test_the_time_of_runs_that_exist_is_not_that_of_the_selection() -> None:
    rows = [{"candidate": "a", "seed": 1, "score": 0.5, "seconds": 3600}]
    (run,) = read_brought_runs(BroughtSettings(), {"splits": "official"}, rows).runs.outcomes
    assert run.seconds == 0
