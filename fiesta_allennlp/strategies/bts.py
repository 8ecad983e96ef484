from typing import Any, List, Mapping, Optional, Tuple

import numpy as np

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.records import History
from fiesta_allennlp.strategies.base import Look, Strategy, believed
from fiesta_allennlp.strategies.thompson import PosteriorSampling, draw


@Strategy.register("bts")
class BatchThompson(PosteriorSampling):
    """Batch Thompson sampling, synchronous (FIESTA, section 4.3 and table 3; Kandasamy et al., 2018).

    The strategy draws a whole batch from the posterior at the start of the batch. The next batch begins when all runs
    of this one have finished. With fewer slots than `batch_size`, it starts a batch in pieces, all drawn from the same
    posterior. If a run fails, another draw replaces it within its batch. Use `thompson` if workers need not wait for
    each other.

    Args:
        batch_size: number of runs in a batch. By default, a batch is as large as the number of slots that are free when
            nothing is pending; failed runs are then not replaced.

    The other parameters are those of `FixedConfidence`.
    """

    def __init__(self, *, batch_size: Optional[int] = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.batch_size = batch_size
        self._begin: Tuple[Optional[History], Mapping[str, float]] = (None, {})

    def check(self, candidates: List[str]) -> None:
        super().check(candidates)
        if self.batch_size is not None and self.batch_size < 1:
            raise ConfigError(f"batch_size must be at least 1 but is {self.batch_size}.")

    def choose(self, history: History, look: Look, slots: int, rng: np.random.Generator) -> List[str]:
        position = self._position(history)
        if position == 0 and history.pending:
            return []
        begin = history.first(history.total_started - position)
        if position == 0:
            self._begin = (begin, look.decision.prob_best)
        elif self._begin[0] != begin:  # another history than at the last piece, as after a resumption
            prob_best = believed(begin, self.belief).decision.prob_best  # empty where a candidate joined in the batch
            self._begin = (begin, prob_best or look.decision.prob_best)
        size = min(slots, (self.batch_size or slots) - position)
        return draw(self._begin[1], size, rng)

    def _position(self, history: History) -> int:
        """Count the started evaluations of the batch: 0 where the last one is complete, or pending."""
        starts = sum(min(self.num_starts, history.num_started(name)) for name in history.candidates)
        return (history.total_started - starts) % self.batch_size if self.batch_size else 0
