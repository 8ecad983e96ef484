"""What is minimised is chosen as its negative is maximised, run by run."""

from dataclasses import dataclass, replace

import pytest

from fiesta_allennlp.choosing import Strategy
from fiesta_allennlp.choosing.beliefs import Belief
from fiesta_allennlp.core.errors import ScoreError
from fiesta_allennlp.core.records import Request
from tests.choosing.histories import THREE_EACH, history
from tests.choosing.simulation import Simulation, built

ERRORS = {"weak": 3.45, "best": 3.35, "fair": 3.40}
LIMITS = {"budget": 24, "max_evaluations": 40, "confidence": 0.9}


@dataclass
class Signed(Simulation):
    """Errors, or their negatives: `-sign` times an error comes out."""

    def score(self, done: Request) -> float:
        return -self.sign * super().score(done)


@pytest.mark.parametrize("name", Strategy.available())
@pytest.mark.parametrize("stop", ["bayesian", "glr", "early_looks"])
def test_every_strategy_chooses_as_by_negated_scores(name: str, stop: str) -> None:
    ends = []
    for sign in (-1, 1):
        strategy = built(name, belief="moderated_t", stop=stop, **LIMITS)
        decision, end = Signed(strategy, ERRORS, num_workers=2, shuffled=True, seed=3, sign=sign).run()
        ends.append((decision, [(e.request, -sign * e.score) for e in end.evaluations]))
        assert decision.best == "best"
    assert ends[0] == ends[1]


def test_the_scores_that_choose_are_signed_and_the_runs_keep_theirs() -> None:
    reported = history(THREE_EACH)
    errors = replace(reported, sign=-1)
    for name, scores in THREE_EACH.items():
        assert errors.scores(name).tolist() == [-score for score in scores]
        assert [run.score for run in errors.evaluations_of(name)] == scores
    later = errors.with_finished(
        [replace(run, request=replace(run.request, replicate=9)) for run in errors.evaluations]
    )
    assert later.scores("a").tolist() == [-score for score in [*THREE_EACH["a"], *THREE_EACH["a"]]]


def test_the_logit_of_an_error_rate_is_minus_that_of_what_is_right() -> None:
    errors = {key: [1 - score for score in scores] for key, scores in THREE_EACH.items()}
    belief = Belief.by_name("logit_student_t")()
    right = belief.posterior(history(THREE_EACH)).prob_best()
    assert belief.posterior(replace(history(errors), sign=-1)).prob_best() == pytest.approx(right, abs=1e-9)
    with pytest.raises(ScoreError, match="'a' has 35.5"):
        belief.posterior(replace(history({**errors, "a": [35.5, 34.0, 36.0]}), sign=-1))
