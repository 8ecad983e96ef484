from typing import Any, Dict, List, Optional

import numpy as np

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.records import History, Remaining
from fiesta_allennlp.strategies.base import Look, Strategy
from fiesta_allennlp.strategies.remaining import remaining, transportation_cost
from fiesta_allennlp.strategies.thompson import PosteriorSampling, draw


@Strategy.register("top_two")
class TopTwo(PosteriorSampling):
    """Top-two sampling with a challenger by transportation cost: the sampling rule to use for a fixed confidence.

    With pi_i the probability that candidate i is the best, the rule draws a leader I from pi. The challenger J != I is
    the candidate with the least evidence that separates it from I. The one of the two with fewer runs is run next, I if
    they are equal. Every free slot gets its own pair.

    The leader is that of Russo (2016), the challenger belongs to the family T3C (Shang et al., 2020). Let n_i be the
    finished and pending runs of i, and z_ij = (mean_i - mean_j) / sqrt(v_i + v_j), with each posterior variance v
    scaled by finished / n. J minimises::

        sign(z_IJ) z_IJ^2 / 2 + log n_J

    the improved transportation cost (Jourdan et al., 2022). Pending runs count as made, so that many workers do not all
    choose the same pair. Equal numbers of runs keep scores on shared splits in pairs.

    The paper's own rule is `ttts`, which needs more runs.

    Args:
        beta: probability that I is run instead of J, above 0 and at most 1; with 1, I always runs. By default, the one
            with fewer runs is run.

    The other parameters are those of `FixedConfidence`.
    """

    def __init__(self, *, beta: Optional[float] = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.beta = beta

    def check(self, candidates: List[str]) -> None:
        super().check(candidates)
        if self.beta is not None and not 0 < self.beta <= 1:
            raise ConfigError(f"beta must be above 0 and at most 1, such as 0.5, but is {self.beta}.")

    def remaining(self, history: History, rng: np.random.Generator) -> Optional[Remaining]:
        look = self._look(history)
        if look.posterior is None or look.decision.stopped_by is not None or not self.stop.stops_at_probability:
            return None
        return remaining(
            look.posterior,
            [history.num_finished(name) for name in history.active],
            confidence=self.confidence,
            margin=self.margin,
            stop=self.stop,
            room=self.room(history) + len(history.pending),
            rng=rng,
            is_open=[name not in self.done for name in history.active],
        )

    def choose(self, history: History, look: Look, slots: int, rng: np.random.Generator) -> List[str]:
        started = history.started_by(look.decision.prob_best)
        chosen: List[str] = []
        for _ in range(slots):
            one = leader = draw(look.decision.prob_best, 1, rng)[0]
            if self.beta is None or rng.random() >= self.beta:
                one = self.challenger(leader, history, look, started, rng)
            if self.beta is None and started[leader] <= started[one]:
                one = leader
            started[one] += 1
            chosen.append(one)
        return chosen

    def challenger(
        self, leader: str, history: History, look: Look, started: Dict[str, int], rng: np.random.Generator
    ) -> str:
        """Return the challenger of a leader: the candidate of least transportation cost from it.

        `started` counts the runs of each candidate, earlier slots included.
        """
        assert look.posterior is not None
        names, num_started = list(started), np.array(list(started.values()), dtype=float)
        finished = np.array([history.num_finished(name) for name in names])
        location, variance = look.posterior.location, look.posterior.scale**2 * finished / num_started
        first = names.index(leader)
        cost = transportation_cost(location[first] - location, variance[first] + variance, num_started)
        cost[first] = np.inf
        return names[int(np.argmin(cost))]


@Strategy.register("ttts")
class TopTwoThompson(TopTwo):
    """Top-two Thompson sampling as in the FIESTA paper (algorithm 2; Russo, 2016).

    With pi_i the probability that candidate i is the best, the rule draws a leader I from pi and a challenger J != I
    with probability pi_J / (1 - pi_I), or with equal probability if pi leaves nothing for the others. I is run with
    probability `beta`, otherwise J. This is also the pure exploration Thompson sampling (PETS) of Haffari et al. (2017,
    algorithms 1 and 2). With `beta` 1 it is their Thompson sampling. `top_two` needs fewer runs.

    Args:
        beta: probability that I is run instead of J, above 0 and at most 1.

    The other parameters are those of `FixedConfidence`.
    """

    def __init__(self, *, beta: float = 0.5, **kwargs: Any) -> None:
        super().__init__(beta=beta, **kwargs)

    def challenger(
        self, leader: str, history: History, look: Look, started: Dict[str, int], rng: np.random.Generator
    ) -> str:
        others = {name: prob for name, prob in look.decision.prob_best.items() if name != leader}
        return draw(others if any(others.values()) else dict.fromkeys(others, 1.0), 1, rng)[0]
