"""The real problems of `real_problems.py`: published tables of repeated scores, and choices by equally many of them."""

import csv
import gzip
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Dict, List, Mapping, Tuple

import numpy as np
from scipy.special import stdtrit

from fiesta_allennlp.tables.sources import DrawnScores, Sampling, ScoreSource, number_splits

LEVEL = 0.05
"""Level of the tests between the leader and each rival."""

TIE = 1e-9
"""Means that are as near as that, in run-to-run sds, are equal."""


@dataclass(frozen=True, eq=False)
class Problem(ScoreSource):
    """A published table of scores. Higher scores are better: those of an error are negated.

    `scores` has the shape `(num_scores,)` for each candidate. If they are `paired`, score k of every candidate is of
    the same split, and a draw with replacement takes a split for all candidates, as a new one.
    """

    source: str
    name: str
    paired: bool
    scores: Mapping[str, np.ndarray]

    @property
    def on_official_splits(self) -> bool:  # type: ignore[override]
        return not self.paired

    def true_means(self) -> Dict[str, float]:
        return {name: float(scores.mean()) for name, scores in self.scores.items()}

    @cached_property
    def losses(self) -> Dict[str, float]:
        """How far each true mean is below the best one, in run-to-run sds."""
        means = self.true_means()
        return {name: (max(means.values()) - mean) / self.sd for name, mean in means.items()}

    @cached_property
    def gap(self) -> float:
        """How far the second mean is below the best, in run-to-run sds."""
        return sorted(self.losses.values())[1]

    @cached_property
    def sd(self) -> float:
        """The run-to-run sd: the median over the candidates, in a paired table without the effects of the splits."""
        if not self.paired:
            return float(np.median([scores.std(ddof=1) for scores in self.scores.values()]))
        table = np.stack(list(self.scores.values()))
        num_candidates, num_splits = table.shape
        residuals = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
        per_candidate = (residuals**2).sum(axis=1) * num_candidates / (num_candidates - 1) / (num_splits - 1)
        return float(np.sqrt(np.median(per_candidate)))

    def draw(
        self, sampling: Sampling, *, split_rng: np.random.Generator, score_rngs: Mapping[str, np.random.Generator]
    ) -> DrawnScores:
        length = sampling.length
        if self.paired and sampling.shared_splits:
            rows = split_rng.integers(min(map(len, self.scores.values())), size=length)
            scores = {name: values[rows] for name, values in self.scores.items()}
            return DrawnScores(dict.fromkeys(scores, np.arange(length)), scores, self.name)
        scores = {n: values[score_rngs[n].integers(len(values), size=length)] for n, values in self.scores.items()}
        return DrawnScores(number_splits(dict.fromkeys(scores, length)), scores, self.name)

    def draw_equally(self, num_runs: int, num_selections: int, rng: np.random.Generator) -> np.ndarray:
        """Draw so many runs of each candidate. Shape: `(num_candidates, num_selections, num_runs)`."""
        shape = (num_selections, num_runs)
        shared = rng.integers(min(map(len, self.scores.values())), size=shape)
        rows = (shared if self.paired else rng.integers(len(scores), size=shape) for scores in self.scores.values())
        return np.stack([scores[row] for scores, row in zip(self.scores.values(), rows, strict=True)])

    def choose_leaders(self, scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Choose the candidate with the highest mean, by chance among equal ones. Shape: `(num_selections,)`."""
        rounded = np.round(scores.mean(axis=2) / self.sd, 9)
        order = rng.permuted(np.tile(np.arange(len(scores))[:, None], scores.shape[1]), axis=0)
        return np.take_along_axis(order, np.take_along_axis(rounded, order, axis=0).argmax(axis=0)[None], axis=0)[0]

    def passes_tests(self, scores: np.ndarray, leaders: np.ndarray) -> np.ndarray:
        """Tell whether a one-sided t-test puts the leader above every rival: paired, or Welch's without pairs. There is
        no correction for the number of rivals. Shape: `(num_selections,)`."""
        num_runs, selections = scores.shape[2], np.arange(scores.shape[1])
        best = scores[leaders, selections]
        lead = best.mean(axis=1) - scores.mean(axis=2)
        if self.paired:
            variance, df = (best - scores).var(axis=2, ddof=1) / num_runs, np.array(num_runs - 1.0)
        else:
            best_var, rival_var = best.var(axis=1, ddof=1) / num_runs, scores.var(axis=2, ddof=1) / num_runs
            variance = best_var + rival_var
            df = (num_runs - 1) * np.maximum(variance, 1e-300) ** 2 / np.maximum(best_var**2 + rival_var**2, 1e-300)
        is_above = lead > stdtrit(np.maximum(df, 1), 1 - LEVEL) * np.sqrt(variance) + TIE * self.sd
        is_above[leaders, selections] = True
        return is_above.all(axis=0)


def read_problems(path: Path) -> List[Problem]:
    """Read the problems of a table with the columns source, problem, paired, minimise, candidate, number and score."""
    tables: Dict[Tuple[str, str, str, str], Dict[str, Dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            problem = tables[row["source"], row["problem"], row["paired"], row["minimise"]]
            problem[row["candidate"]][int(row["number"])] = float(row["score"])
    return [
        Problem(
            source,
            name,
            paired == "1",
            {
                c: np.array([runs[k] for k in sorted(runs)]) * (-1 if minimise == "1" else 1)
                for c, runs in table.items()
            },
        )
        for (source, name, paired, minimise), table in tables.items()
    ]
