"""Simulated selections: the scores that are drawn from a source, the strategy that runs on them, and the outcomes."""

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from scipy.special import ndtri

from fiesta_allennlp.choosing.beliefs.student_t import ModeratedT, count_on_units
from fiesta_allennlp.choosing.fixed_budget import NonAdaptiveFixedConfidence
from fiesta_allennlp.choosing.fixed_confidence import FixedConfidence
from fiesta_allennlp.choosing.probability.batch import Batch, Ends, OutOfScores, Rules
from fiesta_allennlp.choosing.strategy import DECIDED_REASONS, Margin, Strategy, build_strategy
from fiesta_allennlp.core import seeding
from fiesta_allennlp.core.choice_settings import MAX_FAILURES, OFFICIAL, SHARED
from fiesta_allennlp.core.records import LOW_SCORES_PER_FINISHED_RUN, Evaluation, Failure, History
from fiesta_allennlp.selecting.recovery import ScoreThreshold
from fiesta_allennlp.tables.simulation import score_sources
from fiesta_allennlp.tables.table_settings import MAX_REPEATS, MIN_REPEATS, ReplaySettings

TIE_TOLERANCE = 1e-12
"""Means that are as near as that are equal: the mean of equal scores can be off in the last digit."""


@dataclass(frozen=True)
class Repetition:
    """The outcome of one simulated selection. `is_named`: `best` was named as the winner. `correct`: within the margin,
    `best` has the best true mean. A round makes a batch of parallel evaluations. `seconds` is the sum over all workers,
    and `confidence` P(best within the margin)."""

    best: Optional[str]
    is_named: bool
    correct: bool
    num_evaluations: int
    num_rounds: int
    seconds: float = 0.0
    confidence: Optional[float] = field(default=None, compare=False)


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
    candidate, or one within the margin of it, `wrong` the share that named another one, and `open` the share
    that stayed open. They add up to 1. `correct` is `picked` and those open ones whose leader is a best
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
    open: float
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
        counts = {
            "correct": sum(repetition.correct for repetition in repetitions),
            "picked": sum(repetition.correct and repetition.is_named for repetition in repetitions),
            "wrong": sum(repetition.is_named and not repetition.correct for repetition in repetitions),
        }
        shares: Dict[str, Any] = {name: count / number for name, count in counts.items()}
        shares.update({f"{name}_interval": wilson_interval(count, number) for name, count in counts.items()})
        return cls(
            repetitions=number,
            interrupted=interrupted,
            with_replacement=with_replacement,
            runs=Distribution.of([repetition.num_evaluations for repetition in repetitions]),
            mean_rounds=float(np.mean([repetition.num_rounds for repetition in repetitions])),
            seconds=Distribution.of([repetition.seconds for repetition in repetitions]),
            recommended={name: count / number for name, count in names.items() if name is not None},
            open=1 - (counts["picked"] + counts["wrong"]) / number,
            **shares,
            prob_decided=None
            if max_seconds is None
            else float(np.mean([r.is_named and r.seconds <= max_seconds for r in repetitions])),
        )


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


NUM_ROUNDS = 2000
"""The number of rounds to simulate where the number of repetitions is open."""

MAX_CHUNK_SIZE = 200
"""The most repetitions to simulate at once: enough for arrays to pay, and few enough for a bar that moves."""

MAX_RUNS_ON_TASK = 500
"""The most runs of a candidate on one of several tasks that are drawn."""

OnRepetitions = Callable[[int, Optional[int]], None]
"""Called with the number of repetitions that have newly finished, and with their total where that becomes known."""


@dataclass(frozen=True)
class Simulator:
    """Everything that one repetition needs. `settings` include what the source decides."""

    settings: ReplaySettings
    strategy: Strategy
    source: score_sources.ScoreSource
    sampling: score_sources.Sampling

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
    def margin(self) -> float:
        """How far from the best true mean a candidate is right to recommend."""
        margin = self.strategy.parsed_margin if isinstance(self.strategy, FixedConfidence) else Margin()
        return margin.to_score(self.source.noise_sd or 0.0)

    def with_margin(self, margin: float) -> "Simulator":
        """Return the simulator of the same strategy, which has a target confidence, with another margin."""
        assert isinstance(self.strategy, FixedConfidence)
        return replace(self, strategy=self.strategy.with_margin(margin))

    @cached_property
    def rules(self) -> Optional[Rules]:
        """The rules for many selections at once; None if each needs its history."""
        strategy, history = self.strategy, self.first_history
        if not isinstance(strategy, FixedConfidence) or type(strategy.belief) is not ModeratedT:
            return None
        if self.settings.min_score is not None or history.failures:
            return None
        in_rounds = isinstance(strategy, NonAdaptiveFixedConfidence)
        num_slots = len(strategy.open(history.active)) if in_rounds else self.settings.batch_size
        rules = strategy.rules(strategy.limit_of(history), num_slots)
        return rules and replace(rules, num_tasks=len(history.by_task))

    def run(
        self,
        repetitions: Optional[int],
        *,
        margins: Sequence[float] = (),
        max_seconds: Optional[float] = None,
        on_repetitions: OnRepetitions = lambda number, total: None,
    ) -> List[Outlook]:
        """Simulate selections; None for as many as a few seconds allow. Return the outlook of the strategy, then those
        of the same with each of these margins, on the same scores. `max_seconds` is the limit of `prob_decided`.

        An interrupt (`KeyboardInterrupt`) ends it with those that have finished, and is passed on where there are none.
        """
        ways = [self, *map(self.with_margin, margins)]
        finished: List[List[Repetition]] = [[] for _ in ways]
        interrupted, size = False, MAX_CHUNK_SIZE if self.rules else 1
        try:
            while (num_done := len(finished[0])) < (total := repetitions or _choose_num_repetitions(finished[0])):
                on_repetitions(0, total)
                chunk = range(num_done, min(num_done + size, total))
                for own, more in zip(finished, simulate_ways(ways, chunk), strict=True):
                    own += more
                on_repetitions(len(chunk), None)
        except KeyboardInterrupt:
            if not finished[0]:
                raise
            interrupted = True
        except score_sources.OutOfScoresError:
            if self.sampling.with_replacement or self.settings.with_replacement is not None:
                raise
            again = replace(self, sampling=replace(self.sampling, with_replacement=True))
            return again.run(repetitions, margins=margins, max_seconds=max_seconds, on_repetitions=on_repetitions)
        with_replacement = self.sampling.with_replacement
        return [
            Outlook.of(own, interrupted=interrupted, with_replacement=with_replacement, max_seconds=max_seconds)
            for own in finished
        ]

    def run_all(self, repetitions: range) -> List[Repetition]:
        """Simulate these repetitions, with the scores and the draws that belong to their numbers."""
        return simulate_ways([self], repetitions)[0]

    def run_batch(self, drawn: Sequence[score_sources.DrawnScores], ways: "Sequence[Simulator]" = ()) -> Ends:
        """Make selections with these scores side by side, or those of each of several ways: first all of the first one.

        Raises:
            OutOfScoresError: if a selection needs more scores than there are.
        """
        history, names = self.first_history, self.first_history.active
        rules = [way.rules for way in ways or [self] if way.rules is not None]
        margins, margin_shares = (
            np.repeat([getattr(each, name) for each in rules], len(drawn)) for name in ("margin", "margin_share")
        )
        tables = [scores.further_runs(history) for scores in drawn]
        starts = [count_on_units(part, names) for part in history.by_task.values()]
        batch = Batch(
            history.sign * np.stack([scores for scores, _ in tables]),
            np.stack([units for _, units in tables]),
            replace(rules[0], margin=margins, margin_share=margin_shares),
            is_open=np.array([name not in self.strategy.done for name in names]),
            start=(
                score_sources.pad_rows([runs[place] for place in range(len(names)) for runs, _ in starts], 0),
                score_sources.pad_rows([means[place] for place in range(len(names)) for _, means in starts], np.nan),
            ),
        )
        try:
            return batch.run()
        except OutOfScores as error:
            name, task = names[error.candidate], next(iter(history.by_task))
            number = len(drawn[0].splits[score_sources.row_key(name, task)])
            raise drawn[0].out_of_scores(name, number) from None

    def simulate_alone(self, repetition: int) -> Repetition:
        """Simulate a repetition run by run."""
        scores = self.draw(repetition)
        for num_rounds, history in enumerate(self.iterate_histories(scores, repetition)):  # noqa: B007
            pass
        decision = self.strategy.recommend(history)
        if decision.stopped_by is None:
            raise RuntimeError(
                f"{self.strategy} is stuck: it proposes no run, waits for none, and does not stop. Fix its `propose` "
                "or its stopping rule."
            )
        return Repetition(
            decision.best,
            decision.stopped_by in DECIDED_REASONS,
            decision.best in self.find_best(scores, decision.margin),
            num_evaluations=len(history.evaluations) + len(history.failures),
            num_rounds=num_rounds,
            seconds=sum(run.seconds for run in history.evaluations[self.num_done :]),
            confidence=decision.confidence,
        )

    def find_best(self, scores: score_sources.DrawnScores, margin: float) -> Tuple[str, ...]:
        """Return the candidates whose true mean, where these scores come from, is within the margin of the best."""
        return find_best(scores.true_means or self.true_means, margin, minimise=self.minimise)

    def iterate_histories(self, scores: score_sources.DrawnScores, repetition: int) -> Iterator[History]:
        """Yield the history before the first round and after every one."""
        rng = seeding.replay_rng(self.settings.seed or 0, seeding.REPLAY_STRATEGY_STREAM, repetition)
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

    def draw(self, repetition: int) -> score_sources.DrawnScores:
        streams = partial(seeding.replay_rng, self.settings.seed or 0)
        score_rngs = {name: streams(seeding.REPLAY_SCORES_STREAM, repetition, name) for name in self.true_means}
        split_rng = streams(seeding.REPLAY_SPLITS_STREAM, repetition)
        return self.source.draw(self.sampling, split_rng=split_rng, score_rngs=score_rngs)


def simulate_ways(ways: Sequence[Simulator], repetitions: range) -> List[List[Repetition]]:
    """Simulate these repetitions by ways that differ in their margins alone. Return a list for each way."""
    main = ways[0]
    if main.rules is None:
        return [[way.simulate_alone(repetition) for repetition in repetitions] for way in ways]
    drawn = [main.draw(repetition) for repetition in repetitions]
    ends, names = main.run_batch(drawn, ways), main.first_history.active
    num_batches = -(-main.rules.num_slots // main.settings.batch_size)
    seconds = ends.num_runs @ np.array([drawn[0].seconds.get(name, 0.0) for name in names])
    columns = ends.leader, ends.is_named, ends.margin, ends.num_runs.sum(axis=1), ends.num_rounds, seconds, ends.prob
    rows = zip(drawn * len(ways), *(column.tolist() for column in columns), strict=True)
    finished = [
        Repetition(
            names[leader] if leader >= 0 else None,
            is_named,
            leader >= 0 and names[leader] in main.find_best(scores, margin),
            num_evaluations=main.num_done + num_runs,
            num_rounds=num_batches * num_rounds,
            seconds=own_seconds,
            confidence=prob,
        )
        for scores, leader, is_named, margin, num_runs, num_rounds, own_seconds, prob in rows
    ]
    return [finished[start : start + len(drawn)] for start in range(0, len(finished), len(drawn))]


def prepare_simulator(settings: ReplaySettings, source: Optional[score_sources.ScoreSource] = None) -> Simulator:
    """Read and check everything. `source` takes the place of what `settings.scores` names."""
    if source is None:
        source = score_sources.read_score_table(Path(settings.scores), settings)
    minimise = bool(settings.minimise or source.metric.minimise)
    settings = replace(
        settings,
        seed=seeding.fresh_seed() if settings.seed is None else settings.seed,
        splits=OFFICIAL if source.on_official_splits else settings.splits,
        minimise=minimise,
    )
    sampling = score_sources.Sampling(settings.splits == SHARED, bool(settings.with_replacement), length=0)
    source = source.fitted(sampling, ScoreThreshold(settings.min_score, minimise))
    names = list(source.true_means())
    strategy = build_strategy(settings, names, has_counts=source.reports_counts, minimise=minimise)
    strategy.without_further_runs(settings.done, source.start or History(tuple(names)))
    _, max_runs = strategy.bounds(len(names))
    if source.start is not None and source.start.tasks:
        max_runs = min(max_runs * len(source.start.by_task), MAX_RUNS_ON_TASK)
    if settings.min_score is not None:  # failed runs do not count, as in `History.num_counted_failures`
        max_runs = max_runs * (1 + LOW_SCORES_PER_FINISHED_RUN) + MAX_FAILURES
    return Simulator(settings, strategy, source, replace(sampling, length=max_runs))


def _choose_num_repetitions(finished: Sequence[Repetition]) -> int:
    """Return the number of repetitions where it is open: a first few tell how many rounds one takes."""
    if len(finished) < MIN_REPEATS:
        return MIN_REPEATS
    rounds = np.mean([repetition.num_rounds for repetition in finished[:MIN_REPEATS]])
    return int(np.clip(NUM_ROUNDS / max(rounds, 1), MIN_REPEATS, MAX_REPEATS))


def _draw_evaluations(scores: score_sources.DrawnScores, history: History, names: List[str]) -> Iterator[Evaluation]:
    num_runs = Counter(failure.request.candidate for failure in history.failures)
    num_runs.update({name: history.num_started(name) for name in names})
    for name in names:
        yield scores.run(name, num_runs[name])
        num_runs[name] += 1
