from typing import List, Mapping

import numpy as np

from fiesta_allennlp.records import History
from fiesta_allennlp.strategies.base import Look, Strategy, all_finished, finalists, in_turn
from fiesta_allennlp.strategies.fixed_confidence import FixedConfidence


class PosteriorSampling(FixedConfidence):
    """Begins with the starting evaluations of all candidates, in turn, and then draws names by what is believed.

    Where the stopping rule is sure, but the winner has fewer evaluations than `belief.min_to_win`, or all its rivals
    have, the winner and its nearest rival are evaluated and nothing else. Where `Posterior.doubted` names a
    candidate, it gets a slot first, unless it has a pending run.

    See `FixedConfidence` for the parameters.
    """

    def fill(self, history: History, look: Look, slots: int, rng: np.random.Generator) -> List[str]:
        starts = in_turn(history, history.active, target=self.num_starts, slots=slots)
        if starts or not all_finished(history, history.active, self.num_starts):
            return starts
        # Where it may stop, the rule has been asked already.
        if not self.may_stop(history, look.decision) and self.stop.is_sure(history, look.decision, self.confidence):
            return in_turn(history, finalists(look.decision), target=self.to_win, slots=slots)
        first = [] if look.doubted is None or history.num_pending(look.doubted) else [look.doubted]
        return [*first, *self.choose(history, look, slots - len(first), rng)]

    def choose(self, history: History, look: Look, slots: int, rng: np.random.Generator) -> List[str]:
        """At most `slots` names, once all starting evaluations have finished.

        `look` is what is believed now, with a probability for every active candidate.
        """
        raise NotImplementedError


@Strategy.register("thompson")
class Thompson(PosteriorSampling):
    """Thompson sampling: every free slot gets a candidate drawn with the probability that it is best (FIESTA, section
    4.2).

    With many workers this is the asynchronous form of batch Thompson sampling (section 4.3): each draw uses all
    scores that have finished. Prefer `top_two` for high confidence: once a candidate is probably best, this one
    evaluates little else.

    See `FixedConfidence` for the parameters.
    """

    def choose(self, history: History, look: Look, slots: int, rng: np.random.Generator) -> List[str]:
        return draw(look.decision.prob_best, slots, rng)


def draw(weights: Mapping[str, float], size: int, rng: np.random.Generator) -> List[str]:
    """`size` independent names, each with a probability in proportion to its weight. One weight is above 0."""
    names = [name for name, weight in weights.items() if weight > 0]
    passed = np.cumsum([weights[name] for name in names])
    indices = np.searchsorted(passed, rng.random(size) * passed[-1], side="right")
    return [names[min(index, len(names) - 1)] for index in indices]
