"""Summarises a replay: the content of its JSON file."""

import math
from collections import Counter
from typing import Any, Dict, List

import numpy as np
from scipy.special import ndtri

from fiesta_allennlp.replays.replay import Replay

QUANTILES = (5, 25, 50, 75, 95)
"""In per cent."""


def summarise_replay(replay: Replay) -> Dict[str, Any]:
    """Return the content of `fiesta-replay --output`. At least one repetition has finished.

    `repetitions` are those that finished; `best` is the candidate with the best true mean, the first of equals.
    `minimise` is there, and true, where lower scores are better; `restricted` where only some candidates were taken.
    `correct` and `wrong` are shares of all repetitions: the first whatever made them stop, the second of those that
    claimed a winner and did not stop at `max_evaluations`. The interval is Wilson's.
    """
    settings, repetitions = replay.settings, replay.repetitions
    number = len(repetitions)
    evaluations = np.array([repetition.num_evaluations for repetition in repetitions])
    num_correct = sum(repetition.correct for repetition in repetitions)
    undecided = [repetition.stopped_by == "max_evaluations" for repetition in repetitions]
    wrong = [not r.correct and not open_ for r, open_ in zip(repetitions, undecided, strict=True)]
    strategy = settings.strategy_params()
    return {
        "repetitions": number,
        "interrupted": replay.interrupted,
        "best": (min if settings.minimise else max)(replay.true_means, key=lambda name: replay.true_means[name]),
        "correct": num_correct / number,
        "correct_interval": wilson_interval(num_correct, number),
        "wrong": sum(wrong) / number,
        "undecided": sum(undecided) / number,
        "evaluations": {
            "min": int(evaluations.min()),
            "mean": float(evaluations.mean()),
            "median": float(np.median(evaluations)),
            "max": int(evaluations.max()),
            "quantiles": {str(q): int(np.percentile(evaluations, q, method="inverted_cdf")) for q in QUANTILES},
        },
        "rounds": {"mean": float(np.mean([repetition.num_rounds for repetition in repetitions]))},
        "seconds": replay.seconds,
        "fewest_scores": replay.fewest_scores,
        "scores": settings.scores,
        **({"minimise": True} if settings.minimise else {}),
        **({"restricted": True} if settings.candidates else {}),
        **({"notes": list(replay.notes)} if replay.notes else {}),
        "splits": settings.splits,
        "evaluations_per_split": settings.evaluations_per_split,
        "batch_size": settings.batch_size,
        "with_replacement": settings.with_replacement,
        "seed": str(settings.seed),
        "strategy": strategy,
        "belief": strategy["belief"],
        "candidates": _candidates(replay),
    }


def wilson_interval(count: int, number: int) -> List[float]:
    """Wilson's 95% interval of a share, its lower and its upper end.

    With p = count / number and z the normal quantile of 0.975::

        (p + z^2 / (2 n) -+ z sqrt(p (1 - p) / n + z^2 / (4 n^2))) / (1 + z^2 / n)
    """
    share, z = count / number, float(ndtri(0.975))
    middle = share + z**2 / (2 * number)
    half = z * math.sqrt(share * (1 - share) / number + z**2 / (4 * number**2))
    low, high = ((middle + side) / (1 + z**2 / number) for side in (-half, half))
    return [0.0 if count == 0 else low, 1.0 if count == number else high]


def _candidates(replay: Replay) -> List[Dict[str, Any]]:
    recommended = Counter(repetition.best for repetition in replay.repetitions)
    number = len(replay.repetitions)
    return [
        {"name": name, "true_mean": mean, "recommended": recommended[name] / number}
        for name, mean in replay.true_means.items()
    ]
