"""What is minimised is chosen as its negative is maximised, run by run."""

import inspect
from dataclasses import dataclass
from typing import List
from unittest.mock import Mock

import pytest

from fiesta_allennlp.beliefs import Belief
from fiesta_allennlp.core.errors import ScoreError
from fiesta_allennlp.core.records import Request
from fiesta_allennlp.strategies import Strategy
from fiesta_allennlp.strategies.base import Minimising
from tests.strategies.histories import THREE_EACH, history
from tests.strategies.simulation import Simulation, built

ERRORS = {"weak": 3.45, "best": 3.35, "fair": 3.40}
LIMITS = {"budget": 24, "max_evaluations": 40, "confidence": 0.9}


@dataclass
class Signed(Simulation):
    """`sign` times a score comes out."""

    sign: int = 1

    def score(self, done: Request) -> float:
        return self.sign * super().score(done)


@pytest.mark.parametrize("name", Strategy.available())
def test_every_strategy_chooses_as_by_negated_scores(name: str) -> None:
    ends = []
    for sign in (-1, 1):
        strategy = built(name, belief="split_paired", **LIMITS)
        chosen = Minimising(strategy) if sign == 1 else strategy
        decision, end = Signed(chosen, ERRORS, num_workers=2, shuffled=True, seed=3, sign=sign).run()
        reasons = chosen.credible_margin(end), chosen.undecided(end)
        ends.append((decision, [(e.request, sign * e.score) for e in end.evaluations], reasons))
        assert (decision.best, chosen.bounds(3)) == ("best", strategy.bounds(3))
    assert ends[0] == ends[1]


@pytest.mark.parametrize("name", ["logit_student_t", "logit_split_paired"])
def test_the_logit_of_an_error_rate_is_minus_that_of_what_is_right(name: str) -> None:
    errors = {key: [1 - score for score in scores] for key, scores in THREE_EACH.items()}
    belief = Belief.by_name(name)()
    right = belief.posterior(history(THREE_EACH)).prob_best()
    assert belief.posterior(history(errors).negated).prob_best() == pytest.approx(right, abs=1e-9)
    with pytest.raises(ScoreError, match="'a' has 35.5"):
        belief.posterior(history({**errors, "a": [35.5, 34.0, 36.0]}).negated)


def test_an_undecided_selection_knows_why_whatever_the_sign() -> None:
    now = history({"a": [0.60, 0.62, 0.64], "b": [0.58, 0.63, 0.65]})
    strategy = built("top_two")
    assert strategy.undecided(now) is not None
    assert Minimising(strategy).undecided(now.negated) == strategy.undecided(now)


def methods_of(strategy_class: type) -> List[str]:
    return [name for name, member in vars(strategy_class).items() if inspect.isfunction(member) and name[0] != "_"]


@pytest.mark.parametrize("name", methods_of(Strategy))
def test_every_method_asks_the_strategy_about_negated_scores(name: str) -> None:
    strategy = Mock(spec=built("top_two"))
    signature = inspect.signature(getattr(Strategy, name))
    arguments = {parameter: Mock() for parameter in list(signature.parameters)[1:]}
    if "history" in arguments:
        arguments["history"] = history(THREE_EACH)
    answer = getattr(Minimising(strategy), name)(**arguments)
    asked = getattr(strategy, name)
    asked.assert_called_once()
    heard = signature.bind(strategy, *asked.call_args.args, **asked.call_args.kwargs).arguments
    assert answer is asked.return_value or answer is None
    if "history" in arguments:
        assert heard.pop("history").sign == -1
    assert all(heard[parameter] is arguments[parameter] for parameter in heard if parameter != "self")
