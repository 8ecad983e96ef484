"""The one table of how a job may end."""

import pytest

from fiesta_allennlp.core.records import Evaluation, Failure, Outcome
from fiesta_allennlp.running.job_executor import Verdict, verdict_on
from tests.running.light import request

SCORE, ERROR = Evaluation(request(0), 0.5, "m"), Failure(request(0), "error", "no luck")
KILLED = Failure(request(0), "killed", "signal 9")


@pytest.mark.parametrize(
    ("state", "has_begun", "outcome", "verdict"),
    [
        ("", True, SCORE, "outcome"),
        ("PREEMPTED", True, ERROR, "outcome"),
        ("COMPLETED", True, KILLED, "outcome"),
        ("OUT_OF_MEMORY", True, KILLED, "machine"),
        ("FAILED", True, KILLED, "machine"),
        ("", True, KILLED, "machine"),
        ("CANCELLED", True, KILLED, "again"),
        ("CANCELLED", False, None, "again"),
        ("NODE_FAIL", True, None, "again"),
        ("", True, None, "again"),
        ("", False, None, "again"),
        ("TIMEOUT", True, None, "timeout"),
        ("TIMEOUT", True, KILLED, "timeout"),
        ("FAILED", False, None, "early"),
        ("COMPLETED", False, None, "early"),
        ("FAILED", True, None, "machine"),
        ("OUT_OF_MEMORY", True, None, "machine"),
    ],
)
def test_what_follows_from_the_end_of_a_job(
    state: str, has_begun: bool, outcome: "Outcome | None", verdict: Verdict
) -> None:
    assert verdict_on(state, has_begun, outcome) == verdict
