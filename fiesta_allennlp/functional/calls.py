"""The calls themselves. Each builds a strategy, runs it and unpacks what came out.

Common to all:

- `data` goes to `split_function`, which returns a training and a test set, and should return others every time.
- `model_functions` are called with these two and return a score. A model that seeds itself is always evaluated in the
  same way: the best model whatever the seed is then not to be found.
- With `logit_transform`, every score x in [0, 1] is replaced by log(x / (1 - x)), in what is returned too. See
  `fiesta_allennlp.probability.logit` for scores of exactly 0 and 1.
- `rng` makes the choices repeatable, as far as the functions are. Left out, it is fresh.

All raise `ValueError`: where there are fewer than two models, where a score is not a finite number or has no logit,
and where `p_value` or `budget` cannot work.
"""

import sys
from functools import partial
from typing import Callable, List, NamedTuple, Optional, Sequence

import numpy as np

from fiesta_allennlp.beliefs import StudentT
from fiesta_allennlp.functional.running import Data, Functions, Model, SplitFunction
from fiesta_allennlp.strategies import (
    BatchThompson,
    FixedConfidence,
    NonAdaptiveFixedBudget,
    NonAdaptiveFixedConfidence,
    SequentialHalving,
    TopTwoThompson,
)


class FixedConfidenceResult(NamedTuple):
    """`confidence_scores` are P(model is best); `proportions` are each model's share of `num_evaluations`; `scores`
    are those of each model in order of evaluation."""

    confidence_scores: List[float]
    proportions: List[float]
    num_evaluations: int
    scores: List[List[float]]


class SequentialHalvingResult(NamedTuple):
    """`best_index` is the position of the best function; the others are as in `FixedConfidenceResult`."""

    best_index: int
    proportions: List[float]
    scores: List[List[float]]


class NonAdaptiveResult(NamedTuple):
    """`best_index` is the position of the best function; `scores` are as in `FixedConfidenceResult`."""

    best_index: int
    scores: List[List[float]]


def TTTS(
    data: Data,
    model_functions: Sequence[Model],
    split_function: SplitFunction,
    p_value: float,
    logit_transform: bool = False,
    samples: int = 100000,
    *,
    max_evaluations: Optional[int] = None,
    rng: Optional[np.random.Generator] = None,
) -> FixedConfidenceResult:
    """Top-two Thompson sampling until one model is best with probability 1 - `p_value`; see
    `fiesta_allennlp.strategies.TopTwoThompson`. For normal scores, or scores whose logits are.

    # Parameters

    samples : deprecated, without effect. The probabilities are computed by quadrature and not by sampling.
    max_evaluations : give up undecided after so many. Left out, there is no limit, and two models of which every score
        is the same number are compared for ever.

    # Raises

    `ValueError` : where `p_value` is not above 0 and below 1, and as above.
    """
    functions = Functions(data, model_functions, split_function, logit_transform)
    make = partial(TopTwoThompson, challenger="posterior", beta=0.5, max_evaluations=_limit(max_evaluations))
    return _until_sure(functions, make, p_value, slots=1, rng=rng)


def BTS(
    data: Data,
    model_functions: Sequence[Model],
    split_function: SplitFunction,
    p_value: float,
    batch_size: int,
    logit_transform: bool = False,
    *,
    max_evaluations: Optional[int] = None,
    rng: Optional[np.random.Generator] = None,
) -> FixedConfidenceResult:
    """Batch Thompson sampling: as `TTTS`, with `batch_size` models chosen from what was believed when the batch began.

    Use it to learn what batches cost in evaluations; the functions are called one after the other all the same. See
    `fiesta_allennlp.strategies.BatchThompson`.
    """
    functions = Functions(data, model_functions, split_function, logit_transform)
    make = partial(BatchThompson, batch_size=batch_size, max_evaluations=_limit(max_evaluations))
    return _until_sure(functions, make, p_value, slots=batch_size, rng=rng)


def non_adaptive_fc(
    data: Data,
    model_functions: Sequence[Model],
    split_function: SplitFunction,
    p_value: float,
    logit_transform: bool = False,
    samples: int = 100000,
    *,
    max_evaluations: Optional[int] = None,
    rng: Optional[np.random.Generator] = None,
) -> FixedConfidenceResult:
    """As `TTTS`, with all models evaluated equally often; see `fiesta_allennlp.strategies.NonAdaptiveFixedConfidence`.
    To compare with: it needs about twice as many evaluations."""
    functions = Functions(data, model_functions, split_function, logit_transform)
    make = partial(NonAdaptiveFixedConfidence, max_evaluations=_limit(max_evaluations))
    return _until_sure(functions, make, p_value, slots=len(model_functions), rng=rng)


def sequential_halving(
    data: Data,
    model_functions: Sequence[Model],
    split_function: SplitFunction,
    budget: int,
    logit_transform: bool = False,
) -> SequentialHalvingResult:
    """Spend at most `budget` evaluations in rounds that keep the better half of the models; see
    `fiesta_allennlp.strategies.SequentialHalving`.

    # Raises

    `ValueError` : where `budget` is below N ceil(log2 N) for N models, and as above.
    """
    functions = Functions(data, model_functions, split_function, logit_transform)
    finished = functions.select(SequentialHalving(belief=StudentT(), budget=budget), slots=budget, rng=None)
    return SequentialHalvingResult(finished.best_index, finished.proportions, finished.scores)


def non_adaptive_fb(
    data: Data,
    model_functions: Sequence[Model],
    split_function: SplitFunction,
    budget: int,
    logit_transform: bool = False,
) -> NonAdaptiveResult:
    """floor(`budget` / N) evaluations of each of N models, then the best mean; see
    `fiesta_allennlp.strategies.NonAdaptiveFixedBudget`.

    # Raises

    `ValueError` : where `budget` is below the number of models, and as above.
    """
    functions = Functions(data, model_functions, split_function, logit_transform)
    finished = functions.select(NonAdaptiveFixedBudget(belief=StudentT(), budget=budget), slots=budget, rng=None)
    return NonAdaptiveResult(finished.best_index, finished.scores)


def _until_sure(
    functions: Functions,
    make: Callable[..., FixedConfidence],
    p_value: float,
    *,
    slots: int,
    rng: Optional[np.random.Generator],
) -> FixedConfidenceResult:
    if not 0 < p_value < 1:
        raise ValueError(
            f"p_value must be above 0 and below 1, such as 0.05 for a confidence of 0.95, but got {p_value}."
        )
    finished = functions.select(make(belief=StudentT(), confidence=1 - p_value), slots=slots, rng=rng)
    return FixedConfidenceResult(
        finished.confidence_scores, finished.proportions, finished.num_evaluations, finished.scores
    )


def _limit(max_evaluations: Optional[int]) -> int:
    return sys.maxsize if max_evaluations is None else max_evaluations
