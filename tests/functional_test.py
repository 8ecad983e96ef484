import inspect
import math
import re
from itertools import chain, repeat
from typing import Any, Callable, Dict, List, Sequence, Tuple

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fiesta_allennlp.choosing.beliefs import StudentT
from fiesta_allennlp.functional import BTS, TTTS, non_adaptive_fb, non_adaptive_fc, sequential_halving
from tests.choosing.histories import history
from tests.conftest import REPOSITORY

DATA = [{"text": "a"}, {"text": "b"}]

FIXED_CONFIDENCE: Dict[str, Any] = {
    "TTTS": TTTS,
    "BTS": lambda *args, **kwargs: BTS(*args, batch_size=4, **kwargs),
    "non_adaptive_fc": non_adaptive_fc,
}
FIXED_BUDGET: Dict[str, Any] = {"sequential_halving": sequential_halving, "non_adaptive_fb": non_adaptive_fb}


@pytest.fixture(params=FIXED_CONFIDENCE)
def until_sure(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return FIXED_CONFIDENCE[request.param]


@pytest.fixture(params=[*FIXED_CONFIDENCE, *FIXED_BUDGET])
def call(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Any call, with whatever it is to aim at in the fourth place."""
    target = 24 if request.param in FIXED_BUDGET else 0.05
    return lambda *args: {**FIXED_CONFIDENCE, **FIXED_BUDGET}[request.param](*args, target)


def split(data: Any) -> Tuple[Any, Any]:
    return data[:1], data[1:]


def scripted(*scores: Sequence[float]) -> List[Callable[..., float]]:
    """Models that return these scores in turn and then the last one again."""
    queues = [chain(values, repeat(values[-1])) for values in scores]
    return [lambda train, test, queue=queue: next(queue) for queue in queues]


def noisy(*means: float, seed: int = 1) -> List[Callable[..., float]]:
    rng = np.random.default_rng(seed)
    return [lambda train, test, mean=mean: rng.normal(mean, 0.03) for mean in means]


PAPER_CALL = ["data", "model_functions", "split_function", "p_value", "logit_transform", "samples"]


@pytest.mark.parametrize("call", [TTTS, non_adaptive_fc])
def test_the_calls_of_the_paper_take_its_arguments_by_position(call: Callable[..., Any]) -> None:
    parameters = inspect.signature(call).parameters.values()
    assert [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD] == PAPER_CALL
    assert [p.default for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD][4:] == [False, 100_000]
    confidence_scores, proportions, num_evaluations, scores = call(DATA, scripted(*CLEAR), split, 0.05, False, 10_000)
    assert (len(confidence_scores), len(proportions), num_evaluations) == (3, 3, 9)
    assert scores == [list(values) for values in CLEAR]
    assert confidence_scores == call(DATA, scripted(*CLEAR), split, 0.05, samples=1).confidence_scores, "it is exact"
    with pytest.raises(ValueError, match="samples must be"):
        call(DATA, scripted(*CLEAR), split, 0.05, samples=0)
    with pytest.raises(TypeError, match="positional"):
        call(DATA, scripted(*CLEAR), split, 0.05, False, 10_000, 50)


CLEAR = ([0.50, 0.52, 0.51], [0.80, 0.81, 0.79], [0.60, 0.61, 0.63])


def test_a_clear_winner_is_named_after_three_evaluations_each(until_sure: Callable[..., Any]) -> None:
    result = until_sure(DATA, scripted(*CLEAR), split, 0.05)
    confidence_scores, proportions, num_evaluations, scores = result
    assert (scores, num_evaluations) == ([list(values) for values in CLEAR], 9)
    assert_allclose(proportions, [1 / 3] * 3)
    expected = StudentT().posterior(history(dict(zip("abc", CLEAR, strict=True)))).prob_best()
    assert_allclose(confidence_scores, expected)
    assert result.confidence_scores is confidence_scores


def test_goes_on_until_the_confidence_or_the_limit_is_reached(until_sure: Callable[..., Any]) -> None:
    result = until_sure(DATA, noisy(0.6, 0.63, 0.64), split, 0.1, rng=np.random.default_rng(2))
    assert max(result.confidence_scores) >= 0.9
    counts = [len(scores) for scores in result.scores]
    assert result.num_evaluations == sum(counts) > 9
    assert_allclose(result.proportions, np.array(counts) / sum(counts))
    equal = until_sure(DATA, scripted([0.5, 0.7] * 7, [0.6] * 14), split, 0.05, max_evaluations=14)
    assert equal.num_evaluations == 14 and max(equal.confidence_scores) < 0.95
    constant = until_sure(DATA, scripted([0.5], [0.5]), split, 0.05, max_evaluations=14)
    assert constant.num_evaluations == 6, "nothing varies, so further runs show nothing"
    assert_allclose(constant.confidence_scores, [0.5, 0.5])


def test_logits_decide_and_are_returned_and_the_same_generator_makes_the_same_choices() -> None:
    # The mean of the first is larger; the mean logit of the second is.
    models = [[0.9, 0.92], [0.99, 0.8]]
    assert non_adaptive_fb(DATA, scripted(*models), split, 4)[0] == 0
    index, scores = non_adaptive_fb(DATA, scripted(*models), split, 4, True)
    assert index == 1
    assert_allclose(scores, np.log(models) - np.log1p(-np.array(models)))
    assert TTTS(DATA, scripted(*CLEAR), split, 0.05, logit_transform=True).scores[0][0] == pytest.approx(0)
    first, second = (TTTS(DATA, noisy(0.6, 0.63, 0.64), split, 0.1, rng=np.random.default_rng(3)) for _ in range(2))
    assert first == second


def test_a_budget_by_hand() -> None:
    # 4 models, 2 rounds: floor(9 / 8) = 1 score each keeps the models 1 and 3, then floor(9 / 4) = 2 more of them.
    models = scripted([0.5], [0.7, 0.5, 0.5], [0.4], [0.6, 0.6, 0.6])
    index, proportions, scores = sequential_halving(DATA, models, split, 9)
    assert (index, scores) == (3, [[0.5], [0.7, 0.5, 0.5], [0.4], [0.6, 0.6, 0.6]])
    assert_allclose(proportions, [1 / 8, 3 / 8, 1 / 8, 3 / 8])
    index, scores = non_adaptive_fb(DATA, scripted([0.5], [0.6, 0.4], [0.6]), split, 8)
    assert (index, scores) == (2, [[0.5, 0.5], [0.6, 0.4], [0.6, 0.6]]), "what does not divide is left"


def test_every_evaluation_has_a_split_of_its_own(call: Callable[..., Any]) -> None:
    splits: List[Tuple[Any, Any]] = []
    seen: List[Tuple[Any, Any]] = []

    def number(data: Any) -> Tuple[Any, Any]:
        assert data is DATA
        splits.append((f"train {len(splits)}", f"test {len(splits)}"))
        return splits[-1]

    def model(train: Any, test: Any, mean: float) -> float:
        seen.append((train, test))
        return mean + len(seen) / 1000

    functions = [lambda train, test, mean=mean: model(train, test, mean) for mean in (0.1, 0.9, 0.2)]
    call(DATA, functions, number)
    assert len(seen) >= 9
    assert seen == splits


@pytest.mark.parametrize(
    ("models", "options", "message"),
    [
        (CLEAR, {"p_value": 1}, "p_value"),
        (CLEAR, {"p_value": math.nan}, "p_value"),
        (([0.5], [math.nan]), {}, r"model_functions\[1\] returned nan in evaluation 1"),
        (([0.5], [61.5]), {"logit_transform": True}, r"model_functions\[1\]. has 61.5"),
        (([0.5],), {}, "at least 2 candidates"),
        (CLEAR, {"max_evaluations": 0}, "max_evaluations must be at least 9"),
    ],
)
def test_what_is_wrong_is_a_value_error(models: Any, options: Dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TTTS(DATA, scripted(*models), split, **{"p_value": 0.05, **options})
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        BTS(DATA, scripted(*CLEAR), split, 0.05, 0)
    for call, least in ((sequential_halving, 8), (non_adaptive_fb, 4)):
        with pytest.raises(ValueError, match=f"at least {least} .* but got {least - 1}"):
            call(DATA, noisy(1, 2, 3, 4), split, least - 1)  # type: ignore[operator]


def test_the_example_of_the_documentation_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = (REPOSITORY / "docs" / "api" / "calls.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (example,) = (block for block in blocks if "fiesta_allennlp.functional" in block)
    names: Dict[str, Any] = {}
    exec(compile(example, "docs/api/calls.md", "exec"), names)
    assert sum(names["confidence_scores"]) == pytest.approx(1)
    assert "best of 60 evaluations" in capsys.readouterr().out
