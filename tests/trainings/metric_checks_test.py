from dataclasses import replace
from io import StringIO
from typing import Any, Dict, List

import pytest
from rich.console import Console

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.records import Candidate
from fiesta_allennlp.trainings.pool import preparation_of
from fiesta_allennlp.trainings.preparation import with_metric
from fiesta_allennlp.trainings.settings import Settings
from tests.selections import facts


def metric_of(*reported: List[str], given: Any = None, trainer: Any = None) -> "tuple[Any, str]":
    """The metric of candidates that report these, and what the console says."""
    out = StringIO()
    config: Dict[str, Any] = {"trainer": {"validation_metric": trainer}}
    candidates = {str(k): Candidate(str(k), "a.jsonnet", config) for k, _ in enumerate(reported)}
    preparation = preparation_of(facts())
    built = {str(k): replace(preparation, metrics=frozenset(names)) for k, names in enumerate(reported)}
    found = with_metric(Settings(metric=given), candidates, built, Console(file=out, width=200))
    return found.metric, out.getvalue()


def test_the_only_metric_that_all_report_is_taken_and_told() -> None:
    expected = ("accuracy", "Comparing by accuracy, the only metric that all candidates report.\n")
    assert metric_of(["accuracy"], ["accuracy"]) == metric_of(["accuracy", "f1"], ["accuracy"]) == expected


def test_the_default_and_a_given_one_come_first() -> None:
    assert metric_of(["macro_f1"], ["macro_f1", "accuracy"]) == ("macro_f1", "")
    assert metric_of(["accuracy", "f1"], ["accuracy", "f1"], given="f1") == ("f1", "")
    assert metric_of(["accuracy"], ["accuracy"], given="-loss") == ("-loss", "")


@pytest.mark.parametrize(
    ("reported", "given", "trainer", "message"),
    [
        (["accuracy", "f1"], None, None, r"'0': .*'macro_f1'\. It reports: accuracy, f1, loss\. Choose"),
        (["accuracy"], "macro_f1", None, r"'0': .* not report the metric 'macro_f1'\. It reports: accuracy, loss"),
        (["accuracy"], "-ppl", None, r"'0': .* not report the metric 'ppl'"),
        (["perplexity"], None, None, r"Write --metric=-perplexity for the lowest"),
        (["cost"], None, "-cost", r"'trainer.validation_metric' is \"-cost\".* Write --metric=-cost"),
    ],
)
def test_what_cannot_be_compared_is_refused(reported: List[str], given: Any, trainer: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        metric_of(reported, reported, given=given, trainer=trainer)
