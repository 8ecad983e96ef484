"""Replays a selection over existing scores many times, in seconds."""

import math
import time
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Callable, Dict, Generator, Iterator, List, Mapping, Optional, Sequence, Tuple

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
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.selection.settings import OFFICIAL, SHARED
from fiesta_allennlp.selection.strategy_building import build_strategy
from fiesta_allennlp.selection.summary import NO_THRESHOLD, ScoreThreshold
from fiesta_allennlp.strategies.base import Margin, Strategy
from fiesta_allennlp.tables.settings import ReplaySettings
from fiesta_allennlp.tables.side_by_side import prepare_belief, run_chunks, run_side_by_side
from fiesta_allennlp.tables.sources import UNNAMED, DrawnScores, OutOfScoresError, Sampling, ScoreSource, restrict
from fiesta_allennlp.tables.table import open_scores

TIE_TOLERANCE = 1e-12
"""Means that are as near as that are equal: the mean of equal scores can be off in the last digit."""


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

    @property
    def picked(self) -> bool:
        """True if it named a candidate that is the best within the margin."""
        return self.correct and not self.is_undecided

    @property
    def wrong(self) -> bool:
        """True if it ended otherwise, and not undecided."""
        return not self.correct and not self.is_undecided


@dataclass(frozen=True)
class Replay:
    """All repetitions that finished, in their order. `settings` has seed and defaults filled in; `fewest_scores` is how
    many splits or scores are taken for the truth, None where they never run out."""

    settings: ReplaySettings
    true_means: Dict[str, float]
    repetitions: Tuple[Repetition, ...]
    seconds: float
    interrupted: bool
    fewest_scores: Optional[int] = None
    notes: Tuple[str, ...] = ()
    metric: Metric = UNNAMED


@dataclass(frozen=True)
class Replayer:
    """Everything that one repetition needs; sent to the worker processes. `settings` include what the source decides.
    `margin` is how far from the best true mean a candidate is right to recommend, if the strategy has no margin."""

    settings: ReplaySettings
    strategy: Strategy
    source: ScoreSource
    sampling: Sampling
    margin: float
    score_threshold: ScoreThreshold = NO_THRESHOLD

    @cached_property
    def true_means(self) -> Dict[str, float]:
        return self.source.true_means()

    @property
    def candidates(self) -> Tuple[str, ...]:
        return tuple(self.true_means)

    @cached_property
    def first_history(self) -> History:
        return self.source.start or History(self.candidates)

    @property
    def seed(self) -> int:
        return self.settings.seed or 0

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
        best_names = find_best(means, decision.margin or self.margin, minimise=bool(self.settings.minimise))
        return Repetition(
            best=decision.best,
            stopped_by=decision.stopped_by,
            correct=decision.best in best_names,
            num_evaluations=len(history.evaluations) + len(history.failures),
            num_rounds=num_rounds,
            seconds=sum(run.seconds for run in history.evaluations[len(self.first_history.evaluations) :]),
        )

    def iterate_histories(self, scores: DrawnScores, repetition: int) -> Iterator[History]:
        """Yield the history before the first round and after every one."""
        rng = replay_rng(self.seed, REPLAY_STRATEGY_STREAM, repetition)
        history = self.first_history
        yield history
        while names := self.strategy.propose(history, self.settings.batch_size, rng):
            outcomes = [self.score_threshold.to_outcome(run) for run in _draw_evaluations(scores, history, names)]
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
                name: replay_rng(self.seed, REPLAY_SCORES_STREAM, repetition, name) for name in self.candidates
            },
        )


def find_best(means: Mapping[str, float], margin: float, *, minimise: bool = False) -> Tuple[str, ...]:
    """Return the candidates whose means are within the margin of the best one."""
    gains = {name: -mean if minimise else mean for name, mean in means.items()}
    return tuple(name for name in gains if gains[name] >= max(gains.values()) - margin - TIE_TOLERANCE)


def _draw_evaluations(scores: DrawnScores, history: History, names: List[str]) -> Iterator[Evaluation]:
    num_started = {name: history.num_started(name) for name in names}
    for failure in history.failures:
        if failure.request.candidate in num_started:
            num_started[failure.request.candidate] += 1
    for name in names:
        yield scores.run(name, num_started[name])
        num_started[name] += 1


def replay(
    settings: ReplaySettings,
    *,
    source: Optional[ScoreSource] = None,
    margin: float = 0.0,
    on_repetitions: Callable[[int], None] = lambda number: None,
) -> Replay:
    """Repeat a selection over a table of scores, or a preset, in parallel. The result depends on settings and seed
    alone.

    An interrupt (`KeyboardInterrupt`) ends it with the repetitions that have finished. `source` takes the place of what
    `settings.scores` names, and `margin` that of a strategy without one. `on_repetitions` is called with the number of
    repetitions that have newly finished."""
    start = time.monotonic()
    seed = fresh_seed() if settings.seed is None else settings.seed
    settings = replace(settings, seed=seed, processes=min(settings.num_processes, settings.repetitions))
    replayer = prepare_replay(settings, source, margin=margin)
    settings, source = replayer.settings, replayer.source
    try:
        repetitions, interrupted = run_chunks(
            replayer.run_all, range(settings.repetitions), num_processes=settings.num_processes, report=on_repetitions
        )
    except OutOfScoresError:
        if settings.with_replacement is not None:
            raise
        settings = replace(settings, with_replacement=True)
        return replay(settings, source=source, margin=margin, on_repetitions=on_repetitions)
    fewest = source.fewest_scores(replayer.sampling)
    seconds = time.monotonic() - start
    return Replay(
        settings,
        replayer.true_means,
        tuple(repetitions),
        seconds,
        interrupted,
        fewest_scores=fewest,
        notes=source.notes,
        metric=source.metric,
    )


def prepare_replay(settings: ReplaySettings, source: Optional[ScoreSource] = None, *, margin: float = 0.0) -> Replayer:
    """Read and check everything. `settings.seed` is given."""
    if source is None:
        source = open_scores(settings)
    if source.on_official_splits:
        settings = replace(settings, splits=OFFICIAL)
    if settings.candidates:
        source = restrict(source, settings.candidates)
    minimise = bool(settings.minimise or source.minimise)
    min_score = source.score_threshold.score if settings.min_score is None else settings.min_score
    settings = replace(settings, minimise=minimise, min_score=min_score)
    score_threshold = ScoreThreshold(min_score, minimise)
    sampling = Sampling(settings.splits == SHARED, bool(settings.with_replacement), length=0)
    source = source.fitted(sampling).judged_by(score_threshold)
    means = source.true_means()
    strategy = build_strategy(settings, list(means), has_counts=source.reports_counts, minimise=minimise)
    if settings.done:
        strategy.without_further_runs(settings.done, source.start or History(tuple(means)))
    prepare_belief(strategy)
    _, max_runs = strategy.bounds(len(means))
    sampling = replace(sampling, length=max_runs)
    margin = Margin.parse(settings.strategy_params().get("margin", margin)).value or 0.0
    return Replayer(settings, strategy, source, sampling, margin, score_threshold)


QUANTILES = (5, 25, 50, 75, 95)
"""In per cent."""


def summarise_replay(replay: Replay) -> Dict[str, Any]:
    """Return the content of `fiesta replay --output`. `picked`, `wrong` and `undecided` are shares of all repetitions
    and add up to 1. `correct` also counts undecided ones whose leader is the best."""
    settings, repetitions = replay.settings, replay.repetitions
    number = len(repetitions)
    evaluations = np.array([repetition.num_evaluations for repetition in repetitions])
    strategy, recommended = settings.strategy_params(), Counter(repetition.best for repetition in repetitions)
    return {
        "repetitions": number,
        "interrupted": replay.interrupted,
        "best": (min if settings.minimise else max)(replay.true_means, key=lambda name: replay.true_means[name]),
        **compute_shares(repetitions),
        "undecided": sum(repetition.is_undecided for repetition in repetitions) / number,
        "evaluations": {
            "min": int(evaluations.min()),
            "mean": float(evaluations.mean()),
            "median": float(np.median(evaluations)),
            "max": int(evaluations.max()),
            "quantiles": {str(q): int(np.percentile(evaluations, q, method="inverted_cdf")) for q in QUANTILES},
        },
        "rounds": {"mean": float(np.mean([repetition.num_rounds for repetition in repetitions]))},
        "seconds": replay.seconds,
        "fewest_scores": replay.fewest_scores,
        "scores": settings.scores,
        "metric": replay.metric.option_text,
        **({"minimise": True} if settings.minimise else {}),
        **({"restricted": True} if settings.candidates else {}),
        **({"min_score": settings.min_score} if settings.min_score is not None else {}),
        **({"notes": list(replay.notes)} if replay.notes else {}),
        "splits": settings.splits,
        "evaluations_per_split": settings.evaluations_per_split,
        "batch_size": settings.batch_size,
        "with_replacement": bool(settings.with_replacement),
        "seed": str(settings.seed),
        "strategy": strategy,
        "belief": strategy["belief"],
        "candidates": [
            {"name": name, "true_mean": mean, "recommended": recommended[name] / number}
            for name, mean in replay.true_means.items()
        ],
    }


def compute_shares(repetitions: Sequence[Repetition]) -> Dict[str, Any]:
    """Return the shares of repetitions that are `correct`, `picked` and `wrong`, each with its 95% interval."""
    number = len(repetitions)
    shares: Dict[str, Any] = {}
    for name in ("correct", "picked", "wrong"):
        count = sum(getattr(repetition, name) for repetition in repetitions)
        shares.update({name: count / number, f"{name}_interval": wilson_interval(count, number)})
    return shares


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
