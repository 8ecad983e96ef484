"""Estimates the runs of a selection by simulating it, and compares other ways to choose."""

import time
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, cast

import numpy as np

from fiesta_allennlp.beliefs.student_t import StudentT
from fiesta_allennlp.core.errors import ConfigError
from fiesta_allennlp.core.seeding import fresh_seed
from fiesta_allennlp.strategies.base import unwrap_minimising
from fiesta_allennlp.strategies.fixed_budget import SequentialHalving
from fiesta_allennlp.strategies.fixed_confidence import FixedConfidence
from fiesta_allennlp.tables.pilot import CHOICE_OPTIONS, Problem, read_problem
from fiesta_allennlp.tables.replay import Repetition, Replayer, compute_shares, prepare_replay, replay
from fiesta_allennlp.tables.settings import MAX_REPEATS, MIN_REPEATS, PlanSettings, ReplaySettings
from fiesta_allennlp.tables.side_by_side import run_chunks

MARGIN_SHARES = (0.1, 0.2, 0.4)
"""Margins to compare, in run-to-run sds; rounded to one digit."""

NUM_ROUNDS = 2000
"""The number of rounds of the first row by default. All rows then take 5 to 10 seconds."""


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
    runs, divided by the workers. `picked` is the share that named a best candidate, or one within the margin of it,
    `wrong` the share that named another one, and `inconclusive` the share that stopped undecided. They add up to 1.
    `correct` is `picked` and those inconclusive ones whose leader is a best candidate. Intervals are Wilson's, of 95%.
    """

    repetitions: int
    mean_runs: float
    runs: Quantiles
    mean_seconds: float
    seconds: Quantiles
    correct: float
    correct_interval: Tuple[float, float]
    inconclusive: float
    picked: float
    picked_interval: Tuple[float, float]
    wrong: float
    wrong_interval: Tuple[float, float]


@dataclass(frozen=True)
class Forecast:
    """The estimated runs of a selection, and of other ways to choose.

    `default` is the strategy that was asked for, `margins` the same with larger margins, `equal` the same with equal
    allocation, and `halving` a fixed budget of `budget` runs. What an interrupt cut off is missing from `margins`, and
    None in the last two. `limit` is the most runs of the default, and `margin` its
    margin. `settings` has the seed filled in. `seconds` is wall-clock time.
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
    margin: float = 0.0

    def has_wrong_answers(self, margin: float) -> bool:
        """Return whether a winner can be wrong with this margin. It cannot if all candidates are within it."""
        return self.settings.source is not None or margin < (self.settings.gap or 0.0)

    @property
    def interrupted(self) -> bool:
        return self.halving is None


OnRepetitions = Callable[[int, Optional[int]], None]


def forecast(settings: PlanSettings, *, on_repetitions: OnRepetitions = lambda number, total: None) -> Forecast:
    """Simulate selections of the problem that the settings describe. The result depends on settings and seed alone.

    An interrupt (`KeyboardInterrupt`) ends it with what has finished, and is passed on where that is nothing.
    `on_repetitions` is called with the number of new selections, and with their total where that becomes known."""
    start = time.monotonic()
    settings = replace(settings, seed=fresh_seed() if settings.seed is None else settings.seed)
    problem = read_problem(settings)
    min_budget = _find_min_budget(settings, problem)
    replayer = prepare_replay(problem.choice, problem.source)
    rule = cast(FixedConfidence, unwrap_minimising(replayer.strategy))  # checked by `read_problem`
    margin, margins = requested_margin(rule, problem.noise_sd), larger_margins(rule, problem.noise_sd)
    repetitions, interrupted = _simulate(replayer, settings, num_kinds=len(margins) + 3, report=on_repetitions)
    default = _make_outlook(repetitions, settings.workers)
    budget = settings.budget or max(round(default.mean_runs), min_budget)
    outlooks: Dict[Any, Outlook] = {}
    if not interrupted:
        for kind, choice in _list_alternatives(problem, margins, budget=budget).items():
            result = replay(
                replace(choice, repetitions=len(repetitions)),
                source=problem.source,
                margin=margin,
                on_repetitions=lambda number: on_repetitions(number, None),
            )
            if result.interrupted:
                break
            outlooks[kind] = _make_outlook(result.repetitions, settings.workers)
    return Forecast(
        settings=settings,
        problem=problem,
        limit=rule.limit_of(replayer.first_history),
        default=default,
        margins={margin: outlooks[margin] for margin in margins if margin in outlooks},
        budget=budget,
        seconds=time.monotonic() - start,
        equal=outlooks.get("equal"),
        halving=outlooks.get("halving"),
        margin=margin,
    )


def _find_min_budget(settings: PlanSettings, problem: Problem) -> int:
    """Return the least budget of the candidates. Refuse one that is smaller, or that the pilot has used up."""
    names = list(problem.source.true_means())
    if settings.budget is not None:
        SequentialHalving(belief=StudentT(), budget=settings.budget).check(names)
        if settings.budget <= problem.num_done:
            raise ConfigError(
                f"--budget must be above the {problem.num_done} runs of the pilot but got {settings.budget}."
            )
    return SequentialHalving(belief=StudentT(), budget=1).least(len(names))


def _list_alternatives(problem: Problem, margins: Sequence[float], *, budget: int) -> Mapping[Any, ReplaySettings]:
    """Return the other ways to choose: the larger margins, `equal` and `halving`."""
    params = problem.choice.strategy_params()
    shared = {name: params[name] for name in ("confidence", "margin", "max_evaluations", "stop") if name in params}
    in_rounds = {"belief": params["belief"], "batch_size": len(problem.source.true_means())}
    kinds: Dict[Any, Dict[str, Any]] = {
        **{margin: {"strategy": {**params, "margin": margin}} for margin in margins},
        "equal": {"strategy": "non_adaptive_fc", **shared, **in_rounds},
        "halving": {"budget": budget, **in_rounds},
    }
    defaults = dict.fromkeys(CHOICE_OPTIONS)
    return {kind: replace(problem.choice, **{**defaults, **changes}) for kind, changes in kinds.items()}


def larger_margins(rule: FixedConfidence, noise_sd: float) -> List[float]:
    """Return margins to compare: parts of the run-to-run sd, rounded to one digit, above the requested margin."""
    margins = sorted({float(f"{share * noise_sd:.0e}") for share in MARGIN_SHARES}) if rule.belief.has_margin else []
    return [margin for margin in margins if margin > requested_margin(rule, noise_sd)]


def requested_margin(rule: FixedConfidence, noise_sd: float) -> float:
    """Return the requested margin in units of the score."""
    margin = rule.parsed_margin
    return (margin.with_sd(noise_sd) if margin.value is None else margin).value or 0.0


def _simulate(
    replayer: Replayer, settings: PlanSettings, *, num_kinds: int, report: OnRepetitions
) -> Tuple[List[Repetition], bool]:
    """Return the repetitions that finished, and whether an interrupt came before the last one. An interrupt before the
    first is passed on."""
    repetitions: List[Repetition] = []
    interrupted = False
    while not interrupted and len(repetitions) < (total := _choose_num_repetitions(settings, repetitions)):
        report(0, num_kinds * total)
        numbers = range(len(repetitions), total)
        results, interrupted = run_chunks(
            replayer.run_all, numbers, num_processes=settings.processes, report=lambda number: report(number, None)
        )
        repetitions += results
    if not repetitions:
        raise KeyboardInterrupt
    return repetitions, interrupted


def _choose_num_repetitions(settings: PlanSettings, finished: Sequence[Repetition]) -> int:
    """Return the number of repetitions: where it is open, a first few tell how many rounds one takes."""
    if settings.repetitions is not None or len(finished) < MIN_REPEATS:
        return settings.repetitions or MIN_REPEATS
    rounds = np.mean([repetition.num_rounds for repetition in finished[:MIN_REPEATS]])
    return int(np.clip(NUM_ROUNDS / max(rounds, 1), MIN_REPEATS, MAX_REPEATS))


def _make_outlook(repetitions: Sequence[Repetition], workers: int) -> Outlook:
    number = len(repetitions)
    runs = np.array([repetition.num_evaluations for repetition in repetitions])
    seconds = np.array([repetition.seconds for repetition in repetitions]) / workers
    return Outlook(
        repetitions=number,
        mean_runs=float(runs.mean()),
        runs=Quantiles.of(runs),
        mean_seconds=float(seconds.mean()),
        seconds=Quantiles.of(seconds),
        inconclusive=sum(repetition.is_undecided for repetition in repetitions) / number,
        **compute_shares(repetitions),
    )
