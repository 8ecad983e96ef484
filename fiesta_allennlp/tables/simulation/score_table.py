"""Released scores of several candidates, drawn from at random: the table in a file, or of a selection."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Dict, Mapping, Optional, Sequence, Tuple

import numpy as np
from numpy.random import Generator

from fiesta_allennlp.core.errors import DataError, join_some
from fiesta_allennlp.core.settings.metrics import UNNAMED, Metric
from fiesta_allennlp.selecting.failures import NO_THRESHOLD, ScoreThreshold
from fiesta_allennlp.tables.run_table import RunTable
from fiesta_allennlp.tables.simulation.score_sources import DrawnScores, Sampling, ScoreSource, number_splits
from fiesta_allennlp.tables.table_files import Content
from fiesta_allennlp.tables.table_reader import read_run_table
from fiesta_allennlp.tables.table_settings import ReplaySettings


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

    def judged_by(self, score_threshold: ScoreThreshold) -> "ScoreTable":
        return replace(self, score_threshold=score_threshold)

    def restricted(self, names: Sequence[str]) -> "ScoreTable":
        splits, scores = ({name: column[name] for name in names} for column in (self.splits, self.scores))
        return replace(self, splits=splits, scores=scores)

    def fitted(self, sampling: Sampling) -> "ScoreTable":
        """Return the table with the splits that are common to all candidates, if splits are shared. Refuse a table
        without any, on which all candidates have the same number of scores."""
        if not sampling.shared_splits:
            return self
        # Shape: (num_candidates, num_splits)
        counts = np.array([self._counts(name) for name in self.splits])
        is_used = (counts > 0).any(axis=0)
        is_common = is_used & (counts == counts[0]).all(axis=0)
        if (is_common == is_used).all():
            return self
        if not is_common.any():
            raise DataError(
                f"{self.name}: with shared splits, all candidates need the same number of scores on a split, but no "
                "split satisfies this. Complete the table, or use --splits independent."
            )
        is_kept = {name: is_common[splits] for name, splits in self.splits.items()}
        dropped = [self.split_names[split] for split in np.flatnonzero(is_used & ~is_common)]
        return replace(
            self,
            splits={name: splits[is_kept[name]] for name, splits in self.splits.items()},
            scores={name: scores[is_kept[name]] for name, scores in self.scores.items()},
            notes=(
                *self.notes,
                f"Used the {is_common.sum()} of {is_used.sum()} splits on which all candidates have the same "
                f"number of scores; left out: {join_some(dropped)}.",
            ),
        )

    def fewest_scores(self, sampling: Sampling) -> Optional[int]:
        columns = self.splits.values()
        return min(len(np.unique(column)) if sampling.shared_splits else len(column) for column in columns)

    def draw(self, sampling: Sampling, *, split_rng: Generator, score_rngs: Mapping[str, Generator]) -> DrawnScores:
        """Draw as a `ScoreSource` does. Without replacement, a shared split with n scores of each candidate is used in
        the first n passes over all splits, each time with other seeds."""
        if sampling.shared_splits:
            rows = self._rows_of_shared_splits(sampling, split_rng, score_rngs)
            splits = {name: self.splits[name][rows[name]] for name in rows}
        else:
            rows = {name: self._any_rows(name, sampling, score_rngs[name]) for name in self.scores}
            splits = number_splits({name: len(row) for name, row in rows.items()})
        return DrawnScores(splits, {name: self.scores[name][rows[name]] for name in rows}, self.name)

    def _counts(self, candidate: str) -> np.ndarray:
        return np.bincount(self.splits[candidate], minlength=len(self.split_names))

    def _any_rows(self, candidate: str, sampling: Sampling, rng: Generator) -> np.ndarray:
        num_rows = len(self.scores[candidate])
        return rng.integers(num_rows, size=sampling.length) if sampling.with_replacement else rng.permutation(num_rows)

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
