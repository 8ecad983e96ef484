from dataclasses import replace
from typing import Any, Dict, List, Optional

import pytest

from fiesta_allennlp.core.records import Evaluation, Failure
from fiesta_allennlp.selection.score_threshold import ScoreThreshold
from fiesta_allennlp.selection.verdicts import Verdicts
from tests.strategies.histories import request


def finished(replicate: int, metrics: Dict[str, float]) -> Evaluation:
    return Evaluation(request("a", replicate), metrics["f1"], "f1", metrics=metrics)


def failed_run(*metrics: Dict[str, float], **settings: Any) -> Optional[str]:
    """Judge runs with these metrics one by one. Return the name of the first one that failed because of its seed."""
    verdicts, finished_runs = Verdicts.from_settings(settings), []  # type: ignore[var-annotated]
    for replicate, run_metrics in enumerate(metrics):
        outcome = verdicts.to_outcome(finished(replicate, run_metrics), finished_runs)
        if isinstance(outcome, Failure) and outcome.kind == "seed":
            return outcome.request.name
        finished_runs += [outcome] if isinstance(outcome, Evaluation) else []
    return None


ALONE, BOTH = {"f1": 0.5}, {"f1": 0.5, "loss": 0.25}
OTHER: List[Dict[str, float]] = [{"f1": 0.5, "loss": 0.26}, {"f1": 0.51, "loss": 0.25}]


def test_three_runs_with_equal_metrics_or_five_with_one_equal_metric_show_that_the_seed_has_no_effect() -> None:
    assert failed_run(BOTH, BOTH) is None
    assert failed_run(BOTH, BOTH, BOTH) == "a-2"
    assert failed_run(*[ALONE] * 4) is None
    assert failed_run(*[ALONE] * 5) == "a-4"
    assert failed_run(*[ALONE] * 5, allow_unseeded=True) is None


@pytest.mark.parametrize("other", OTHER)
def test_one_metric_that_differs_shows_that_the_seed_has_an_effect(other: Dict[str, float]) -> None:
    assert failed_run(BOTH, other, BOTH, BOTH) is None
    assert failed_run({"f1": 0.4}, *[ALONE] * 5) is None


def test_runs_that_were_brought_along_are_not_compared() -> None:
    brought = replace(finished(0, BOTH), request=replace(request("a", 0), replicate=-1))
    verdicts = Verdicts(checks_seeds=True)
    assert isinstance(verdicts.to_outcome(finished(0, BOTH), [brought]), Evaluation)


def test_a_low_score_is_a_failure_of_its_own_kind() -> None:
    outcome = Verdicts(ScoreThreshold(0.6), checks_seeds=True).to_outcome(finished(0, BOTH), [])
    assert isinstance(outcome, Failure) and outcome.kind == "score"
