"""A selection without trainings: scores are looked up by candidate and replicate, whoever finishes first."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Dict, List, Mapping, Tuple, Union

import numpy as np

from fiesta_allennlp.choosing import Strategy
from fiesta_allennlp.choosing.fixed_budget import FixedBudget
from fiesta_allennlp.choosing.strategy import Decision
from fiesta_allennlp.core.records import Failure, History, Request
from fiesta_allennlp.core.registry import build
from fiesta_allennlp.core.seeding import candidate_key
from tests.choosing.histories import evaluation, failing, request

MAX_STEPS = 3000


ON_COUNTS = {"type": "dirichlet_f_measure", "concentration": 1000.0}
"""A belief to which the counts of these scores are about as noisy as they are."""


def built(name: str, *, belief: Union[str, Mapping[str, object]] = "student_t", **options: object) -> Strategy:
    """The strategy registered as `name`. `budget` goes to the fixed-budget ones only, and every other option to the
    fixed-confidence ones only, with P(best) alone as the default of `stop`."""
    is_budget = issubclass(Strategy.by_name(name), FixedBudget)
    options = {"stop": "bayesian", **options}
    fitting = {key: value for key, value in options.items() if (key == "budget") == is_budget}
    config = {"type": belief} if isinstance(belief, str) else dict(belief)
    return build(Strategy, {"type": name, "belief": config, **fitting})


def most_evaluations(strategy: Strategy) -> int:
    """What the strategy may never exceed."""
    return int(getattr(strategy, "budget" if isinstance(strategy, FixedBudget) else "max_evaluations"))


@dataclass
class Simulation:
    """Runs a strategy to its end and checks at every step what every strategy has to keep.

    `means` are the candidates' mean scores. With `shuffled`, the workers finish in a random order, else in the order
    of starting. A training fails with probability `failure_rate`; a candidate with three failures is withdrawn.
    """

    strategy: Strategy
    means: Mapping[str, float]
    num_workers: int = 1
    shuffled: bool = False
    failure_rate: float = 0.0
    seed: int = 0
    sign: int = 1

    def run(self) -> Tuple[Decision, History]:
        rng = np.random.default_rng(self.seed)
        now = History(tuple(self.means), sign=self.sign)
        replicates = dict.fromkeys(self.means, 0)
        for _ in range(MAX_STEPS):
            decision = self.strategy.recommend(now)
            names = self._propose(now, self.num_workers - len(now.pending), rng)
            if decision.stopped_by is not None:
                assert names == []
                return decision, now
            now = self._start(now, names, replicates)
            assert now.pending, "nothing to do, nothing to wait for, and no decision"
            now = self._finish(now, rng)
        raise AssertionError(f"{self.strategy} did not stop after {MAX_STEPS} steps")

    def _propose(self, now: History, slots: int, rng: np.random.Generator) -> List[str]:
        before, same = deepcopy(now), deepcopy(rng)
        names = self.strategy.propose(now, slots, rng)
        assert names == self.strategy.propose(now, slots, same)
        assert now == before
        assert len(names) <= max(0, slots)
        assert set(names) <= set(now.active)
        assert now.total_started + len(names) <= most_evaluations(self.strategy)
        return names

    def _start(self, now: History, names: List[str], replicates: Dict[str, int]) -> History:
        started = []
        for name in names:
            started.append(request(name, replicates[name]))
            replicates[name] += 1
        return now.with_pending(started)

    def _finish(self, now: History, rng: np.random.Generator) -> History:
        done = now.pending[rng.integers(len(now.pending)) if self.shuffled else 0]
        if rng.random() < self.failure_rate:
            return failing(now, Failure(done, "error", "out of memory")).with_withdrawn(max_failures=3)
        return now.with_finished([evaluation(done.candidate, done.replicate, self.score(done))])

    def score(self, done: Request) -> float:
        """Gaussian with a standard deviation of 0.02, the same for one request in every simulation of one seed."""
        rng = np.random.default_rng([self.seed, candidate_key(done.candidate), done.replicate])
        return float(rng.normal(self.means[done.candidate], 0.02))
