"""The loop beneath the calls: a strategy proposes, a model function is called, its score joins the history."""

import math
from dataclasses import dataclass, replace
from typing import Callable, List, Optional, Sequence, Tuple, TypeVar

import numpy as np

from fiesta_allennlp.errors import FiestaError
from fiesta_allennlp.probability import logit
from fiesta_allennlp.records import Decision, Evaluation, History, Request
from fiesta_allennlp.strategies import Strategy

Part = TypeVar("Part")
Data = TypeVar("Data")
Model = Callable[[Part, Part], float]
SplitFunction = Callable[[Data], Tuple[Part, Part]]


@dataclass(frozen=True)
class Finished:
    """A selection that is over. Names of candidates are the positions of their functions, as text."""

    history: History
    decision: Decision

    @property
    def best_index(self) -> int:
        return self.history.candidates.index(str(self.decision.best))

    @property
    def confidence_scores(self) -> List[float]:
        return list(self.decision.prob_best.values())

    @property
    def proportions(self) -> List[float]:
        return [self.history.num_finished(name) / self.num_evaluations for name in self.history.candidates]

    @property
    def num_evaluations(self) -> int:
        return len(self.history.evaluations)

    @property
    def scores(self) -> List[List[float]]:
        return [self.history.scores(name).tolist() for name in self.history.candidates]


@dataclass(frozen=True)
class Functions:
    """Plain functions in the place of trainings.

    Each evaluation calls `split_function` once and has a split of its own. The seeds of its request are numbers that
    tell evaluations apart; nothing is seeded with them.
    """

    data: object
    models: Sequence[Model]
    split_function: SplitFunction
    logit_transform: bool

    def select(self, strategy: Strategy, *, slots: int, rng: Optional[np.random.Generator]) -> Finished:
        """Evaluate what the strategy proposes, `slots` at a time, until it proposes nothing.

        # Raises

        `ValueError` : where the strategy cannot work with so many models, a model's score is no finite number, or it
            has no logit and `logit_transform` was asked for.
        """
        try:
            return self._select(strategy, slots, np.random.default_rng() if rng is None else rng)
        except FiestaError as error:
            raise ValueError(str(error)) from error

    def _select(self, strategy: Strategy, slots: int, rng: np.random.Generator) -> Finished:
        history = History(tuple(str(index) for index in range(len(self.models))))
        strategy.check(list(history.candidates))
        while names := strategy.propose(history, slots, rng):
            for name in names:
                evaluation = self._evaluate(history, name)
                history = replace(history, evaluations=(*history.evaluations, evaluation))
        return Finished(history, strategy.recommend(history))

    def _evaluate(self, history: History, name: str) -> Evaluation:
        number = len(history.evaluations)
        train, test = self.split_function(self.data)
        score = float(self.models[int(name)](train, test))
        if not math.isfinite(score):
            raise ValueError(
                f"model_functions[{name}] returned {score} in evaluation {number}: a score must be a finite number."
            )
        if self.logit_transform:
            score = float(logit(np.array([score]), candidate=f"model_functions[{name}]")[0])
        return Evaluation(Request(name, history.num_finished(name), number, number, number, number), score, "score")
