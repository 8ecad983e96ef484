import numpy as np

from fiesta_allennlp.searches.searchers.base import Searcher, SearchHistory


@Searcher.register("random")
class Random(Searcher):
    """Random search: every open point is equally good (Bergstra and Bengio, 2012).

    Use it as the baseline for all searchers. Use it also if a score says little about the scores of near points.
    """

    def criterion(self, history: SearchHistory) -> np.ndarray:
        return np.zeros(len(history.open))
