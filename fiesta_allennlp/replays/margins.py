"""One simulation of a selection for several margins."""

from dataclasses import dataclass, replace
from typing import Dict, Generator, List, Tuple, cast

from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.records import Decision, History
from fiesta_allennlp.replays.pilot import Problem
from fiesta_allennlp.replays.replay import Repetition, Replayer, prepare_replay
from fiesta_allennlp.replays.side_by_side import side_by_side
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

    def run_all(self, repetitions: range) -> List[Tuple[Repetition, ...]]:
        """Selections with each margin."""
        return side_by_side(self.replayers[0].strategy, [self._steps(repetition) for repetition in repetitions])

    def _is_unsure(self, decision: Decision) -> bool:
        strategy = cast(FixedConfidence, unwrapped(self.replayers[0].strategy))  # checked by `margins_of`
        return strategy.stop.stops_at_probability and (decision.confidence or 0.0) < strategy.confidence

    def _steps(self, repetition: int) -> Generator[History, None, Tuple[Repetition, ...]]:
        first = self.replayers[0]
        scores = first.draw(repetition)
        outcomes: Dict[int, Repetition] = {}
        for num_rounds, history in enumerate(first.histories(scores, repetition)):
            yield history
            is_unsure = False  # with a larger margin, so that no smaller one needs to be asked but the leading one
            for place, replayer in reversed(list(enumerate(self.replayers))):
                if place in outcomes or (is_unsure and place > 0):
                    continue
                decision = replayer.strategy.recommend(history)
                if decision.stopped_by is not None:
                    outcomes[place] = replayer.outcome(decision, history, scores, num_rounds=num_rounds)
                is_unsure = is_unsure or self._is_unsure(decision)
        return tuple(outcomes.get(place, outcomes[0]) for place in range(len(self.replayers)))


def margins_of(problem: Problem) -> Tuple[float, ...]:
    """The margin that was asked for, and larger ones of one digit: parts of the run-to-run sd."""
    strategy = build_strategy(problem.choice, list(problem.source.true_means()))
    if not isinstance(strategy, FixedConfidence):
        raise ConfigError("--strategy: a plan needs a strategy that stops at a confidence, such as top_two.")
    if not strategy.belief.has_margin:
        return (strategy.margin,)
    larger = {float(f"{share * problem.noise_sd:.0e}") for share in MARGINS}
    return (strategy.margin, *sorted(margin for margin in larger if margin > strategy.margin))


def with_margin(problem: Problem, margin: float) -> Replayer:
    """Return what simulates the chosen strategy with this margin."""
    params = {**problem.choice.strategy_params(), "margin": margin}
    plain = replace(problem.choice, confidence=None, margin=None, max_evaluations=None, stop=None, strategy=params)
    return prepare_replay(plain, problem.source)
