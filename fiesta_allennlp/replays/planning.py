"""Estimates the runs of a selection by simulating it, and compares other ways to choose."""

import time
from dataclasses import dataclass, replace
from typing import Callable, Dict, Generator, List, Mapping, Optional, Sequence, Tuple, cast

import numpy as np

from fiesta_allennlp.beliefs.base import Belief
from fiesta_allennlp.errors import ConfigError
from fiesta_allennlp.records import History
from fiesta_allennlp.replays.pilot import CHOICE, Problem, problem_of
from fiesta_allennlp.replays.replay import Repetition, Replayer, prepare_replay, replay, wilson_interval
from fiesta_allennlp.replays.settings import PlanSettings, ReplaySettings
from fiesta_allennlp.replays.side_by_side import in_chunks, side_by_side
from fiesta_allennlp.seeding import fresh_seed
from fiesta_allennlp.selection.strategy_building import build_strategy
from fiesta_allennlp.strategies.base import Strategy
from fiesta_allennlp.strategies.fixed_budget import SequentialHalving
from fiesta_allennlp.strategies.fixed_confidence import FixedConfidence
from fiesta_allennlp.strategies.minimising import unwrapped

MARGINS = (0.1, 0.2, 0.4)
"""Margins to compare, in run-to-run sds; rounded to one digit."""


@dataclass(frozen=True)
class NestedMargins:
    """Simulates a strategy once for several margins, the smallest first: a larger margin stops earlier on the same
    path."""

    replayers: Tuple[Replayer, ...]

    def run_all(self, repetitions: range) -> List[Tuple[Repetition, ...]]:
        return side_by_side(self.replayers[0].strategy, [self._steps(repetition) for repetition in repetitions])

    def _steps(self, repetition: int) -> Generator[History, None, Tuple[Repetition, ...]]:
        first, rule = self.replayers[0], rule_of(self.replayers[0].strategy)
        scores = first.draw(repetition)
        outcomes: Dict[int, Repetition] = {}
        for num_rounds, history in enumerate(first.histories(scores, repetition)):
            yield history
            is_unsure = False  # with a larger margin, so that only the smallest margin must be checked as well
            for place, replayer in reversed(list(enumerate(self.replayers))):
                if place in outcomes or (is_unsure and place > 0):
                    continue
                decision = replayer.strategy.recommend(history)
                if decision.stopped_by is not None:
                    outcomes[place] = replayer.outcome(decision, history, scores, num_rounds=num_rounds)
                is_unsure |= rule.stop.stops_at_probability and (decision.confidence or 0.0) < rule.confidence
        return tuple(outcomes.get(place, outcomes[0]) for place in range(len(self.replayers)))


def rule_of(strategy: Strategy) -> FixedConfidence:
    return cast(FixedConfidence, unwrapped(strategy))  # checked by `problem_of`


def margins_of(problem: Problem) -> Tuple[float, ...]:
    """Return the requested margin, and larger ones: parts of the run-to-run sd, rounded to one digit."""
    strategy = rule_of(build_strategy(problem.choice, list(problem.source.true_means())))
    if not strategy.belief.has_margin:
        return (strategy.margin,)
    larger = {float(f"{share * problem.noise_sd:.0e}") for share in MARGINS}
    return (strategy.margin, *sorted(margin for margin in larger if margin > strategy.margin))


def with_margin(problem: Problem, margin: float) -> Replayer:
    params = {**problem.choice.strategy_params(), "margin": margin}
    plain = replace(problem.choice, confidence=None, margin=None, max_evaluations=None, stop=None, strategy=params)
    return prepare_replay(plain, problem.source)


FEWEST, MOST = 20, 200
"""The bounds of the default number of repetitions."""

ROUNDS = 2000
"""The total number of rounds by default, which takes about 5 seconds."""


@dataclass(frozen=True)
class Quantiles:
    """At 5, 50 and 95%."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: np.ndarray) -> "Quantiles":
        return cls(*np.percentile(values, [5, 50, 95], method="inverted_cdf").tolist())


@dataclass(frozen=True)
class Outlook:
    """The outcome of the simulated selections of one kind.

    `mean_runs` and `runs` count all, those of a pilot included. `mean_seconds` and `seconds` are those of the further
    runs, divided by the workers. `correct`, with its 95% Wilson interval, is the share that recommended a best
    candidate, or one within the margin of it, and `inconclusive` the share that stopped undecided.
    """

    repetitions: int
    mean_runs: float
    runs: Quantiles
    mean_seconds: float
    seconds: Quantiles
    correct: float
    correct_interval: Tuple[float, float]
    inconclusive: float


@dataclass(frozen=True)
class Forecast:
    """The estimated runs of a selection, and of other ways to choose.

    `default` is the strategy that was asked for, `margins` the same with larger margins, `equal` the same with equal
    allocation, and `halving` a fixed budget of `budget` runs; the last two are None where an interrupt came before.
    `limit` is the most runs of the default. `settings` has the seed filled in. `seconds` is wall-clock time.
    """

    settings: PlanSettings
    problem: Problem
    limit: int
    default: Outlook
    margins: Mapping[float, Outlook]
    budget: int
    seconds: float
    equal: Optional[Outlook] = None
    halving: Optional[Outlook] = None

    @property
    def interrupted(self) -> bool:
        return self.halving is None


Told = Callable[[int, Optional[int]], None]


def forecast(settings: PlanSettings, *, on_repetitions: Told = lambda number, total: None) -> Forecast:
    """Simulate selections of the problem that the settings describe. The result depends on settings and seed alone.

    An interrupt (`KeyboardInterrupt`) ends it with what has finished, and is passed on where that is nothing.
    `on_repetitions` is called with the number of new selections, and with their total where that becomes known."""
    start = time.monotonic()
    settings = replace(settings, seed=fresh_seed() if settings.seed is None else settings.seed)
    problem = problem_of(settings)
    names = list(problem.source.true_means())
    least = SequentialHalving(belief=Belief(), budget=1).least(len(names))
    if settings.budget is not None:
        SequentialHalving(belief=Belief(), budget=settings.budget).check(names)
        if settings.budget <= problem.num_done:
            raise ConfigError(
                f"--budget must be above the {problem.num_done} runs of the pilot but got {settings.budget}."
            )
    margins = margins_of(problem)
    nested = NestedMargins(tuple(with_margin(problem, margin) for margin in margins))
    first = nested.replayers[0]
    for replayer in nested.replayers:  # each history has one posterior for all margins
        rule_of(replayer.strategy).belief = rule_of(first.strategy).belief
    simulated = _simulated(nested, settings, on_repetitions)
    default, *larger = (_outlook(found, settings.workers) for found in zip(*simulated, strict=True))
    begun = Forecast(
        settings=settings,
        problem=problem,
        limit=rule_of(first.strategy).limit_of(first.begin),
        default=default,
        margins=dict(zip(margins[1:], larger, strict=True)),
        budget=settings.budget or max(round(default.mean_runs), least),
        seconds=time.monotonic() - start,
    )
    return _compared(begun, on_repetitions) if len(simulated) == _repetitions(settings, simulated) else begun


def _compared(begun: Forecast, on_repetitions: Told) -> Forecast:
    start = time.monotonic()
    choice, source = begun.problem.choice, begun.problem.source
    params = choice.strategy_params()
    kept = {name: params[name] for name in ("confidence", "margin", "max_evaluations", "stop") if name in params}
    kinds = {"equal": {"strategy": "non_adaptive_fc", **kept}, "halving": {"budget": begun.budget}}
    made = {
        "repetitions": begun.default.repetitions,
        "batch_size": len(source.true_means()),
        "belief": params["belief"],
    }
    outlooks: Dict[str, Outlook] = {}
    for name, kind in kinds.items():
        settings: ReplaySettings = replace(choice, **{**dict.fromkeys(CHOICE), **made, **kind})
        margin = params.get("margin", 0.0)
        found = replay(settings, source=source, margin=margin, on_repetitions=lambda new: on_repetitions(new, None))
        if found.interrupted:
            return begun
        outlooks[name] = _outlook(found.repetitions, begun.settings.workers)
    seconds = begun.seconds + time.monotonic() - start
    return replace(begun, equal=outlooks["equal"], halving=outlooks["halving"], seconds=seconds)


def _simulated(nested: NestedMargins, settings: PlanSettings, told: Told) -> List[Tuple[Repetition, ...]]:
    """Return all repetitions that finished, each with one outcome for every margin. An interrupt before the first is
    passed on."""
    done: List[Tuple[Repetition, ...]] = []
    while len(done) < (total := _repetitions(settings, done)):
        told(0, 3 * total)
        found, interrupted = in_chunks(
            nested.run_all,
            range(len(done), total),
            num_processes=settings.processes,
            told=lambda number: told(number, None),
        )
        done += found
        if interrupted:
            break
    if not done:
        raise KeyboardInterrupt
    return done


def _repetitions(settings: PlanSettings, done: Sequence[Tuple[Repetition, ...]]) -> int:
    """Return the number of repetitions: where it is open, a first few tell how many rounds one takes."""
    if settings.repetitions is not None or len(done) < FEWEST:
        return settings.repetitions or FEWEST
    rounds = np.mean([outcomes[0].num_rounds for outcomes in done[:FEWEST]])
    return int(np.clip(ROUNDS / max(rounds, 1), FEWEST, MOST))


def _outlook(found: Sequence[Repetition], workers: int) -> Outlook:
    number = len(found)
    runs = np.array([repetition.num_evaluations for repetition in found])
    seconds = np.array([repetition.seconds for repetition in found]) / workers
    num_correct = sum(repetition.correct for repetition in found)
    low, high = wilson_interval(num_correct, number)
    return Outlook(
        repetitions=number,
        mean_runs=float(runs.mean()),
        runs=Quantiles.of(runs),
        mean_seconds=float(seconds.mean()),
        seconds=Quantiles.of(seconds),
        correct=num_correct / number,
        correct_interval=(low, high),
        inconclusive=sum(repetition.stopped_by == "max_evaluations" for repetition in found) / number,
    )
