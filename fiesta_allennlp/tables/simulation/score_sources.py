"""Scores for a replay: their sources, of which a table of released scores is one, and the scores of one repetition."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

import numpy as np
from numpy.random import Generator

from fiesta_allennlp.core.errors import DataError, join_some
from fiesta_allennlp.core.metrics import UNNAMED, Metric
from fiesta_allennlp.core.records import Evaluation, History, Request
from fiesta_allennlp.selecting.recovery import NO_THRESHOLD, ScoreThreshold
from fiesta_allennlp.tables.run_table import RunTable
from fiesta_allennlp.tables.table_files import Content
from fiesta_allennlp.tables.table_reader import read_run_table
from fiesta_allennlp.tables.table_settings import ReplaySettings


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
class DrawnScores:
    """The scores of one repetition: replicate k of a candidate has the k-th of its scores in any order of evaluation.

    `splits` and `scores` have shape `(num_replicates,)`, by `row_key`. `true_means` is None unless each repetition has
    its own. `seconds` is the duration of each run of a candidate."""

    splits: Mapping[Any, np.ndarray]
    scores: Mapping[Any, np.ndarray]
    source: str
    true_means: Optional[Mapping[str, float]] = None
    seconds: Mapping[str, float] = field(default_factory=dict)

    def run(self, candidate: str, replicate: int) -> Evaluation:
        """Return a run of a candidate. The split's number stands for its seed, and no other seed plays a part."""
        splits = self.splits[candidate]
        if replicate >= len(splits):
            raise self.out_of_scores(candidate, len(splits))
        request = Request(candidate, replicate, int(splits[replicate]), random_seed=0, numpy_seed=0, pytorch_seed=0)
        score = float(self.scores[candidate][replicate])
        return Evaluation(request, score, UNNAMED.name, seconds=self.seconds.get(candidate, 0.0))

    def out_of_scores(self, candidate: str, number: int) -> OutOfScoresError:
        return OutOfScoresError(
            f"{self.source}: candidate '{candidate}' ran out of scores: all {number} have been drawn. Reuse scores "
            "with --with-replacement, or stop earlier with --max-evaluations or a lower --confidence."
        )

    def further_runs(self, history: History) -> Tuple[np.ndarray, np.ndarray]:
        """Return the scores that follow on a history, NaN after the last one, and the unit of each, the splits of the
        history on its task first, in ascending order. Shape of both: `(num_candidates * num_tasks, num_runs)`."""
        names, parts = history.active, history.by_task
        rows = [(row_key(name, task), part.num_finished(name)) for name in names for task, part in parts.items()]
        scores = pad_rows([self.scores[key][num_done:] for key, num_done in rows], np.nan)
        units = pad_rows([self.splits[key][num_done:] for key, num_done in rows], -1)
        for place, part in enumerate(parts.values()):
            splits = units[place :: len(parts)]
            seen = np.unique(np.concatenate([part.split_seeds(name) for name in names]))
            # Units are numbered by the order of runs, so that the first runs of all candidates have low numbers.
            labels = np.concatenate([seen, splits.T.ravel()])
            _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
            units[place :: len(parts)] = np.argsort(np.argsort(first))[inverse[len(seen) :]].reshape(splits.T.shape).T
        return scores, units


def row_key(candidate: str, task: str) -> Any:
    """Return the key of the scores of a candidate, on one of several tasks."""
    return (candidate, task) if task else candidate


def pad_rows(rows: Sequence[np.ndarray], missing: float) -> np.ndarray:
    """Return rows, each filled up to the longest."""
    table = np.full((len(rows), max(map(len, rows))), missing)
    for row, values in zip(table, rows, strict=True):
        row[: len(values)] = values
    return table


class ScoreSource(ABC):
    """The source of a replay's scores.

    Attributes:
        name: the file, or what else the scores come from.
        reports_counts: whether the evaluations have the counts that some beliefs need.
        start: the runs that have finished when each repetition begins; None for none.
        metric: the metric of the scores, with its direction.
        on_official_splits: whether all scores come from one official split.
        notes: sentences about the scores that are left out, or that come from nowhere else.
        read_back: what was understood of a table; None for other sources.
        fewest_scores: the splits, if these are shared, or else the scores, of the candidate with the fewest. None if
            they never run out.
    """

    name: str
    reports_counts: bool = False
    start: Optional[History] = None
    metric: Metric = UNNAMED
    on_official_splits: bool = False
    notes: Tuple[str, ...] = ()
    read_back: Optional[RunTable] = None
    fewest_scores: Optional[int] = None

    @property
    def noise_sd(self) -> Optional[float]:
        """The run-to-run sd on one split, if it is known."""
        return None

    @property
    def knows_seconds(self) -> bool:
        """True if the runs have a duration."""
        return False

    @abstractmethod
    def true_means(self) -> Dict[str, float]:
        """Return the mean over all scores that can be drawn, which a replay should find, by candidate in order."""

    def fitted(self, sampling: Sampling, score_threshold: ScoreThreshold = NO_THRESHOLD) -> "ScoreSource":
        """Return the source, or what of it this way of drawing can use, with means of those scores that do not miss the
        threshold. Raise a `FiestaError` if it cannot work."""
        return self

    @abstractmethod
    def draw(self, sampling: Sampling, *, split_rng: Generator, score_rngs: Mapping[str, Generator]) -> DrawnScores:
        """Draw the scores of one repetition. Shared effects come from `split_rng`, and those of one candidate from its
        own generator, so that its scores do not depend on the other candidates."""


def number_splits(lengths: Mapping[str, int]) -> Dict[str, np.ndarray]:
    """Return split numbers that all differ, by candidate: independent splits are known to be different ones."""
    ends = np.cumsum(list(lengths.values()))
    return {name: np.arange(end - lengths[name], end) for name, end in zip(lengths, ends, strict=True)}


@dataclass(frozen=True, eq=False)
class ScoreTable(ScoreSource):
    """Scores of evaluations that were made once, in the file `name`, with the split that each was made on.

    `split_names` are the file's, and `splits` (by candidate, ascending) are positions in it; without splits in the file
    (`on_official_splits`), each score has its own. `notes` name the splits that are left out."""

    name: str
    split_names: Sequence[str]
    splits: Mapping[str, np.ndarray]
    scores: Mapping[str, np.ndarray]
    metric: Metric = UNNAMED
    on_official_splits: bool = False
    notes: Tuple[str, ...] = ()
    read_back: Optional[RunTable] = None
    fewest_scores: Optional[int] = None
    score_threshold: ScoreThreshold = NO_THRESHOLD

    def true_means(self) -> Dict[str, float]:
        """Return the mean of each candidate's runs that work."""
        means: Dict[str, float] = {}
        for name, scores in self.scores.items():
            working = [score for score in scores if not self.score_threshold.is_missed_by(score)]
            if not working:
                raise DataError(f"{self.name}: all scores of '{name}' miss --min-score {self.score_threshold.score:g}.")
            means[name] = float(np.mean(working))
        return means

    def fitted(self, sampling: Sampling, score_threshold: ScoreThreshold = NO_THRESHOLD) -> "ScoreTable":
        """Return the table with the splits that are common to all candidates, if splits are shared. Refuse a table
        without any, on which all candidates have the same number of scores."""
        if not sampling.shared_splits:
            return replace(self, score_threshold=score_threshold, fewest_scores=min(map(len, self.scores.values())))
        # Shape: (num_candidates, num_splits)
        counts = np.array([self._counts(name) for name in self.splits])
        is_used = (counts > 0).any(axis=0)
        is_common = is_used & (counts == counts[0]).all(axis=0)
        if not is_common.any():
            raise DataError(
                f"{self.name}: with shared splits, all candidates need the same number of scores on a split, but no "
                "split satisfies this. Complete the table, or use --splits independent."
            )
        dropped = [self.split_names[split] for split in np.flatnonzero(is_used & ~is_common)]
        note = (
            f"Used the {is_common.sum()} of {is_used.sum()} splits on which all candidates have the same number of "
            f"scores; left out: {join_some(dropped)}."
        )
        return replace(
            self,
            splits={name: splits[is_common[splits]] for name, splits in self.splits.items()},
            scores={name: scores[is_common[self.splits[name]]] for name, scores in self.scores.items()},
            notes=(note,) if dropped else (),
            fewest_scores=int(is_common.sum()),
            score_threshold=score_threshold,
        )

    def draw(self, sampling: Sampling, *, split_rng: Generator, score_rngs: Mapping[str, Generator]) -> DrawnScores:
        """Draw as a `ScoreSource` does. Without replacement, a shared split with n scores of each candidate is used in
        the first n passes over all splits, each time with other seeds."""
        if sampling.shared_splits:
            rows = self._rows_of_shared_splits(sampling, split_rng, score_rngs)
            splits = {name: self.splits[name][rows[name]] for name in rows}
        else:
            rows = {
                name: rng.integers(len(self.scores[name]), size=sampling.length)
                if sampling.with_replacement
                else rng.permutation(len(self.scores[name]))
                for name, rng in score_rngs.items()
            }
            splits = number_splits({name: len(row) for name, row in rows.items()})
        return DrawnScores(splits, {name: self.scores[name][rows[name]] for name in rows}, self.name)

    def _counts(self, candidate: str) -> np.ndarray:
        return np.bincount(self.splits[candidate], minlength=len(self.split_names))

    def _rows_of_shared_splits(
        self, sampling: Sampling, split_rng: Generator, score_rngs: Mapping[str, Generator]
    ) -> Dict[str, np.ndarray]:
        """Return rows such that the k-th ones of all candidates are of one split."""
        counts = self._counts(next(iter(self.splits)))
        starts = np.cumsum(counts) - counts
        if sampling.with_replacement:
            drawn_splits = split_rng.choice(np.flatnonzero(counts), size=sampling.length)
            return {
                name: starts[drawn_splits] + (rng.random(sampling.length) * counts[drawn_splits]).astype(int)
                for name, rng in score_rngs.items()
            }
        # Shape: (num_passes, num_splits), the position of every split within the pass
        positions = split_rng.permuted(np.tile(np.arange(len(counts)), (counts.max(), 1)), axis=1)
        return {name: self._in_passes(name, starts, positions, rng) for name, rng in score_rngs.items()}

    def _in_passes(self, candidate: str, starts: np.ndarray, positions: np.ndarray, rng: Generator) -> np.ndarray:
        """Return the rows of a candidate: the seeds of a split in random order, one in each pass over the splits."""
        splits = self.splits[candidate]
        shuffled = np.lexsort((rng.random(len(splits)), splits))
        passes = np.arange(len(splits)) - starts[splits]
        return shuffled[np.lexsort((positions[passes, splits], passes))]


def make_score_table(table: RunTable) -> ScoreTable:
    """Make a table of the rows that have a score, in any order."""
    table.refuse_single()
    history, scored = table.history(), [row for row in table.rows if row.is_scored]
    split_names = {run.request.split_seed: row.split for run, row in zip(history.evaluations, scored, strict=True)}
    numbers, splits, scores = sorted(split_names), {}, {}
    for name in table.scores:
        order = np.argsort(history.split_seeds(name), kind="stable")
        splits[name] = np.searchsorted(numbers, history.split_seeds(name)[order])
        scores[name] = history.sign * history.scores(name)[order]
    return ScoreTable(
        table.name,
        [split_names[number] for number in numbers],
        splits,
        scores,
        metric=table.metric,
        on_official_splits=not table.has_splits,
        read_back=table,
    )


def read_score_table(path: Path, settings: ReplaySettings, content: Content = None) -> ScoreTable:
    """Read a table of scores on one task, which a replay draws from; raise as `read_run_table` does."""
    table = read_run_table(path, settings, content)
    table.refuse_tasks("fiesta replay", "Keep one with --where, or name no task: --columns task=.")
    return make_score_table(table)
