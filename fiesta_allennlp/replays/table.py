"""Released scores of several candidates, drawn from at random: the table in a file, or of a selection."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from numpy.random import Generator

from fiesta_allennlp.directory import RunDirectory
from fiesta_allennlp.errors import ConfigError, DataError, did_you_mean, visible
from fiesta_allennlp.files import distinct, shortened
from fiesta_allennlp.records import History
from fiesta_allennlp.replays.rows import FAILED, Row, Rows, is_minimised, read_rows, rows_of_lists, text_of
from fiesta_allennlp.replays.settings import ReplaySettings
from fiesta_allennlp.replays.sources import PRESETS, DrawnScores, Sampling, ScoreSource, numbered_apart
from fiesta_allennlp.selection.least_score import EVERY_SCORE, LeastScore
from fiesta_allennlp.selection.options import flag
from fiesta_allennlp.selection.settings import OFFICIAL
from fiesta_allennlp.selection.store import reading
from fiesta_allennlp.selection.summary import count_text


@dataclass(frozen=True, eq=False)
class ScoreTable(ScoreSource):
    """Scores of evaluations that were made once, in the file `name`, with the split that each was made on.

    `split_names` are the file's, and `splits` (by candidate, ascending) are positions in it; without splits in the file
    (`on_official_splits`), each score has its own. `notes` say what splits and seeds mean."""

    name: str
    split_names: Sequence[str]
    splits: Mapping[str, np.ndarray]
    scores: Mapping[str, np.ndarray]
    minimise: bool = False
    on_official_splits: bool = False
    notes: Tuple[str, ...] = ()
    least_score: LeastScore = EVERY_SCORE

    def true_means(self) -> Dict[str, float]:
        """Return the mean of each candidate's runs that work."""
        means: Dict[str, float] = {}
        for name, scores in self.scores.items():
            working = [score for score in scores if not self.least_score.is_missed_by(score)]
            if not working:
                raise DataError(f"{self.name}: all scores of '{name}' miss --min-score {self.least_score.score:g}.")
            means[name] = float(np.mean(working))
        return means

    def judged_by(self, least_score: LeastScore) -> "ScoreTable":
        return replace(self, least_score=least_score)

    def restricted(self, names: Sequence[str]) -> "ScoreTable":
        splits, scores = ({name: column[name] for name in names} for column in (self.splits, self.scores))
        return replace(self, splits=splits, scores=scores)

    def check(self, sampling: Sampling) -> None:
        """Refuse shared splits on which candidates have different numbers of scores."""
        if not sampling.shared_splits:
            return
        first, *others = self.splits
        expected = self._counts(first)
        for other in others:
            counts = self._counts(other)
            if (counts != expected).any():
                split = int(np.argmax(counts != expected))
                raise DataError(
                    f"{self.name}: with shared splits, all candidates need the same number of scores on each split, "
                    f"but on split {self.split_names[split]} '{first}' has {expected[split]} and '{other}' has "
                    f"{counts[split]}. Complete the table, or use --splits independent."
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
            splits = numbered_apart({name: len(row) for name, row in rows.items()})
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
            used = split_rng.choice(np.flatnonzero(counts), size=sampling.length)
            return {
                name: starts[used] + (rng.random(sampling.length) * counts[used]).astype(int)
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


def history_of(table: ScoreTable) -> History:
    """Return all scores, the first ones of all candidates before the second ones. The number of a split is its seed."""
    drawn = DrawnScores(table.splits, table.scores, table.name)
    evaluations = [drawn.run(name, k) for name, scores in table.scores.items() for k in range(len(scores))]
    return History(tuple(table.scores), tuple(sorted(evaluations, key=lambda e: e.request.replicate)))


def table_from(table: Rows, path: Path, least_candidates: int = 2) -> ScoreTable:
    """Make a table of the rows that have a score, in any order. Messages call it `path`."""
    scored = [row for row in table.rows if row.score not in ("", FAILED)]
    positions: Dict[str, int] = {}
    found: Dict[str, List[Tuple[int, float]]] = {}
    for row in scored:
        if visible(row.candidate) != row.candidate:
            raise DataError(
                f"{row.where}: the name '{visible(row.candidate)}' contains an invisible character. Rename it."
            )
        split = positions.setdefault(row.split if table.has_splits else row.where, len(positions))
        found.setdefault(row.candidate, []).append((split, row.number))
    if len(found) < least_candidates:
        raise DataError(
            f"{path}: the table needs scores for at least {count_text(least_candidates, 'candidate')} but has "
            f"{len(found)}: {', '.join(found) or 'none'}."
        )
    ordered = {name: sorted(runs, key=lambda run: run[0]) for name, runs in found.items()}
    skipped = len(table.rows) - len(scored)
    return ScoreTable(
        str(path),
        list(positions),
        {name: np.array([split for split, _ in runs]) for name, runs in ordered.items()},
        {name: np.array([score for _, score in runs], dtype=float) for name, runs in ordered.items()},
        minimise=is_minimised(scored),
        on_official_splits=not table.has_splits,
        notes=(*table.notes, *([f"Skipped {count_text(skipped, 'run')} without a score."] if skipped else [])),
    )


SCORE_ENDINGS = (".json", ".csv")


def is_selection(path: Path) -> bool:
    """Return whether a path is a directory and not a table of scores. Refuse any other path."""
    if path.is_dir():
        return True
    if path.suffix in SCORE_ENDINGS and path.is_file():
        return False
    what = "is neither a directory nor a .json or .csv file" if path.exists() else "does not exist"
    raise ConfigError(f"{path} {what}. Pass the directory of a selection, or a table of scores.")


def refuse_table_options(settings: Any, names: Iterable[str], directory: Path) -> None:
    """Refuse options for tables of scores if the scores come from a selection."""
    for name in names:
        if getattr(settings, name) not in (None, False, ()):
            raise ConfigError(
                f"{flag(name)} is for tables of scores, but {directory} is a selection, which has recorded its own. "
                f"Remove {flag(name)}."
            )


def open_scores(settings: ReplaySettings) -> ScoreSource:
    """Return the preset of this name, the table in this file, or that of the selection in this directory."""
    scores = settings.scores
    if scores in PRESETS:
        _refuse_blocks(scores, settings)
        return PRESETS[scores]
    path = Path(scores)
    if path.is_dir():
        refuse_table_options(settings, ("evaluations_per_split", "columns", "minimise"), path)
        return _table_of_selection(path)
    if path.suffix in SCORE_ENDINGS:
        return read_scores(path, settings)
    hint = did_you_mean(scores, PRESETS)
    raise ConfigError(f"'{scores}' is neither a .json or .csv file nor a preset.{hint} Presets: {', '.join(PRESETS)}.")


def read_scores(path: Path, settings: Any, *, least_candidates: int = 2) -> ScoreTable:
    """Read the table in a `.json` or `.csv` file, as the settings of a command say. Unfinished and `failed` runs are
    skipped."""
    if path.suffix != ".json":
        _refuse_blocks(str(path), settings)
        return table_from(read_rows(path, settings.columns), path, least_candidates)
    try:
        content = json.loads(text_of(path), object_pairs_hook=distinct)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not valid JSON: {error}.") from error
    if not isinstance(content, dict):
        raise DataError(f'{path}: expected {{"candidate": [scores], ...}} but got {shortened(content)}.')
    return table_from(rows_of_lists(content, settings.evaluations_per_split or 1, path), path, least_candidates)


def _refuse_blocks(scores: str, settings: Any) -> None:
    if settings.evaluations_per_split is not None:
        raise ConfigError(
            f"--evaluations-per-split is for JSON tables: {scores} already defines which scores share a split. Remove "
            "the option."
        )


def _table_of_selection(directory: Path) -> ScoreTable:
    """Return the present scores of the selection in a directory."""
    with reading(RunDirectory(directory)) as store:
        settings, least_score = store.meta().settings or {}, store.least_score
        history = store.history(max_failures=1, least_score=EVERY_SCORE)
    runs = [run for name in history.candidates for run in history.evaluations_of(name)]
    rows = [
        Row(
            run.request.candidate,
            split=str(run.request.split_seed),
            seed=str(run.request.replicate),
            score=str(run.score),
            metric=settings.get("metric") or "",
            where=f"{directory}, {run.request.name}",
        )
        for run in sorted(runs, key=lambda run: run.request.replicate)
    ]
    return table_from(Rows(rows, has_splits=settings.get("splits") != OFFICIAL), directory).judged_by(least_score)
