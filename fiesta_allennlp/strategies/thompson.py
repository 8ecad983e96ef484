from typing import Any, List, Mapping, Optional, Tuple

import numpy as np

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.records import History
from fiesta_allennlp.strategies.base import Look, Strategy, all_finished, believed, finalists, in_turn
from fiesta_allennlp.strategies.fixed_confidence import FixedConfidence


class PosteriorSampling(FixedConfidence):
    """Begins with the starting evaluations of all candidates, in turn, and then draws names by what is believed.

    Where the stopping rule is sure, but the winner has fewer evaluations than `belief.min_to_win`, or all its rivals
    have, the winner and its nearest rival are evaluated and nothing else.

    See `FixedConfidence` for the parameters.
    """

    def fill(self, history: History, look: Look, slots: int, rng: np.random.Generator) -> List[str]:
        starts = in_turn(history, history.active, target=self.num_starts, slots=slots)
        if starts or not all_finished(history, history.active, self.num_starts):
            return starts
        # Where it may stop, the rule has been asked already, and was not sure.
        if not self.may_stop(history, look.decision) and self.stop.is_sure(history, look.decision, self.confidence):
            return in_turn(history, finalists(look.decision), target=self.to_win, slots=slots)
        return self.choose(history, look, slots, rng)

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
    scores that have finished. Prefer `ttts` for high confidence: once a candidate is probably best, this one
    evaluates little else.

    See `FixedConfidence` for the parameters.
    """

    def choose(self, history: History, look: Look, slots: int, rng: np.random.Generator) -> List[str]:
        return draw(look.decision.prob_best, slots, rng)


@Strategy.register("bts")
class BatchThompson(PosteriorSampling):
    """Batch Thompson sampling, synchronous (FIESTA, section 4.3 and table 3; Kandasamy et al., 2018).

    A batch is drawn from what was believed when it began, and the next begins when all of it has finished. With
    fewer slots than `batch_size` a batch is dealt out in pieces, all from the same belief. A failed evaluation is
    replaced within its batch by another draw. Use `thompson` where workers need not wait for each other.

    # Parameters

    batch_size : left out, a batch is as large as the number of slots that are free when nothing is pending; failed
        evaluations are then not replaced.

    See `FixedConfidence` for the others.
    """

    def __init__(self, *, batch_size: Optional[int] = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.batch_size = batch_size
        self._begin: Tuple[Optional[History], Mapping[str, float]] = (None, {})

    def check(self, candidates: List[str]) -> None:
        super().check(candidates)
        if self.batch_size is not None and self.batch_size < 1:
            raise ConfigError(f"batch_size must be at least 1, or left out, but got {self.batch_size}.")

    def choose(self, history: History, look: Look, slots: int, rng: np.random.Generator) -> List[str]:
        position = self._position(history)
        if position == 0 and history.pending:
            return []
        begin = history.first(history.total_started - position)
        if position == 0:
            self._begin = (begin, look.decision.prob_best)
        elif self._begin[0] != begin:  # another history than at the last piece, as after a resumption
            self._begin = (begin, believed(begin, self.belief).decision.prob_best)
        size = min(slots, (self.batch_size or slots) - position)
        return draw(self._begin[1], size, rng)

    def _position(self, history: History) -> int:
        """How many evaluations of the batch have been started: 0 where the last one is complete, or pending."""
        starts = sum(min(self.num_starts, history.num_started(name)) for name in history.candidates)
        return (history.total_started - starts) % self.batch_size if self.batch_size else 0


def draw(weights: Mapping[str, float], size: int, rng: np.random.Generator) -> List[str]:
    """`size` independent names, each with a probability in proportion to its weight. One weight is above 0."""
    names = [name for name, weight in weights.items() if weight > 0]
    passed = np.cumsum([weights[name] for name in names])
    indices = np.searchsorted(passed, rng.random(size) * passed[-1], side="right")
    return [names[min(index, len(names) - 1)] for index in indices]
