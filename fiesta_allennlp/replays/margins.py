"""One simulation of a selection for several margins."""

from dataclasses import dataclass, replace
from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np

from fiesta_allennlp.beliefs.base import Belief, Posterior
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.records import History
from fiesta_allennlp.replays.pilot import Problem
from fiesta_allennlp.replays.replay import Repetition, Replayer, prepare_replay
from fiesta_allennlp.selection.strategy_building import build_strategy
from fiesta_allennlp.strategies.fixed_confidence import FixedConfidence
from fiesta_allennlp.strategies.minimising import unwrapped

MARGINS = (0.1, 0.2, 0.4)
"""Margins to compare, in run-to-run sds; rounded to one digit."""


@dataclass(frozen=True)
class NestedMargins:
    """Simulates a strategy once for several margins: a larger one stops earlier on the same path. What is proposed
    depends on the margin only until a winner has the fewest runs that it needs; there the smallest margin leads.
    `replayers` differ in their margins, the smallest one first."""

    replayers: Tuple[Replayer, ...]

    def run(self, repetition: int) -> Tuple[Repetition, ...]:
        """One selection with each margin."""
        first = self.replayers[0]
        scores = first.draw(repetition)
        outcomes: Dict[int, Repetition] = {}
        for num_rounds, history in enumerate(first.histories(scores, repetition)):
            for place, replayer in enumerate(self.replayers):
                decision = replayer.strategy.recommend(history) if place not in outcomes else None
                if decision is not None and decision.stopped_by is not None:
                    outcomes[place] = replayer.outcome(decision, history, scores, num_rounds=num_rounds)
        return tuple(outcomes.get(place, outcomes[0]) for place in range(len(self.replayers)))

    def run_all(self, repetitions: range) -> List[Tuple[Repetition, ...]]:
        return [self.run(repetition) for repetition in repetitions]


def margins_of(problem: Problem) -> Tuple[float, ...]:
    """The margin that was asked for, and larger ones of one digit: parts of the run-to-run sd."""
    strategy = build_strategy(problem.choice, list(problem.source.true_means()))
    if not isinstance(strategy, FixedConfidence):
        raise ConfigError("--strategy: a plan needs one that stops at a confidence, such as top_two.")
    if not strategy.belief.has_margin:
        return (strategy.margin,)
    larger = {float(f"{share * problem.noise_sd:.0e}") for share in MARGINS}
    return (strategy.margin, *sorted(margin for margin in larger if margin > strategy.margin))


def with_margin(problem: Problem, margin: float) -> Replayer:
    """What simulates the chosen strategy with this margin."""
    params = {**problem.choice.strategy_params(), "margin": margin}
    plain = replace(problem.choice, confidence=None, margin=None, max_evaluations=None, stop=None, strategy=params)
    return prepare_replay(plain, problem.source)


def remember_posteriors(replayers: Sequence[Replayer]) -> None:
    """Let them share one belief that computes the posterior of a history once."""
    strategies = [unwrapped(replayer.strategy) for replayer in replayers]
    belief = LatestPosterior(strategies[0].belief)
    for strategy in strategies:
        strategy.belief = belief


class LatestPosterior(Belief):
    """Another belief, which is asked once about every history."""

    def __init__(self, belief: Belief) -> None:
        self._belief = belief
        self._latest: Tuple[Optional[History], Optional[Posterior]] = (None, None)
        self.min_evaluations, self.has_margin = belief.min_evaluations, belief.has_margin

    def min_to_win(self, confidence: float) -> int:
        return self._belief.min_to_win(confidence)

    def posterior(self, history: History) -> Posterior:
        known, posterior = self._latest
        if posterior is None or known is not history:
            posterior = KnownPosterior(self._belief.posterior(history))
            self._latest = (history, posterior)
        return posterior


class KnownPosterior(Posterior):
    """Another posterior, which is asked once about every margin."""

    def __init__(self, posterior: Posterior) -> None:
        self._posterior = posterior
        self._known: Dict[float, np.ndarray] = {}
        self.location, self.scale = posterior.location, posterior.scale

    def sample(self, size: int, rng: np.random.Generator) -> np.ndarray:
        return self._posterior.sample(size, rng)

    def prob_best(self, margin: float = 0.0) -> np.ndarray:
        if margin not in self._known:
            self._known[margin] = self._posterior.prob_best(margin)
        return self._known[margin]

    def lacking(self, best: int, *, confidence: float, margin: float = 0.0) -> List[int]:
        return self._posterior.lacking(best, confidence=confidence, margin=margin)
