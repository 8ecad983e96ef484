"""Helpers of the calls: the probabilities alone, synthetic scores, and the success rate of repeated calls."""

from typing import Any, List, NamedTuple, Optional, Sequence

import numpy as np

from fiesta_allennlp.beliefs import StudentTPosterior
from fiesta_allennlp.functional import calls

FIXED_CONFIDENCE = ("TTTS", "BTS", "non_adaptive_fc")
FIXED_BUDGET = ("sequential_halving", "non_adaptive_fb")


class FixedConfidenceStatistics(NamedTuple):
    """Fewest, mean and most evaluations over the repetitions, and the percentage of repetitions that find the best
    model.
    """

    min: int
    mean: float
    max: int
    percent_correct: float


def belief_calc(
    est_means: np.ndarray, est_variances: np.ndarray, eval_counts: np.ndarray, samples: int = 100000
) -> List[float]:
    """Compute P(model is best) from means and variances (ddof 0) of scores, like `fiesta_allennlp.beliefs.StudentT`.

    All arrays have the shape `(num_models,)`. The function computes the probabilities by
    quadrature, so `samples` has no effect.

    Raises:
        ValueError: if a count is below 3, or if the arrays differ in size.
    """
    lists_same_size(est_means, est_variances, eval_counts)
    counts = np.asarray(eval_counts, dtype=float)
    if not (counts >= 3).all():
        raise ValueError(f"every model must have been evaluated at least 3 times but eval_counts is {counts.tolist()}.")
    scale = np.sqrt(np.asarray(est_variances, dtype=float) / (counts - 2))
    return StudentTPosterior.simple(np.asarray(est_means, dtype=float), scale, counts - 2).prob_best().tolist()


def pull_arm(mean: float, sd: float, *, rng: Optional[np.random.Generator] = None) -> float:
    """Draw one normal score with this mean and standard deviation, from a fresh generator if no `rng` is given."""
    return float((np.random.default_rng() if rng is None else rng).normal(mean, sd))


def lists_same_size(*lists: Sequence[Any]) -> None:
    """Check that all lists have the same size.

    Raises:
        ValueError: if the sizes differ. The message gives the sizes.
    """
    sizes = [len(values) for values in lists]
    if len(set(sizes)) > 1:
        raise ValueError(f"the lists must have equal sizes but have {', '.join(map(str, sizes))} entries.")


def fc_func_stats(N: int, correct_model_index: int, fc_func_name: str, **fc_kwargs: Any) -> FixedConfidenceStatistics:
    """Repeat `TTTS`, `BTS` or `non_adaptive_fc` `N` times with the arguments `fc_kwargs`.

    Raises:
        ValueError: if `fc_func_name` is not one of these three, or if `N` is below 1.
    """
    results = _repeat_call(N, "fc_func_name", fc_func_name, FIXED_CONFIDENCE, fc_kwargs)
    counts = [result.num_evaluations for result in results]
    correct = np.mean([np.argmax(result.confidence_scores) == correct_model_index for result in results])
    return FixedConfidenceStatistics(min(counts), float(np.mean(counts)), max(counts), 100 * float(correct))


def fb_func_stats(N: int, correct_model_index: int, fb_func_name: str, **fb_kwargs: Any) -> float:
    """Compute the share of `N` repetitions of `sequential_halving` or `non_adaptive_fb` that find the best model.

    Raises:
        ValueError: if `fb_func_name` is not one of these two, or if `N` is below 1.
    """
    results = _repeat_call(N, "fb_func_name", fb_func_name, FIXED_BUDGET, fb_kwargs)
    return float(np.mean([result.best_index == correct_model_index for result in results]))


def _repeat_call(count: int, key: str, name: str, valid_names: Sequence[str], arguments: Any) -> List[Any]:
    if name not in valid_names:
        raise ValueError(f"{key} must be one of {', '.join(valid_names)} but got '{name}'.")
    if count < 1:
        raise ValueError(f"N must be at least 1 but got {count}.")
    return [getattr(calls, name)(**arguments) for _ in range(count)]
