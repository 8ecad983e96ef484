"""A searcher of your own for `fiesta search`: it stays near the best point.

python examples/own_classes/searcher.py
"""

from dataclasses import replace

import numpy as np

from fiesta_allennlp.searches.searchers.base import Points, Searcher, SearchHistory


@Searcher.register("near_the_best")
class NearTheBest(Searcher):
    """The open point that is nearest to the best one so far."""

    def criterion(self, history: SearchHistory) -> np.ndarray:
        best = history.points.inputs[history.seen[int(history.known[:, 0].argmax())]]
        return -np.linalg.norm(history.points.inputs[history.open] - best, axis=1)


points = Points(np.linspace(0, 1, 101)[:, None])
history, rng = SearchHistory(points), np.random.default_rng(1)
for _ in range(20):
    (row,) = NearTheBest().propose(history, 1, rng)
    score = -abs(points.inputs[row, 0] - 0.7)  # the best point is 0.7
    history = replace(history, seen=(*history.seen, row), scores=np.append(history.scores, [[score]], axis=0))
print(round(points.inputs[history.seen[int(history.scores.argmax())], 0], 2))
