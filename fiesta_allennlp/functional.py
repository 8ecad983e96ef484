"""Select the best of several models that are plain Python functions: no configs, no AllenNLP models, no command line.

The calls are those of the package that accompanies the FIESTA paper, with its arguments in its order. A model is a
function of a training set and a test set that returns a score; more is better. Without an `rng`, every call makes fresh
random choices.

Each call builds a strategy, evaluates the models that it proposes and returns the result.

All calls have these arguments in common:

- `split_function` takes `data` and returns a training and a test set. It should return a different split every time.
- `model_functions` take these two sets and return a score. A model that seeds itself always runs in the same way. The
  calls then cannot find the model that is best whatever the seed is.
- With `logit_transform`, log(x / (1 - x)) replaces every score x in [0, 1], also in the result.
  `fiesta_allennlp.choosing.probability.prob_best.logit` documents the treatment of scores of exactly 0 and 1.
- `samples` is the number of posterior draws with which the paper's package estimates P(best). `TTTS` and
  `non_adaptive_fc` compute P(best) exactly, so they accept any number of at least 1, and it changes nothing.
- `rng` makes the choices repeatable, as far as the functions are. By default it is fresh.

All raise `ValueError` if there are fewer than two models, if a score is not a finite number or has no logit, and if
`p_value`, `samples` or `budget` is invalid.
"""

import math
import sys
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp import choosing
from fiesta_allennlp.choosing.beliefs import StudentT
from fiesta_allennlp.choosing.probability.prob_best import logit
from fiesta_allennlp.choosing.strategy import Decision
from fiesta_allennlp.core.errors import FiestaError
from fiesta_allennlp.core.records import Evaluation, History, Request

SAMPLES = 100_000
"""The default of `samples` in the paper's package."""

Model = Callable[[Any, Any], float]
SplitFunction = Callable[[Any], Tuple[Any, Any]]


class FixedConfidenceResult(NamedTuple):
    """The result of a call that runs until it reaches a target confidence.

    Attributes:
        confidence_scores: P(model is best) for each model.
        proportions: each model's share of `num_evaluations`.
        num_evaluations: the number of evaluations of all models together.
        scores: the scores of each model, in order of its runs.
    """

    confidence_scores: List[float]
    proportions: List[float]
    num_evaluations: int
    scores: List[List[float]]


class SequentialHalvingResult(NamedTuple):
    """The result of sequential halving: the position of the best function, each model's share of all evaluations, and
    the scores of each model in order of its runs.
    """

    best_index: int
    proportions: List[float]
    scores: List[List[float]]


class NonAdaptiveResult(NamedTuple):
    """The result of a fixed budget that all models share equally: the position of the best function, and the scores of
    each model in order of its runs.
    """

    best_index: int
    scores: List[List[float]]


def TTTS(
    data: Any,
    model_functions: Sequence[Model],
    split_function: SplitFunction,
    p_value: float,
    logit_transform: bool = False,
    samples: int = SAMPLES,
    *,
    max_evaluations: Optional[int] = None,
    rng: Optional[np.random.Generator] = None,
) -> FixedConfidenceResult:
    """Evaluate models by top-two Thompson sampling until one model is best with probability 1 - `p_value`.

    The call assumes that scores are normal, or that their logits are (`logit_transform`). It uses
    `fiesta_allennlp.choosing.TopTwoThompson`.

    Args:
        data: what `split_function` splits.
        model_functions: the models, each a function of a training and a test set that returns its score.
        split_function: returns a training and a test set of `data`, a new one each time.
        p_value: the probability that the named model is not the best, such as 0.05 for a confidence of 0.95.
        logit_transform: whether to replace each score by its logit, also in the result.
        samples: the number of draws in the paper's package. P(best) is exact here, so it changes nothing.
        max_evaluations: stop after this number of evaluations (default: no limit). Without a limit, the
            call never ends if each of two models repeats one constant score.
        rng: the generator of all choices (default: a fresh one).

    Returns:
        A tuple of P(best) of each model, each model's share of the evaluations, their number, and the scores of each
        model in order of its runs.

    Raises:
        ValueError: if `p_value` is not above 0 and below 1, if `samples` is below 1, if there are fewer than two
            models, or if a score is not a finite number or has no logit.
    """
    _check_samples(samples)
    problem = _Problem(data, model_functions, split_function, logit_transform)
    return problem.run_to_confidence(choosing.TopTwoThompson, p_value, max_evaluations, slots=1, rng=rng)


def BTS(
    data: Any,
    model_functions: Sequence[Model],
    split_function: SplitFunction,
    p_value: float,
    batch_size: int,
    logit_transform: bool = False,
    *,
    max_evaluations: Optional[int] = None,
    rng: Optional[np.random.Generator] = None,
) -> FixedConfidenceResult:
    """Evaluate models by batch Thompson sampling until one model is best with probability 1 - `p_value`.

    It differs from `TTTS` in one point: it chooses `batch_size` models from the posterior at the start of each batch.
    Use it to measure how many evaluations batches cost. It still calls the functions one after the other. It uses
    `fiesta_allennlp.choosing.BatchThompson`.
    """
    problem = _Problem(data, model_functions, split_function, logit_transform)
    strategy_class = partial(choosing.BatchThompson, batch_size=batch_size)
    return problem.run_to_confidence(strategy_class, p_value, max_evaluations, slots=batch_size, rng=rng)


def non_adaptive_fc(
    data: Any,
    model_functions: Sequence[Model],
    split_function: SplitFunction,
    p_value: float,
    logit_transform: bool = False,
    samples: int = SAMPLES,
    *,
    max_evaluations: Optional[int] = None,
    rng: Optional[np.random.Generator] = None,
) -> FixedConfidenceResult:
    """Evaluate all models equally often until one model is best with probability 1 - `p_value`.

    Use it as a baseline: it needs about twice as many evaluations as `TTTS`. It uses
    `fiesta_allennlp.choosing.NonAdaptiveFixedConfidence`.
    """
    _check_samples(samples)
    problem, slots = _Problem(data, model_functions, split_function, logit_transform), len(model_functions)
    strategy_class = choosing.NonAdaptiveFixedConfidence
    return problem.run_to_confidence(strategy_class, p_value, max_evaluations, slots=slots, rng=rng)


def sequential_halving(
    data: Any,
    model_functions: Sequence[Model],
    split_function: SplitFunction,
    budget: int,
    logit_transform: bool = False,
) -> SequentialHalvingResult:
    """Spend at most `budget` evaluations in rounds that keep the better half of the models.

    It uses `fiesta_allennlp.choosing.SequentialHalving`.

    Raises:
        ValueError: if `budget` is below N ceil(log2 N) for N models, if there are fewer than two models, or if a score
            is not a finite number or has no logit.
    """
    problem = _Problem(data, model_functions, split_function, logit_transform)
    history, decision = problem.run(choosing.SequentialHalving(belief=StudentT(), budget=budget), slots=budget)
    return SequentialHalvingResult(int(str(decision.best)), _proportions(history), _scores(history))


def non_adaptive_fb(
    data: Any,
    model_functions: Sequence[Model],
    split_function: SplitFunction,
    budget: int,
    logit_transform: bool = False,
) -> NonAdaptiveResult:
    """Evaluate each of N models floor(`budget` / N) times, then choose the model with the best mean.

    It uses `fiesta_allennlp.choosing.NonAdaptiveFixedBudget`.

    Raises:
        ValueError: if `budget` is below the number of models, if there are fewer than two models, or if a score is not
            a finite number or has no logit.
    """
    problem = _Problem(data, model_functions, split_function, logit_transform)
    history, decision = problem.run(choosing.NonAdaptiveFixedBudget(belief=StudentT(), budget=budget), slots=budget)
    return NonAdaptiveResult(int(str(decision.best)), _scores(history))


@dataclass(frozen=True)
class _Problem:
    """What every call is given."""

    data: Any
    models: Sequence[Model]
    split_function: SplitFunction
    logit_transform: bool

    def run(
        self, strategy: choosing.Strategy, *, slots: int, rng: Optional[np.random.Generator] = None
    ) -> Tuple[History, Decision]:
        """Evaluate what the strategy proposes, `slots` at a time, until it proposes nothing.

        A candidate's name is the position of its function. The seeds of a request only tell runs apart.
        """
        rng = np.random.default_rng() if rng is None else rng
        history = History(tuple(map(str, range(len(self.models)))))
        try:
            strategy.check(list(history.candidates))
            while names := strategy.propose(history, slots, rng):
                for name in names:
                    number = len(history.evaluations)
                    request = Request(name, history.num_finished(name), number, number, number, number)
                    evaluation = Evaluation(request, self._score(name, number), "score")
                    history = replace(history, evaluations=(*history.evaluations, evaluation))
            return history, strategy.recommend(history)
        except FiestaError as error:
            raise ValueError(str(error)) from error

    def run_to_confidence(
        self,
        strategy_class: Callable[..., choosing.Strategy],
        p_value: float,
        max_evaluations: Optional[int],
        *,
        slots: int,
        rng: Optional[np.random.Generator],
    ) -> FixedConfidenceResult:
        if not 0 < p_value < 1:
            raise ValueError(
                f"p_value must be above 0 and below 1, such as 0.05 for a confidence of 0.95, but got {p_value}."
            )
        limit = sys.maxsize if max_evaluations is None else max_evaluations
        strategy = strategy_class(
            belief=StudentT(), stop=choosing.BayesianStop(), confidence=1 - p_value, max_evaluations=limit
        )
        history, decision = self.run(strategy, slots=slots, rng=rng)
        prob_best = list(decision.prob_best.values())
        return FixedConfidenceResult(prob_best, _proportions(history), len(history.evaluations), _scores(history))

    def _score(self, name: str, number: int) -> float:
        score = float(self.models[int(name)](*self.split_function(self.data)))
        if not math.isfinite(score):
            raise ValueError(
                f"model_functions[{name}] returned {score} in evaluation {number}: a score must be a finite number."
            )
        if not self.logit_transform:
            return score
        return float(logit(np.array([score]), candidate=f"model_functions[{name}]")[0])


def _check_samples(samples: int) -> None:
    if not samples >= 1:
        raise ValueError(f"samples must be at least 1, such as {SAMPLES}, but got {samples}. P(best) is exact here.")


def _proportions(history: History) -> List[float]:
    return [history.num_finished(name) / len(history.evaluations) for name in history.candidates]


def _scores(history: History) -> List[List[float]]:
    return [history.scores(name).tolist() for name in history.candidates]
