"""The outcomes of simulated selections."""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

import numpy as np
from scipy.special import ndtri

TIE_TOLERANCE = 1e-12
"""Means that are as near as that are equal: the mean of equal scores can be off in the last digit."""


@dataclass(frozen=True)
class Repetition:
    """The outcome of one simulated selection. `is_named`: `best` was named as the winner. `correct`: within the margin,
    `best` has the best true mean. A round makes a batch of parallel evaluations. `seconds` is the sum over all workers,
    and `confidence` P(best within the margin)."""

    best: Optional[str]
    is_named: bool
    correct: bool
    num_evaluations: int
    num_rounds: int
    seconds: float = 0.0
    confidence: Optional[float] = field(default=None, compare=False)


@dataclass(frozen=True)
class Distribution:
    """The mean, the sd, the extremes, and the quantiles at 5, 50 and 95% of one number of each repetition."""

    mean: float
    sd: float
    min: float
    low: float
    median: float
    high: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Distribution":
        quantiles = np.percentile(values, [0, 5, 50, 95, 100], method="inverted_cdf")
        return cls(float(np.mean(values)), float(np.std(values)), *quantiles.tolist())


@dataclass(frozen=True)
class Outlook:
    """The outcomes of the simulated selections of one way to choose.

    `runs` counts the runs of each, those of a pilot included. `seconds` is the time of the further runs, summed over
    all workers. `recommended` is the share that ended with each candidate. `picked` is the share that named a best
    candidate, or one within the margin of it, `wrong` the share that named another one, and `open` the share
    that stayed open. They add up to 1. `correct` is `picked` and those open ones whose leader is a best
    candidate. Intervals are Wilson's, of 95%. `with_replacement` tells that scores were drawn with replacement.
    `prob_decided` is the share that named a winner within the seconds of a limit, None without one.
    """

    repetitions: int
    interrupted: bool
    with_replacement: bool
    runs: Distribution
    mean_rounds: float
    seconds: Distribution
    recommended: Mapping[str, float]
    open: float
    correct: float
    correct_interval: Tuple[float, float]
    picked: float
    picked_interval: Tuple[float, float]
    wrong: float
    wrong_interval: Tuple[float, float]
    prob_decided: Optional[float] = None

    @classmethod
    def of(
        cls,
        repetitions: Sequence[Repetition],
        *,
        interrupted: bool = False,
        with_replacement: bool = False,
        max_seconds: Optional[float] = None,
    ) -> "Outlook":
        number = len(repetitions)
        names = Counter(repetition.best for repetition in repetitions)
        counts = {
            "correct": sum(repetition.correct for repetition in repetitions),
            "picked": sum(repetition.correct and repetition.is_named for repetition in repetitions),
            "wrong": sum(repetition.is_named and not repetition.correct for repetition in repetitions),
        }
        shares: Dict[str, Any] = {name: count / number for name, count in counts.items()}
        shares.update({f"{name}_interval": wilson_interval(count, number) for name, count in counts.items()})
        return cls(
            repetitions=number,
            interrupted=interrupted,
            with_replacement=with_replacement,
            runs=Distribution.of([repetition.num_evaluations for repetition in repetitions]),
            mean_rounds=float(np.mean([repetition.num_rounds for repetition in repetitions])),
            seconds=Distribution.of([repetition.seconds for repetition in repetitions]),
            recommended={name: count / number for name, count in names.items() if name is not None},
            open=1 - (counts["picked"] + counts["wrong"]) / number,
            **shares,
            prob_decided=None
            if max_seconds is None
            else float(np.mean([r.is_named and r.seconds <= max_seconds for r in repetitions])),
        )


def find_best(means: Mapping[str, float], margin: float, *, minimise: bool = False) -> Tuple[str, ...]:
    """Return the candidates whose means are within the margin of the best one."""
    gains = {name: -mean if minimise else mean for name, mean in means.items()}
    return tuple(name for name in gains if gains[name] >= max(gains.values()) - margin - TIE_TOLERANCE)


def wilson_interval(count: int, number: int) -> Tuple[float, float]:
    """Wilson's 95% interval of a share, its lower and its upper end.

    With p = count / number and z the normal quantile of 0.975::

        (p + z^2 / (2 n) -+ z sqrt(p (1 - p) / n + z^2 / (4 n^2))) / (1 + z^2 / n)
    """
    share, z = count / number, float(ndtri(0.975))
    middle = share + z**2 / (2 * number)
    half = z * math.sqrt(share * (1 - share) / number + z**2 / (4 * number**2))
    low, high = ((middle + side) / (1 + z**2 / number) for side in (-half, half))
    return 0.0 if count == 0 else low, 1.0 if count == number else high
