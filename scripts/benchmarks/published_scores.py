"""The real problems of `real_problems.py`: published tables of repeated scores, and which of them are of one data set.

An interval resamples data sets, because tables of one are alike.
"""

import csv
import gzip
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Dict, List, Mapping, Tuple

import numpy as np
from procedures import TEST_RUNS, Draws

from fiesta_allennlp.tables.simulation.score_sources import DrawnScores, Sampling, ScoreSource, number_splits
from fiesta_allennlp.tables.simulation.simulator import prepare_simulator
from fiesta_allennlp.tables.table_settings import ReplaySettings

TIE = 1e-9
"""Means that are as near as that, in run-to-run sds, are equal."""

OF_APPLIANCES = r"Computers|ElectricDevices|LargeKitchen|SmallKitchen|Refrigeration|ScreenType"
OF_TIME_SERIES = (
    (r"(?i)(Cricket|UWaveGestureLibrary|Ford|NonInvasiveF[ae]tal|SonyAIBO|ToeSegmentation|Worms)", r"\1"),
    (r"(EOG|Freezer|GunPoint|MixedShapes|Pig|SemgHand)", r"\1"),
    (r"Lightn?ing", "lightning"),
    (r"Face(All|sUCR)", "faces"),
    (r"Distal|Middle|Proximal|Phalanges", "hand bones"),
    (r"50words|FiftyWords|WordS", "words"),
    (OF_APPLIANCES, "appliances"),
)

DATA_SETS: Mapping[str, Tuple[Tuple[str, str], ...]] = {
    "automl": ((r"[14]h_(.+)", r"\1"),),
    "recycling": ((r"(sst|trec)", r"\1"),),
    "simba": ((r"([a-z0-9]+)_", r"\1"),),
    "tser": (
        (r"(BIDMC32|BeijingPM|Flood|GasSensorArray|HouseholdPower|News)", r"\1"),
        (r"(Binance|Bitcoin|Cardano|Ethereum)", "currencies"),
        (r"(?!Benzene)\w+Concentration$", "soil"),
        (r"(Chilled|Electricity|Hot|Steam)\w*Predictor", "buildings"),
        (r"(LPGas|Methane)Monitoring", "home activity"),
        (r"(Precipitation|SolarRadiation)Andalusia", "Andalusian weather"),
    ),
    "ucr": OF_TIME_SERIES,
    "dl4tsc_uea": (*OF_TIME_SERIES, (r"WordsSyn", "words")),
}
"""The beginnings of the names of tables that share a data set, and its name, by source.

- automl: the same data with one hour and with four.
- recycling: two labellings of one corpus. All of its tables share six models, which no interval shows.
- simba: the tasks of one simulated body.
- tser, ucr, dl4tsc_uea: targets, channels, subsets or labellings of one recording.

Every other table is a data set of its own.
"""


def data_set_of(source: str, problem: str) -> str:
    """Return the name of the data set of a published table, which contains that of its source."""
    for pattern, name in DATA_SETS.get(source, ()):
        if match := re.match(pattern, problem):
            return f"{source}: {match.expand(name).lower()}"
    return f"{source}: {problem}"


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

    @property
    def data_set(self) -> str:
        return data_set_of(self.source, self.name)

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

    def draw_selections(self, seed: int, num_selections: int) -> Draws:
        """Return the first scores of each candidate that a selection with this seed draws."""
        simulator = prepare_simulator(ReplaySettings(scores="", seed=seed), self)
        drawn = [simulator.draw(repetition).scores for repetition in range(num_selections)]
        scores = np.stack([[row[name][:TEST_RUNS] for row in drawn] for name in self.scores]) / self.sd
        order = np.tile(np.arange(len(scores))[:, None], num_selections)
        return Draws(scores, self.paired, np.random.default_rng(seed).permuted(order, axis=0))


def read_problems(path: Path) -> List[Problem]:
    """Read the problems of a table with the columns source, problem, paired, minimise, candidate, number and score."""
    tables: Dict[Tuple[str, str, str, str], Dict[str, Dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            problem = tables[row["source"], row["problem"], row["paired"], row["minimise"]]
            problem[row["candidate"]][int(row["number"])] = float(row["score"])
    problems = []
    for (source, name, paired, minimise), table in tables.items():
        sign = -1 if minimise == "1" else 1
        scores = {candidate: sign * np.array([runs[k] for k in sorted(runs)]) for candidate, runs in table.items()}
        problems.append(Problem(source, name, paired == "1", scores))
    return problems
