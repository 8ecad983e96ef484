from dataclasses import replace
from typing import List, Optional, Tuple

import numpy as np

from fiesta_allennlp.beliefs import Belief
from fiesta_allennlp.records import History
from fiesta_allennlp.reports.content import PathPoint

MOST_POINTS = 120
"""As many as a figure can show; each costs as much as a step of the selection."""


def belief_path(history: History, belief: Belief, most_points: int = MOST_POINTS) -> Tuple[PathPoint, ...]:
    """P(best) after so many evaluations, by the belief that decided: figure 2 of the FIESTA paper.

    A point has the candidates that are active at the end and had begun by then; there is one wherever at least two had
    and the belief had enough evaluations of each. Points are spread evenly, at most `most_points` of them.
    """
    last = len(history.evaluations)
    steps = np.unique(np.linspace(last, 1, num=min(last, most_points), dtype=int)) if last else []
    points: List[PathPoint] = []
    for number in map(int, steps):
        point = _point(history.first(number), belief)
        points += [] if point is None else [point]
    return tuple(points)


def _point(history: History, belief: Belief) -> Optional[PathPoint]:
    begun = tuple(name for name in history.active if history.num_finished(name))
    if len(begun) < 2 or min(map(history.num_finished, begun)) < belief.min_evaluations:
        return None
    if begun != history.active:
        history = replace(history, candidates=begun, withdrawn=frozenset())
    prob_best = belief.posterior(history).prob_best()
    return PathPoint(len(history.evaluations), dict(zip(begun, prob_best.tolist(), strict=True)))
