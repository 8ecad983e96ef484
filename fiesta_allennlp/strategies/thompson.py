from collections import Counter
from typing import List, Mapping, Sequence

import numpy as np

from fiesta_allennlp.records import History
from fiesta_allennlp.strategies.base import Look, Strategy, all_finished, in_turn
from fiesta_allennlp.strategies.fixed_confidence import FixedConfidence


class PosteriorSampling(FixedConfidence):
    """Makes the starting runs of all candidates in turn, and then draws names from the posterior.

    If the stopping rule misses runs of some candidates before it names the winner, only these run, so that many workers
    do not make runs that nobody needs. A run of a candidate of `done` goes to the most probable of
    the others.

    The parameters are those of `FixedConfidence`.
    """

    def fill(self, history: History, look: Look, slots: int, rng: np.random.Generator) -> List[str]:
        names = self.open(history.active)
        starts = in_turn(history.started_by(names), target=self.num_starts, slots=slots)
        if starts or not all_finished(history, names, self.num_starts):
            return starts
        if look.decision.lacking:
            return _without_pending(look.decision.lacking, history)[:slots]
        instead = max(names, key=look.decision.prob_best.__getitem__)
        return [instead if name in self.done else name for name in self.choose(history, look, slots, rng)]

    def choose(self, history: History, look: Look, slots: int, rng: np.random.Generator) -> List[str]:
        """Return at most `slots` names, once all starting runs have finished.

        `look` has the current decision, with a probability for every active candidate.
        """
        raise NotImplementedError


@Strategy.register("thompson")
class Thompson(PosteriorSampling):
    """Thompson sampling: draws a candidate for every free slot by its probability of being the best (FIESTA, section
    4.2).

    With many workers this is the asynchronous form of batch Thompson sampling (section 4.3): each draw uses all scores
    that have finished. Prefer `top_two` for high confidence, because Thompson sampling runs little else once a
    candidate is probably the best.

    The parameters are those of `FixedConfidence`.
    """

    def choose(self, history: History, look: Look, slots: int, rng: np.random.Generator) -> List[str]:
        return draw(look.decision.prob_best, slots, rng)


def _without_pending(names: Sequence[str], history: History) -> List[str]:
    """The names, each as often as it has no pending run that stands for it."""
    pending = Counter(request.candidate for request in history.pending)
    left: List[str] = []
    for name in names:
        pending[name] -= 1
        if pending[name] < 0:
            left.append(name)
    return left


def draw(weights: Mapping[str, float], size: int, rng: np.random.Generator) -> List[str]:
    """Draw `size` independent names with probabilities proportional to the weights. At least one weight must be above
    0.
    """
    names = [name for name, weight in weights.items() if weight > 0]
    passed = np.cumsum([weights[name] for name in names])
    indices = np.searchsorted(passed, rng.random(size) * passed[-1], side="right")
    return [names[min(index, len(names) - 1)] for index in indices]
