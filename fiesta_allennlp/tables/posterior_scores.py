"""Scores drawn from the posterior given a pilot: each repetition has its own true means and sds."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Dict, Mapping, Tuple

import numpy as np
from numpy.random import Generator
from scipy.special import expit

from fiesta_allennlp.beliefs.split_paired import Standardised
from fiesta_allennlp.core.errors import DataError
from fiesta_allennlp.core.records import History
from fiesta_allennlp.probability import logit
from fiesta_allennlp.probability.split_draws import EffectsPosterior, effects_posterior
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.tables.sources import UNNAMED, DrawnScores, Sampling, ScoreSource

LEAST_RUNS = 2
"""A single run of a candidate gives no estimate of the sd."""


@dataclass(frozen=True, eq=False)
class PosteriorScores(ScoreSource):
    """Continues a pilot: true means, split effects and sds are one draw from their posterior by `split_paired`.

    A new run takes the first split of the pilot that its candidate has not used, then new splits. `seconds` is the
    duration of a run, by candidate. With `takes_logits`, the model and the true means are on the logit scale."""

    name: str
    start: History
    seconds: Mapping[str, float] = field(default_factory=dict)
    takes_logits: bool = False
    metric: Metric = UNNAMED

    def check_runs(self) -> None:
        """Refuse fewer than two candidates, too few runs of one, or equal scores."""
        if len(self.start.active) < 2:
            raise DataError(f"{self.name}: a plan needs at least two candidates but got {len(self.start.active)}.")
        for name in self.start.active:
            if self.start.num_finished(name) < LEAST_RUNS:
                raise DataError(
                    f"{self.name}: a plan needs at least {LEAST_RUNS} runs of every candidate, but '{name}' has "
                    f"{self.start.num_finished(name)}. Add runs, or plan from --gap and --sd."
                )
        if not np.ptp(np.concatenate([self.start.scores(name) for name in self.start.active])) > 0:
            raise DataError(
                f"{self.name}: all scores are equal, so the sd is unknown. Plan from --gap and --sd instead."
            )

    @cached_property
    def standardised(self) -> Standardised:
        names = self.start.active
        scores = [self.start.scores(name) for name in names]
        if self.takes_logits:
            scores = [logit(values, candidate=name) for name, values in zip(names, scores, strict=True)]
        return Standardised.of(scores, [self.start.split_seeds(name) for name in names])

    @cached_property
    def posterior(self) -> EffectsPosterior:
        return effects_posterior(self.standardised.table)

    def true_means(self) -> Dict[str, float]:
        return self._in_score_units(self.posterior.location)

    @property
    def noise_sd(self) -> float:
        """The pilot's estimate of the run-to-run sd of a typical candidate on one split."""
        return self.standardised.unit * self.posterior.noise_sd

    def draw(self, sampling: Sampling, *, split_rng: Generator, score_rngs: Mapping[str, Generator]) -> DrawnScores:
        effects, fit, length = self.posterior.draw(split_rng), self.standardised, sampling.length
        new = split_rng.normal(0, effects.split_sd, length)
        splits, scores = {}, {}
        for position, name in enumerate(self.start.active):
            rng = score_rngs[name]
            if sampling.shared_splits:
                seeds, shifts = self._remaining_splits(name, effects.splits, new)
            else:
                seeds, shifts = -1 - position * length - np.arange(length), rng.normal(0, effects.split_sd, length)
            noise = rng.normal(0, effects.noise_sds[position], len(seeds))
            values = fit.centre + fit.unit * (effects.means[position] + shifts + noise)
            splits[name] = np.concatenate([self.start.split_seeds(name), seeds])
            scores[name] = np.concatenate([self.start.scores(name), expit(values) if self.takes_logits else values])
        return DrawnScores(splits, scores, self.name, self._in_score_units(effects.means), self.seconds)

    def _remaining_splits(self, name: str, seen: np.ndarray, new: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
        """Return the seeds and effects of the pilot's splits that are left, then those of new ones, with negative
        seeds."""
        requests = [e.request for e in self.start.evaluations if e.request.candidate in self.start.active]
        split_order = dict.fromkeys(r.split_seed for r in sorted(requests, key=lambda request: request.replicate))
        own = set(self.start.split_seeds(name).tolist())
        remaining = np.array([seed for seed in split_order if seed not in own], dtype=np.int64)
        columns = np.searchsorted(np.sort(list(split_order)), remaining)
        return np.concatenate([remaining, -1 - np.arange(len(new))]), np.concatenate([seen[columns], new])

    def _in_score_units(self, means: np.ndarray) -> Dict[str, float]:
        values = self.standardised.centre + self.standardised.unit * means
        return dict(zip(self.start.active, values.tolist(), strict=True))
