"""A third type of candidate: a Python function of a module, called with the seeds of each run in a fresh process.

{type: 'function', call: 'scores.noisy', arguments: {gain: 0.1}}
"""

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any, Callable, Iterator, List, Mapping, Optional

from fiesta_allennlp.core.splits import Division
from fiesta_allennlp.errors import ConfigError, describe, not_keys
from fiesta_allennlp.records import Request
from fiesta_allennlp.selection.metrics import Metric
from fiesta_allennlp.trainings.candidate_run import CandidateRun
from fiesta_allennlp.trainings.candidate_types import CandidateType

KEYS = ("type", "call", "arguments")


def function_of(config: Mapping[str, Any]) -> Callable[..., Mapping[str, Any]]:
    """Import the function that a config names."""
    module, _, name = config["call"].rpartition(".")
    return getattr(import_module(module), name)


class FunctionRun(CandidateRun):
    """Calls the function with the arguments of the config and the seeds of a run, and returns its metrics."""

    def metrics_of(self, request: Request, directory: Path) -> Mapping[str, Any]:
        seeds = {"seed": request.random_seed, "split_seed": request.split_seed}
        return function_of(self.config)(**self.config.get("arguments", {}), **seeds)


@CandidateType.register("function")
class FunctionCandidate(CandidateType):
    """A function that splits its data by `split_seed`, trains by `seed`, and returns its metrics by name."""

    run_class = FunctionRun

    def check_complete(self) -> None:
        unknown = [key for key in self.config if key not in KEYS]
        if unknown:
            raise ConfigError(not_keys(unknown, "a function", KEYS))
        if not isinstance(self.config.get("call"), str):
            raise ConfigError("'call' must be the name of a function, such as \"scores.noisy\".")
        if not isinstance(self.config.get("arguments", {}), dict):
            raise ConfigError("'arguments' must be an object with the arguments of the function.")

    def check(self, *, metric: Metric, group_by: Optional[str] = None, division: Division) -> None:
        super().check(metric=metric, group_by=group_by, division=division)
        try:
            parameters = inspect.signature(function_of(self.config))
            parameters.bind(**self.config.get("arguments", {}), seed=1, split_seed=2)
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            raise ConfigError(f"'call' is '{self.config['call']}': {describe(error)}") from error

    @property
    def code(self) -> List[str]:
        return [inspect.getfile(function_of(self.config))]

    def notes(self, division: Division) -> Iterator[str]:
        if division.is_official:
            yield "with --splits official, the function must ignore split_seed."
