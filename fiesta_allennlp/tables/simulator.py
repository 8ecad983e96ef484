"""Simulates selections: draws scores from a source, runs the strategy on them, and collects the outcomes."""

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Callable, Dict, Generator, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from scipy.special import ndtri

from fiesta_allennlp.core.defaults import MAX_FAILURES
from fiesta_allennlp.core.records import Evaluation, Failure, History
from fiesta_allennlp.core.seeding import (
    REPLAY_SCORES_STREAM,
    REPLAY_SPLITS_STREAM,
    REPLAY_STRATEGY_STREAM,
    fresh_seed,
    replay_rng,
)
from fiesta_allennlp.selection.settings import OFFICIAL, SHARED
from fiesta_allennlp.selection.strategy_building import build_strategy
from fiesta_allennlp.selection.verdicts import ScoreThreshold
from fiesta_allennlp.strategies.base import Margin, Strategy
from fiesta_allennlp.tables.settings import MAX_REPEATS, MIN_REPEATS, ReplaySettings
from fiesta_allennlp.tables.side_by_side import prepare_belief, run_chunks, run_side_by_side
from fiesta_allennlp.tables.sources import DrawnScores, OutOfScoresError, Sampling, ScoreSource, restrict
from fiesta_allennlp.tables.table import open_scores

TIE_TOLERANCE = 1e-12
"""Means that are as near as that are equal: the mean of equal scores can be off in the last digit."""

NUM_ROUNDS = 2000
"""The number of rounds to simulate where the number of repetitions is open."""

OnRepetitions = Callable[[int, Optional[int]], None]
"""Called with the number of repetitions that have newly finished, and with their total where that becomes known."""


@dataclass(frozen=True)
class Repetition:
    """The outcome of one simulated selection. `correct`: `best` is, within the margin, a candidate with the best true
    mean. A round makes a batch of parallel evaluations. `seconds` is the sum over all workers."""

    best: Optional[str]
    stopped_by: str
    correct: bool
    num_evaluations: int
    num_rounds: int
    seconds: float = 0.0

    @property
    def is_undecided(self) -> bool:
        return self.stopped_by == "max_evaluations"


@dataclass(frozen=True)
class Distribution:
    """The mean, the sd, the extremes, and the quantiles at 5, 50 and 95% of one number of each repetition."""

    mean: float
    sd: float
    min: float
    low: float
    median: float
    high: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Distribution":
        quantiles = np.percentile(values, [0, 5, 50, 95, 100], method="inverted_cdf")
        return cls(float(np.mean(values)), float(np.std(values)), *quantiles.tolist())


@dataclass(frozen=True)
class Outlook:
    """The outcomes of the simulated selections of one way to choose.

    `runs` counts the runs of each, those of a pilot included. `seconds` is the time of the further runs, summed over
    all workers. `recommended` is the share that ended with each candidate. `picked` is the share that named a best
    candidate, or one within the margin of it, `wrong` the share that named another one, and `inconclusive` the share
    that stopped undecided. They add up to 1. `correct` is `picked` and those inconclusive ones whose leader is a best
    candidate. Intervals are Wilson's, of 95%. `with_replacement` tells that scores were drawn with replacement.
    `prob_decided` is the share that named a winner within the seconds of a limit, None without one.
    """

    repetitions: int
    interrupted: bool
    with_replacement: bool
    runs: Distribution
    mean_rounds: float
    seconds: Distribution
    recommended: Mapping[str, float]
    inconclusive: float
    correct: float
    correct_interval: Tuple[float, float]
    picked: float
    picked_interval: Tuple[float, float]
    wrong: float
    wrong_interval: Tuple[float, float]
    prob_decided: Optional[float] = None

    @classmethod
    def of(
        cls,
        repetitions: Sequence[Repetition],
        *,
        interrupted: bool = False,
        with_replacement: bool = False,
        max_seconds: Optional[float] = None,
    ) -> "Outlook":
        number = len(repetitions)
        names = Counter(repetition.best for repetition in repetitions)
        num_correct = sum(repetition.correct for repetition in repetitions)
        num_picked = sum(repetition.correct and not repetition.is_undecided for repetition in repetitions)
        num_undecided = sum(repetition.is_undecided for repetition in repetitions)
        num_wrong = number - num_picked - num_undecided
        return cls(
            repetitions=number,
            interrupted=interrupted,
            with_replacement=with_replacement,
            runs=Distribution.of([repetition.num_evaluations for repetition in repetitions]),
            mean_rounds=float(np.mean([repetition.num_rounds for repetition in repetitions])),
            seconds=Distribution.of([repetition.seconds for repetition in repetitions]),
            recommended={name: count / number for name, count in names.items() if name is not None},
            inconclusive=num_undecided / number,
            correct=num_correct / number,
            correct_interval=wilson_interval(num_correct, number),
            picked=num_picked / number,
            picked_interval=wilson_interval(num_picked, number),
            wrong=num_wrong / number,
            wrong_interval=wilson_interval(num_wrong, number),
            prob_decided=None
            if max_seconds is None
            else float(np.mean([not r.is_undecided and r.seconds <= max_seconds for r in repetitions])),
        )


@dataclass(frozen=True)
class Simulator:
    """Everything that one repetition needs; sent to the worker processes. `settings` include what the source decides.
    `margin` is how far from the best true mean a candidate is right to recommend, if the strategy has no margin."""

    settings: ReplaySettings
    strategy: Strategy
    source: ScoreSource
    sampling: Sampling
    margin: float

    @cached_property
    def true_means(self) -> Dict[str, float]:
        return self.source.true_means()

    @property
    def minimise(self) -> bool:
        return bool(self.settings.minimise)

    @cached_property
    def first_history(self) -> History:
        return replace(self.source.start or History(tuple(self.true_means)), sign=-1 if self.minimise else 1)

    @property
    def num_done(self) -> int:
        return len(self.first_history.evaluations)

    @property
    def seed(self) -> int:
        return self.settings.seed or 0

    def run(
        self,
        repetitions: Optional[int],
        *,
        processes: int = 1,
        max_seconds: Optional[float] = None,
        on_repetitions: OnRepetitions = lambda number, total: None,
    ) -> Outlook:
        """Simulate selections; None for as many as a few seconds allow. `max_seconds` is the limit of `prob_decided`.

        An interrupt (`KeyboardInterrupt`) ends it with those that have finished, and is passed on where there are none.
        """
        finished: List[Repetition] = []
        interrupted = False
        try:
            while not interrupted and len(finished) < (total := repetitions or _choose_num_repetitions(finished)):
                on_repetitions(0, total)
                numbers = range(len(finished), total)
                more, interrupted = run_chunks(
                    self.run_all,
                    numbers,
                    num_processes=min(processes, len(numbers)),
                    report=lambda number: on_repetitions(number, None),
                )
                finished += more
        except OutOfScoresError:
            if self.settings.with_replacement is not None:
                raise
            again = replace(self, sampling=replace(self.sampling, with_replacement=True))
            return again.run(repetitions, processes=processes, max_seconds=max_seconds, on_repetitions=on_repetitions)
        if not finished:
            raise KeyboardInterrupt
        return Outlook.of(
            finished,
            interrupted=interrupted,
            with_replacement=self.sampling.with_replacement,
            max_seconds=max_seconds,
        )

    def run_all(self, repetitions: range) -> List[Repetition]:
        """Simulate these repetitions, with the scores and the draws that belong to their numbers."""
        return run_side_by_side(self.strategy, [self.simulate(repetition) for repetition in repetitions])

    def simulate(self, repetition: int) -> Generator[History, None, Repetition]:
        """Yield each history of a repetition before the strategy decides from it, and return the outcome."""
        scores = self.draw(repetition)
        for num_rounds, history in enumerate(self.iterate_histories(scores, repetition)):  # noqa: B007
            yield history
        decision = self.strategy.recommend(history)
        if decision.stopped_by is None:
            raise RuntimeError(
                f"{self.strategy} is stuck: it proposes no run, waits for none, and does not stop. Fix its `propose` "
                "or its stopping rule."
            )
        means = scores.true_means or self.true_means
        best_names = find_best(means, decision.margin or self.margin, minimise=self.minimise)
        return Repetition(
            best=decision.best,
            stopped_by=decision.stopped_by,
            correct=decision.best in best_names,
            num_evaluations=len(history.evaluations) + len(history.failures),
            num_rounds=num_rounds,
            seconds=sum(run.seconds for run in history.evaluations[self.num_done :]),
        )

    def iterate_histories(self, scores: DrawnScores, repetition: int) -> Iterator[History]:
        """Yield the history before the first round and after every one."""
        rng = replay_rng(self.seed, REPLAY_STRATEGY_STREAM, repetition)
        history = self.first_history
        score_threshold = ScoreThreshold(self.settings.min_score, self.minimise)
        yield history
        while names := self.strategy.propose(history, self.settings.batch_size, rng):
            outcomes = [score_threshold.to_outcome(run) for run in _draw_evaluations(scores, history, names)]
            history = history.with_finished(outcome for outcome in outcomes if isinstance(outcome, Evaluation))
            if failed := [outcome for outcome in outcomes if isinstance(outcome, Failure)]:
                history = replace(history, failures=(*history.failures, *failed))
                history = history.with_withdrawn(max_failures=MAX_FAILURES)
            yield history

    def draw(self, repetition: int) -> DrawnScores:
        return self.source.draw(
            self.sampling,
            split_rng=replay_rng(self.seed, REPLAY_SPLITS_STREAM, repetition),
            score_rngs={
                name: replay_rng(self.seed, REPLAY_SCORES_STREAM, repetition, name) for name in self.true_means
            },
        )


def prepare_simulator(
    settings: ReplaySettings, source: Optional[ScoreSource] = None, *, margin: float = 0.0
) -> Simulator:
    """Read and check everything. `source` takes the place of what `settings.scores` names, and `margin` that of a
    strategy without one."""
    if source is None:
        source = open_scores(settings)
    if settings.candidates:
        source = restrict(source, settings.candidates)
    minimise = bool(settings.minimise or source.minimise)
    score_threshold = source.score_threshold
    if settings.min_score is not None:
        score_threshold = ScoreThreshold(settings.min_score, minimise)
    settings = replace(
        settings,
        seed=fresh_seed() if settings.seed is None else settings.seed,
        splits=OFFICIAL if source.on_official_splits else settings.splits,
        minimise=minimise,
        min_score=score_threshold.score,
    )
    sampling = Sampling(settings.splits == SHARED, bool(settings.with_replacement), length=0)
    source = source.fitted(sampling).judged_by(score_threshold)
    names = list(source.true_means())
    strategy = build_strategy(settings, names, has_counts=source.reports_counts, minimise=minimise)
    if settings.done:
        strategy.without_further_runs(settings.done, source.start or History(tuple(names)))
    prepare_belief(strategy)
    _, max_runs = strategy.bounds(len(names))
    parsed_margin = Margin.parse(settings.strategy_params().get("margin", margin))
    sampling = replace(sampling, length=max_runs)
    return Simulator(settings, strategy, source, sampling, margin=parsed_margin.to_score(source.noise_sd or 0.0))


def _choose_num_repetitions(finished: Sequence[Repetition]) -> int:
    """Return the number of repetitions where it is open: a first few tell how many rounds one takes."""
    if len(finished) < MIN_REPEATS:
        return MIN_REPEATS
    rounds = np.mean([repetition.num_rounds for repetition in finished[:MIN_REPEATS]])
    return int(np.clip(NUM_ROUNDS / max(rounds, 1), MIN_REPEATS, MAX_REPEATS))


def _draw_evaluations(scores: DrawnScores, history: History, names: List[str]) -> Iterator[Evaluation]:
    num_started = {name: history.num_started(name) for name in names}
    for failure in history.failures:
        if failure.request.candidate in num_started:
            num_started[failure.request.candidate] += 1
    for name in names:
        yield scores.run(name, num_started[name])
        num_started[name] += 1


def find_best(means: Mapping[str, float], margin: float, *, minimise: bool = False) -> Tuple[str, ...]:
    """Return the candidates whose means are within the margin of the best one."""
    gains = {name: -mean if minimise else mean for name, mean in means.items()}
    return tuple(name for name in gains if gains[name] >= max(gains.values()) - margin - TIE_TOLERANCE)


def wilson_interval(count: int, number: int) -> Tuple[float, float]:
    """Wilson's 95% interval of a share, its lower and its upper end.

    With p = count / number and z the normal quantile of 0.975::

        (p + z^2 / (2 n) -+ z sqrt(p (1 - p) / n + z^2 / (4 n^2))) / (1 + z^2 / n)
    """
    share, z = count / number, float(ndtri(0.975))
    middle = share + z**2 / (2 * number)
    half = z * math.sqrt(share * (1 - share) / number + z**2 / (4 * number**2))
    low, high = ((middle + side) / (1 + z**2 / number) for side in (-half, half))
    return 0.0 if count == 0 else low, 1.0 if count == number else high
