"""Selections as the benchmarks run them: of evaluations that do nothing, or of real trainings, without a directory that
stays."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping, Sequence

import numpy as np

import fiesta_allennlp.plugin  # noqa: F401
from fiesta_allennlp.core.directory import RunDirectory
from fiesta_allennlp.core.records import Candidate, Decision, Evaluation, Failure, History, Outcome, Request
from fiesta_allennlp.core.registry import build
from fiesta_allennlp.executors.base import Evaluator, Executor
from fiesta_allennlp.selection.loop import Listener, SelectionLoop
from fiesta_allennlp.selection.store import RunStore
from fiesta_allennlp.strategies.base import Strategy
from fiesta_allennlp.trainings.allennlp.evaluator import AllenNLPRun
from fiesta_allennlp.trainings.allennlp.preparing import prepare_candidate
from fiesta_allennlp.trainings.candidate_values import CandidateSpec
from fiesta_allennlp.trainings.candidates import load_config
from fiesta_allennlp.trainings.config import with_absolute_paths
from fiesta_allennlp.trainings.preparation import CandidateEvaluator


@dataclass(frozen=True)
class NoOpEvaluator(Evaluator):
    """A score at once, from the request's seeds alone."""

    def evaluate(self, request: Request, directory: Path) -> Evaluation:
        return Evaluation(request, float(np.random.default_rng(request.random_seed).normal(0.6, 0.02)), "score")


class FailureListener:
    """Listens to a selection and stops the script where an evaluation fails."""

    def on_state(self, history: History, decision: Decision) -> None:
        pass

    def on_outcome(self, outcome: Outcome) -> None:
        if isinstance(outcome, Failure):
            raise SystemExit(f"{outcome.request.name} failed: {outcome.error}")

    def on_waiting(self, requests: Sequence[Request]) -> None:
        pass


def run_selection(
    directory: RunDirectory,
    candidates: Sequence[str],
    strategy: Mapping[str, Any],
    evaluator: Evaluator,
    executor: Executor,
    listener: Listener,
) -> None:
    """One selection in a new directory, to its end."""
    with closing(RunStore(directory, create=True)) as store, closing(executor):
        store.put_candidates([Candidate(name, name, {}) for name in candidates])
        SelectionLoop(
            strategy=build(Strategy, {**strategy, "belief": {"type": "student_t"}}),
            evaluator=evaluator,
            executor=executor,
            store=store,
            directory=directory,
            listeners=[listener],
            seed=1,
            max_failures=3,
        ).run()


def prepared_trainings(paths: Sequence[Path], vectors_directory: Path, *, overrides: str = "") -> CandidateEvaluator:
    """Trainings of TDSA configs, with word vectors filtered into this directory."""
    configs = {path.stem: with_absolute_paths(load_config(CandidateSpec(path), overrides)) for path in paths}
    runs = {}
    for name, config in configs.items():
        vectors = dict(prepare_candidate(config, group_by=None, vectors_directory=vectors_directory).vectors)
        runs[name] = AllenNLPRun(config, "macro_f1", "sentence_id", vectors=vectors)
    return CandidateEvaluator(runs)
