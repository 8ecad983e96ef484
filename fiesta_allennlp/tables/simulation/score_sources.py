"""Scores for a replay: their sources, the scores of one repetition, and normal scores with known means."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Dict, Mapping, Optional, Sequence, Tuple

import numpy as np
from numpy.random import Generator

from fiesta_allennlp.core.errors import ConfigError, DataError, did_you_mean, join_some
from fiesta_allennlp.core.records import Evaluation, History, Request
from fiesta_allennlp.core.settings.metrics import UNNAMED, Metric
from fiesta_allennlp.selecting.failures import ScoreThreshold
from fiesta_allennlp.tables.run_table import RunTable


class OutOfScoresError(DataError):
    """A repetition needs more scores of a candidate than the table has. The message has their number."""


@dataclass(frozen=True)
class Sampling:
    """The way to draw the scores of a repetition. With `shared_splits`, replicate k of every candidate uses the same
    split. `length` is the largest number of evaluations of one candidate."""

    shared_splits: bool
    with_replacement: bool
    length: int


@dataclass(frozen=True, eq=False)
class FurtherRuns:
    """The scores of further runs, NaN after the last one of a candidate, and the number of the unit of each.
    Shape of both: `(num_candidates, num_runs)`."""

    scores: np.ndarray
    units: np.ndarray


@dataclass(frozen=True, eq=False)
class DrawnScores:
    """The scores of one repetition: replicate k of a candidate has the k-th of its scores in any order of evaluation.

    `splits` and `scores` have shape `(num_replicates,)`, by candidate. `true_means` is None unless each repetition has
    its own. `seconds` is the duration of each run of a candidate. `tasks` are the scores on each of several tasks, and
    the others are then those of the first one."""

    splits: Mapping[str, np.ndarray]
    scores: Mapping[str, np.ndarray]
    source: str
    true_means: Optional[Mapping[str, float]] = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    tasks: "Tuple[DrawnScores, ...]" = ()

    @classmethod
    def of_tasks(cls, tasks: "Sequence[DrawnScores]") -> "DrawnScores":
        """Return the scores of a repetition on one or several tasks. A true mean is that of the true means on each."""
        if len(tasks) == 1:
            return tasks[0]
        means = [each.true_means or {} for each in tasks]
        true_means = {name: float(np.mean([each[name] for each in means])) for name in means[0]}
        return replace(tasks[0], true_means=true_means, tasks=tuple(tasks))

    def run(self, candidate: str, replicate: int) -> Evaluation:
        """Return a run of a candidate. The split's number stands for its seed, and no other seed plays a part."""
        splits = self.splits[candidate]
        if replicate >= len(splits):
            raise self.out_of_scores(candidate)
        request = Request(candidate, replicate, int(splits[replicate]), random_seed=0, numpy_seed=0, pytorch_seed=0)
        score = float(self.scores[candidate][replicate])
        return Evaluation(request, score, UNNAMED.name, seconds=self.seconds.get(candidate, 0.0))

    def out_of_scores(self, candidate: str) -> OutOfScoresError:
        return OutOfScoresError(
            f"{self.source}: candidate '{candidate}' ran out of scores: all {len(self.splits[candidate])} have been "
            "drawn. Reuse scores with --with-replacement, or stop earlier with --max-evaluations or a lower "
            "--confidence."
        )

    def further_runs(self, history: History) -> FurtherRuns:
        """Return the scores that follow on a history, with the units of its splits first, in ascending order. With
        several tasks, those of a candidate follow one another, and each has its own units."""
        if self.tasks:
            runs = [each.further_runs(part) for each, part in zip(self.tasks, history.by_task.values(), strict=True)]
            return FurtherRuns(
                interleave([each.scores for each in runs], np.nan), interleave([each.units for each in runs], -1)
            )
        names, num_done = history.active, [history.num_finished(name) for name in history.active]
        rows = [
            (self.scores[name][done:], self.splits[name][done:]) for name, done in zip(names, num_done, strict=True)
        ]
        shape = len(names), max(len(scores) for scores, _ in rows)
        scores, splits = np.full(shape, np.nan), np.full(shape, -1)
        for index, (own_scores, own_splits) in enumerate(rows):
            scores[index, : len(own_scores)], splits[index, : len(own_splits)] = own_scores, own_splits
        seen = np.unique(np.concatenate([history.split_seeds(name) for name in names]))
        # Units are numbered by the order of runs, so that the first runs of all candidates have low numbers.
        _, first, inverse = np.unique(np.concatenate([seen, splits.T.ravel()]), return_index=True, return_inverse=True)
        unit_by_label = np.argsort(np.argsort(first))
        return FurtherRuns(scores, unit_by_label[inverse[len(seen) :]].reshape(shape[::-1]).T)


def interleave(tables: Sequence[np.ndarray], missing: float) -> np.ndarray:
    """Put the rows of tables in turn, each filled up to the longest. Shape: `(num_rows * num_tables, length)`, and of
    the tables `(num_rows, ...)`."""
    length = max(table.shape[1] for table in tables)
    filled = [np.pad(table, ((0, 0), (0, length - table.shape[1])), constant_values=missing) for table in tables]
    return np.stack(filled, axis=1).reshape(sum(map(len, tables)), length)


class ScoreSource(ABC):
    """The source of a replay's scores: a table of released scores, or a preset.

    Args:
        name: the file, or the preset.
    """

    name: str

    reports_counts: bool = False
    """True if the evaluations have the counts that some beliefs need."""

    start: Optional[History] = None
    """The runs that have finished when each repetition begins; None for none."""

    metric: Metric = UNNAMED
    """The metric of the scores, with its direction."""

    on_official_splits: bool = False
    """True if all scores come from one official split."""

    notes: Tuple[str, ...] = ()
    """Sentences about the scores that are left out, or that come from nowhere else."""

    read_back: Optional[RunTable] = None
    """What was understood of a table; None for other sources."""

    @property
    def minimise(self) -> bool:
        return self.metric.minimise

    @property
    def noise_sd(self) -> Optional[float]:
        """The run-to-run sd on one split, if it is known."""
        return None

    @property
    def knows_seconds(self) -> bool:
        """True if the runs have a duration."""
        return False

    def judged_by(self, score_threshold: ScoreThreshold) -> "ScoreSource":
        """Return the source with means of those scores that do not miss this one."""
        return self

    @abstractmethod
    def true_means(self) -> Dict[str, float]:
        """Return the mean over all scores that can be drawn, which a replay should find, by candidate in order."""

    def fewest_scores(self, sampling: Sampling) -> Optional[int]:
        """Count the splits, if these are shared, or else the scores, of the candidate with the fewest. None if they
        never run out."""
        return None

    def restricted(self, names: Sequence[str]) -> "ScoreSource":
        """Return the source with these of its candidates only, in this order."""
        raise NotImplementedError

    def fitted(self, sampling: Sampling) -> "ScoreSource":
        """Return the source, or what of it this way of drawing can use. Raise a `FiestaError` if it cannot work."""
        return self

    @abstractmethod
    def draw(self, sampling: Sampling, *, split_rng: Generator, score_rngs: Mapping[str, Generator]) -> DrawnScores:
        """Draw the scores of one repetition. Shared effects come from `split_rng`, and those of one candidate from its
        own generator, so that its scores do not depend on the other candidates."""


def restrict(source: ScoreSource, names: Sequence[str]) -> ScoreSource:
    """Return `source.restricted` of names that are there."""
    candidates = list(source.true_means())
    for name in names:
        if name not in candidates:
            hint = did_you_mean(name, candidates, max_names=2)
            raise ConfigError(
                f"--candidates: unknown candidate '{name}' in {source.name}.{hint} Candidates: {join_some(candidates)}."
            )
    return source.restricted(names)


def number_splits(lengths: Mapping[str, int]) -> Dict[str, np.ndarray]:
    """Return split numbers that all differ, by candidate: independent splits are known to be different ones."""
    ends = np.cumsum(list(lengths.values()))
    return {name: np.arange(end - lengths[name], end) for name, end in zip(lengths, ends, strict=True)}


SPLIT_SD, NOISE_SD = 0.0211, 0.0198
"""Standard deviations between splits and within one, over the released scores of the FIESTA paper."""


@dataclass(frozen=True)
class ScorePreset(ScoreSource):
    """Scores mean_i + split_k + noise_ik, normal, with the split's effect shared by all candidates on that split.

    They never run out, and no split comes twice. `noise_sds` are by candidate where they are not `noise_sd`, `split_sd`
    is that of the splits' effects, and `seconds` of a run."""

    name: str
    means: Mapping[str, float]
    noise_sds: Mapping[str, float] = field(default_factory=dict)
    split_sd: float = SPLIT_SD
    seconds: float = 0.0
    noise_sd: float = NOISE_SD

    @property
    def knows_seconds(self) -> bool:
        return self.seconds > 0

    def true_means(self) -> Dict[str, float]:
        return dict(self.means)

    def restricted(self, names: Sequence[str]) -> "ScorePreset":
        return replace(self, means={name: self.means[name] for name in names})

    def fitted(self, sampling: Sampling) -> "ScorePreset":
        if sampling.with_replacement:
            raise ConfigError(f"--with-replacement: preset {self.name} never runs out of scores. Remove the option.")
        return self

    def noise(self, name: str, rng: Generator, length: int) -> np.ndarray:
        """Draw the noise of one candidate's scores beside its mean and the splits' effects. Shape: `(length,)`."""
        return rng.normal(0, self.noise_sds.get(name, self.noise_sd), length)

    def draw(self, sampling: Sampling, *, split_rng: Generator, score_rngs: Mapping[str, Generator]) -> DrawnScores:
        length = sampling.length
        shared = split_rng.normal(0, self.split_sd, length)
        scores: Dict[str, np.ndarray] = {}
        for name, mean in self.means.items():
            rng = score_rngs[name]
            effects = shared if sampling.shared_splits else rng.normal(0, self.split_sd, length)
            scores[name] = mean + effects + self.noise(name, rng, length)
        if sampling.shared_splits:
            splits: Mapping[str, np.ndarray] = dict.fromkeys(scores, np.arange(length))
        else:
            splits = number_splits(dict.fromkeys(scores, length))
        return DrawnScores(splits, scores, self.name, seconds=dict.fromkeys(scores, self.seconds))
