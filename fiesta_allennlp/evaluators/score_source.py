"""Scores for a replay: where they come from, and those of one repetition as an evaluator."""

import difflib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Mapping, Sequence

import numpy as np

from fiesta_allennlp.errors import ConfigError, DataError
from fiesta_allennlp.evaluators.base import Evaluator
from fiesta_allennlp.records import Evaluation, Request

METRIC = "score"
"""What the metric of a replayed evaluation is called."""


@dataclass(frozen=True)
class Sampling:
    """How the scores of a repetition are drawn.

    `shared_splits`: replicate k of every candidate is taken from the same split. `with_replacement`: a score can be
    drawn again. `length` is how many evaluations of one candidate can be asked for at most.
    """

    shared_splits: bool
    with_replacement: bool
    length: int


@dataclass(frozen=True, eq=False)
class DrawnScores(Evaluator):
    """The scores of one repetition: replicate k of a candidate has the k-th of its scores, whoever asks first.

    # Parameters

    splits : the split of every replicate, by candidate. Shape: `(num_replicates,)`.
    scores : likewise.
    source : what to call the place they come from in an error.
    """

    splits: Mapping[str, np.ndarray]
    scores: Mapping[str, np.ndarray]
    source: str

    def request(self, candidate: str, replicate: int) -> Request:
        """The request for a replicate. The split's number stands for its seed; nothing is trained, so the others are 0.

        # Raises

        `DataError` : where the candidate has no scores left.
        """
        splits = self.splits[candidate]
        if replicate >= len(splits):
            raise DataError(
                f"{self.source}: candidate '{candidate}' has run out: all of its {len(splits)} scores were drawn and "
                "another one was asked for. Let scores be drawn again with --with-replacement, or stop earlier with "
                "--max-evaluations or a lower --confidence."
            )
        return Request(candidate, replicate, int(splits[replicate]), random_seed=0, numpy_seed=0, pytorch_seed=0)

    def evaluate(self, request: Request, directory: Path = Path()) -> Evaluation:
        """The score of this replicate. Nothing is written to `directory`."""
        return Evaluation(request, float(self.scores[request.candidate][request.replicate]), METRIC)


class ScoreSource(ABC):
    """What the scores of a replay are drawn from: a table of released scores, or a preset.

    # Parameters

    name : the file, or the preset.
    """

    name: str

    reports_counts: bool = False
    """Whether the evaluations have counts, which some beliefs need, beside their scores."""

    @abstractmethod
    def true_means(self) -> Dict[str, float]:
        """What a replay should find: the mean over all scores that can be drawn, by candidate, in their order."""

    @abstractmethod
    def restricted(self, names: Sequence[str]) -> "ScoreSource":
        """The same with these candidates only, in this order. They are there."""

    @abstractmethod
    def check(self, sampling: Sampling) -> None:
        """Refuse a way of drawing that cannot work here.

        # Raises

        `FiestaError` : with the rule, the value and the remedy.
        """

    @abstractmethod
    def draw(
        self, sampling: Sampling, *, split_rng: np.random.Generator, score_rngs: Mapping[str, np.random.Generator]
    ) -> DrawnScores:
        """The scores of one repetition. What is shared comes from `split_rng`, what belongs to one candidate from its
        own generator, so that a candidate's scores do not depend on who stands beside it."""


def restrict(source: ScoreSource, names: Sequence[str]) -> ScoreSource:
    """`source.restricted`, after the names were checked.

    # Raises

    `ConfigError` : on a name that is not there, with the near ones, or that is given twice.
    """
    known = list(source.true_means())
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=2)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise ConfigError(
                f"--candidates: {source.name} has no candidate '{name}'.{hint} There are: {', '.join(known)}."
            )
        if list(names).count(name) > 1:
            raise ConfigError(f"--candidates: '{name}' is there more than once. Give every candidate once.")
    return source.restricted(names)


def numbered_apart(names: Sequence[str], lengths: Mapping[str, int]) -> Mapping[str, np.ndarray]:
    """Split numbers of which no two are equal: what is known of independent splits is that each is another one."""
    starts = np.cumsum([0, *(lengths[name] for name in names)])
    return {name: np.arange(start, start + lengths[name]) for name, start in zip(names, starts[:-1], strict=True)}
